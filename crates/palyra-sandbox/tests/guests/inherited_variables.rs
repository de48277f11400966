//! Finds a variable of the daemon.

fn main() {
    if attempt().is_some() {
        println!("got through");
    } else {
        println!("denied");
        std::process::exit(1);
    }
}

fn attempt() -> Option<()> {
    std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("PALYRA")).then_some(())
}
