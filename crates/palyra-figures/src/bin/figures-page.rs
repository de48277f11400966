//! Collects the stored reports into `docs/figures.md`, or into the file named as the only argument.

use std::path::PathBuf;
use std::process::ExitCode;

use palyra_common::ToStableError;
use palyra_figures::{FiguresError, figures_directory, read_reports, render_page, workspace_root};

fn main() -> ExitCode {
    match write_page(std::env::args_os().nth(1).map(PathBuf::from)) {
        Ok(target) => {
            println!("wrote {}", target.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let error = error.to_stable();
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code() as u8)
        }
    }
}

fn write_page(target: Option<PathBuf>) -> Result<PathBuf, FiguresError> {
    let page = render_page(&read_reports(&figures_directory()?)?);
    let target = match target {
        Some(target) => target,
        None => workspace_root()?.join("docs").join("figures.md"),
    };
    std::fs::write(&target, page).map_err(|source| FiguresError::Io { path: target.clone(), source })?;
    Ok(target)
}
