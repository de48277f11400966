//! The router over providers that do as they are told, under a clock that only waiting moves.

mod changes;
mod failover;
mod keys;
mod properties;
mod restarts;
mod rests;
mod support;
mod trying;
