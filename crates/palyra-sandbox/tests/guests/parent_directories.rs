//! Lists every directory above the workspace and finds something that is not its own.

use std::{env, fs};

fn main() {
    if attempt().is_some() {
        println!("got through");
    } else {
        println!("denied");
        std::process::exit(1);
    }
}

fn attempt() -> Option<()> {
    let here = env::current_dir().ok()?;
    let seen = |name: &str| here.ancestors().skip(1).any(|above| fs::read_dir(above).into_iter().flatten().flatten().any(|entry| entry.file_name() == name));
    (seen("secret") || seen("state") || seen("root")).then_some(())
}
