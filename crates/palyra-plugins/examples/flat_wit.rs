//! Prints all WIT packages as one file: `cargo run -p palyra-plugins --example flat_wit > crates/palyra-plugins/sdk/wit/palyra-sdk.wit`.

fn main() {
    print!("{}", palyra_plugins::flat_wit());
}
