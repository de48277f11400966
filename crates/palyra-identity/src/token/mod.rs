//! API tokens: their text, what is kept of them, the events of their life and the book of those in force.

mod book;
#[cfg(test)]
mod book_tests;
mod bounds;
mod event;
mod record;
mod text;

pub use book::{IssuedToken, NewToken, Origin, TokenBook};
pub use bounds::Bounds;
pub use event::TokenEvent;
pub use record::{Parent, ParentDevice, ParentToken, PreviousSecret, TokenRecord};
pub use text::TokenId;
