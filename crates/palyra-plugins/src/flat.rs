//! All packages in one file, for guest compilers that are given a single text.
//!
//! The file is kept in `sdk/wit/palyra-sdk.wit`, so that people find it; a test compares it with what is made here.

use crate::{HOST_WIT, PLUGIN_WIT, SDK_WORLDS_WIT};

/// The first lines.
const ORIGIN: &str =
    "// Generated from crates/palyra-plugins/wit by `cargo run -p palyra-plugins --example flat_wit`.\n\n";

/// The package `palyra:sdk` with the other two nested in it.
#[must_use]
pub fn flat_wit() -> String {
    let mut text = String::from(ORIGIN);
    text.push_str(SDK_WORLDS_WIT);
    for package in [HOST_WIT, PLUGIN_WIT] {
        text.push('\n');
        nest(package, &mut text);
    }
    text
}

/// Turns `package a:b;` with its items into `package a:b { … }`.
fn nest(package: &str, text: &mut String) {
    let mut inside = false;
    for line in package.trim_end().lines() {
        match line.strip_prefix("package ").and_then(|name| name.strip_suffix(';')) {
            Some(name) if !inside => {
                inside = true;
                text.push_str("package ");
                text.push_str(name);
                text.push_str(" {\n");
            }
            _ => {
                if inside && !line.is_empty() {
                    text.push_str("    ");
                }
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text.push_str("}\n");
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_file_that_people_find_is_up_to_date() {
        assert!(
            crate::SDK_WIT == super::flat_wit(),
            "sdk/wit/palyra-sdk.wit is stale: write it with `cargo run -p palyra-plugins --example flat_wit`"
        );
    }
}
