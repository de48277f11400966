//! Running out of file handles is reported as such, never as a file or a workspace that is missing.

use crate::support::ANYWHERE;
use palyra_tools::{Roots, ToolError, Workspace};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes every file handle that is left while `work` runs.
fn without_file_handles<T>(work: impl FnOnce() -> T) -> T {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).unwrap();
    let mut held = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        held.push(file);
    }
    let done = work();
    drop(held);
    setrlimit(Resource::Nofile, limit).unwrap();
    done
}

#[test]
fn a_workspace_that_cannot_be_opened_for_want_of_handles_exists_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let refused = without_file_handles(|| Workspace::open(directory.path(), &ANYWHERE, &[]).err());
    assert_eq!(refused.as_ref().map(ToolError::code), Some("file_handles_exhausted"), "{refused:?}");
    // Whoever has granted roots only is told so too.
    let granted = Roots::Below(vec![directory.path().canonicalize().unwrap()]);
    let refused = without_file_handles(|| Workspace::open(directory.path(), &granted, &[]).err());
    assert_eq!(refused.as_ref().map(ToolError::code), Some("file_handles_exhausted"), "{refused:?}");
    assert!(Workspace::open(directory.path(), &ANYWHERE, &[]).is_ok());
    let missing = Workspace::open(directory.path().join("nowhere"), &ANYWHERE, &[]).err();
    assert_eq!(missing.as_ref().map(ToolError::code), Some("workspace_not_found"));
}
