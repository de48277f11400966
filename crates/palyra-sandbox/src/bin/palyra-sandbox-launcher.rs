//! A binary that is nothing but the launcher, for this crate's own tests and measurements.
//!
//! The daemon does not need it: it executes itself.

fn main() {
    #[cfg(target_os = "linux")]
    palyra_sandbox::main_if_asked();
    eprintln!("this binary is started by its sandbox handle and does nothing by itself");
    std::process::exit(2);
}
