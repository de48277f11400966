//! The generated modules, untouched. Their documentation is the comments of the schema.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::needless_pass_by_value,
    clippy::wildcard_imports,
    reason = "generated code follows its generator's style"
)]

include!(concat!(env!("OUT_DIR"), "/palyra_modules.rs"));
