//! Sees the network interfaces of the host.

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
    let interfaces = fs::read_to_string("/proc/net/dev").ok()?;
    interfaces.lines().skip(2).any(|line| !line.trim_start().starts_with("lo:")).then_some(())
}
