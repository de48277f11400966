//! The WIT packages as Rust: traits for what the host offers, types for what a plugin gives back. Generated; nothing is written by hand here.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::semicolon_if_nothing_returned,
    clippy::wildcard_imports,
    reason = "generated from the WIT, where the words are"
)]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "tools-and-hooks",
    imports: {
        "palyra:host/http.send": async | trappable,
        "palyra:host/secret-reveal.reveal": async | trappable,
        "palyra:host/storage.get": async | trappable,
        "palyra:host/storage.set": async | trappable,
        "palyra:host/storage.delete": async | trappable,
        "palyra:host/storage.keys": async | trappable,
        "palyra:host/storage.apply": async | trappable,
        "palyra:host/channel.send": async | trappable,
        default: trappable,
    },
    exports: { default: async },
});
