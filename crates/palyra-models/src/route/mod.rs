//! Who is asked, with which key, and what happens when that fails.
//!
//! - `catalogue`: what servers say they offer; `choose`: which models a wish means, in order; `needs` and `target`: what a request needs and what a model has;
//! - `policy`: what is done about each class of failure, as one table; `breaker` and `gates`: who rests, and for how long; `memory`: who answered before a restart;
//! - `pool` and `factory`: providers, one for each key; `lanes`: the plan of one call; `walk`: the call itself, as a stream;
//! - `router`: all of it as one [`crate::ModelProvider`]; `explain`: all of it for people.
//!
//! Time and chance are handed in (`pace`), so a test decides both. Nothing here knows what a provider speaks.

mod breaker;
mod catalogue;
mod choose;
mod embed;
mod explain;
mod factory;
mod gates;
mod lanes;
mod listed;
mod listing;
mod memory;
mod needs;
mod pace;
mod policy;
mod pool;
mod router;
mod target;
mod try_out;
mod walk;

#[cfg(test)]
mod tests;

pub use self::catalogue::window;
pub use self::choose::{Chain, Wish};
pub use self::explain::{Explanation, KeyStanding, Standing, Step};
pub use self::factory::{HttpProviders, ProviderFactory};
pub use self::gates::{Gate, GateHealth, GateState};
pub use self::listed::{Listed, listed};
pub use self::listing::{Listing, check_listed};
pub use self::memory::AnswerMemory;
pub use self::needs::Needs;
pub use self::pace::{Pace, SystemPace};
pub use self::policy::{AfterOutput, RoutePolicy};
pub use self::router::{Router, RouterOptions};
pub use self::target::Target;
pub use self::try_out::{ProbePrompt, PromptChoice, ProviderWrapper, TryOut, try_account, try_out};
