//! Entry point of `palyra`; everything is in the library, so that tests and the reference page reach it too.

fn main() -> std::process::ExitCode {
    palyra_cli::main()
}
