//! What a newcomer already has: keys in the environment, model servers on this machine.
//!
//! Everything found is an [`Offer`] that says why it is offered and what would be sent where. Nothing found is used: a provider is
//! asked only after somebody named it, in `models.toml` or as `model.provider`. [`adopt`] is that step.

mod adopt;
mod environment;
mod local;
mod offer;

pub use adopt::adopt;
pub use environment::offers_of_environment;
pub(crate) use environment::{key_in, ollama_url};
pub use local::{Place, offers_of_places, usual_places};
pub use offer::Offer;
