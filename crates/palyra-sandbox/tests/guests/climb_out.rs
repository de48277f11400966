//! Climbs out of the workspace one directory at a time.

use std::fs;

fn main() {
    if attempt().is_some() {
        println!("got through");
    } else {
        println!("denied");
        std::process::exit(1);
    }
}

fn attempt() -> Option<()> {
    (1..8).find_map(|steps| fs::read(format!("{}secret", "../".repeat(steps))).ok()).map(drop)
}
