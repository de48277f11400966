//! Counts the processes of the host.

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
    let processes = fs::read_dir("/proc").ok()?.flatten().filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    // Its own first process and itself.
    (processes.count() > 2).then_some(())
}
