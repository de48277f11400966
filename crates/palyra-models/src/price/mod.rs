//! What model calls cost.
//!
//! [`PriceTable`] holds a dated table that comes with the program, and above it the operator's own file of the same form. It answers what a
//! call has cost ([`PriceTable::cost`]) and what one may cost at worst ([`PriceTable::worst`]), in whole micro-dollars, rounded up. A
//! model without a known price is taken for a dear one, so that spending limits hold; servers on this machine cost nothing. Who may
//! spend is decided elsewhere (`palyra-budget`).

mod attempt;
mod error;
mod file;
mod names;
mod rates;
mod seller;
mod table;

pub use attempt::AttemptCost;
pub use error::PriceFileError;
pub use rates::Rates;
pub use seller::{Billing, Seller};
pub use table::{Cost, PriceTable, Priced, Quote};
