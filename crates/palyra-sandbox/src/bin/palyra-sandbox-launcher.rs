//! A binary that is nothing but the launcher, for this crate's own tests and measurements.
//!
//! The daemon does not need it: it executes itself.

fn main() {
    #[cfg(target_os = "linux")]
    palyra_sandbox::main_if_asked();
    eprintln!("this program is started by the sandbox and does nothing on its own");
    std::process::exit(2);
}
