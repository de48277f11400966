//! What a newcomer already has: keys in the environment, model servers on this machine.
//!
//! Everything found is an [`Offer`] that says why it is offered and what would be sent where. Nothing found is used: a provider is
//! asked only after somebody named it, in `models.toml` or as `model.provider`. [`adopt`] is that step.
//! [`set_variables`] names what an environment says about models, so that two of them can be compared.

mod adopt;
mod discover;
mod environment;
mod local;
mod offer;
mod variables;

pub use adopt::adopt;
pub use discover::discover;
pub(crate) use environment::{key_in, offers_of_environment, own_url};
pub use offer::Offer;
pub(crate) use offer::is_loopback;
pub use variables::set_variables;
