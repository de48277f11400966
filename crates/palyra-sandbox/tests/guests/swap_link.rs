//! Swaps a file for a link while reading it, again and again.

use std::os::unix::fs::symlink;
use std::{env, fs, thread};

fn main() {
    if attempt().is_some() {
        println!("got through");
    } else {
        println!("denied");
        std::process::exit(1);
    }
}

fn attempt() -> Option<()> {
    let secret = format!("{}/secret", env::args().nth(1)?);
    fs::write("decoy", "").ok()?;
    let swapper = thread::spawn(move || {
        for _ in 0..2000 {
            let _ = fs::remove_file("swapped");
            let _ = fs::hard_link("decoy", "swapped");
            let _ = fs::remove_file("swapped");
            let _ = symlink(&secret, "swapped");
        }
    });
    let mut found = false;
    while !swapper.is_finished() {
        found |= fs::read("swapped").is_ok_and(|bytes| !bytes.is_empty());
    }
    found.then_some(())
}
