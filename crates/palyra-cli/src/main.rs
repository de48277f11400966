//! Entry point of `palyra`; everything is in the library, so that tests and the reference page reach it too.

fn main() -> std::process::ExitCode {
    // First of all: `palyra sandbox` executes this program again as the launcher of its sandboxes.
    palyra_sandbox::main_if_asked();
    palyra_cli::main()
}
