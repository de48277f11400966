//! Learns the name of the host.

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
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    (Some(name.trim()) == env::args().nth(5).as_deref()).then_some(())
}
