//! Finds a descriptor that it was not given.

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
    let open = (3..256).filter(|number| fs::read_link(format!("/proc/self/fd/{number}")).is_ok()).count();
    // The listing of one link at a time holds none itself.
    (open > 0).then_some(())
}
