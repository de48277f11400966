//! What `wit-bindgen` makes of the WIT packages: the host's interfaces, and the two things that a plugin can export.
//!
//! The three are generated apart, so that a plugin describes only what it exports. Nothing else in this crate is unsafe; what is here is `wit-bindgen`'s,
//! and it holds as long as the host keeps to the canonical ABI.

pub mod host {
    wit_bindgen::generate!({
        path: "wit/palyra-sdk.wit",
        world: "palyra:sdk/host@1.0.0",
        generate_all,
    });
}

pub mod tool {
    wit_bindgen::generate!({
        path: "wit/palyra-sdk.wit",
        world: "palyra:plugin/tool-plugin@1.0.0",
        pub_export_macro: true,
        export_macro_name: "export_tool_plugin",
    });
}

pub mod hook {
    wit_bindgen::generate!({
        path: "wit/palyra-sdk.wit",
        world: "palyra:plugin/hook-plugin@1.0.0",
        pub_export_macro: true,
        export_macro_name: "export_hook_plugin",
    });
}
