//! The client behind `http.fetch`: the same rules, the same pinning, the same limits as the proxy, without a sandbox in between.
//!
//! `fetch` is what is asked and answered, `redirect` what a redirect does to a request, `coding` undoes content codings within limits, `cache` keeps
//! answers that may be kept. Every step of a chain of redirects is judged like a request of its own.

mod cache;
mod coding;
mod fetch;
mod redirect;

pub use cache::{CacheStore, CachedAnswer, MemoryCache};
pub use fetch::{CacheMode, EgressClient, FetchRequest, FetchResponse, Served};
