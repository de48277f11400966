//! Which solver is taken, and what happens without a usable one.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use palyra_common::{ExitCode, ToStableError as _};
use palyra_policy::{PolicySet, PolicySource};
use palyra_policy_prove::{ProveError, SolverProgram, prove};

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn find(named: Option<&Path>, search: Option<&Path>) -> Result<SolverProgram, ProveError> {
    SolverProgram::find(named.map(Path::as_os_str), search.map(Path::as_os_str))
}

#[test]
fn without_a_solver_the_answer_is_unsupported() {
    let empty = tempfile::tempdir().unwrap();
    for search in [None, Some(empty.path())] {
        let envelope = find(None, search).unwrap_err().to_stable();
        assert_eq!(envelope.code, "unsupported_without_solver");
        assert_eq!(envelope.exit_code(), ExitCode::Unsupported);
        assert!(envelope.recovery_hint.unwrap().contains("PALYRA_SMT_SOLVER"));
    }
    let missing = find(Some(&empty.path().join("z3")), None).unwrap_err();
    assert_eq!(missing.to_stable().code, "solver_unusable");
}

#[test]
fn a_named_solver_wins_over_the_search_path() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    program(&one.path().join("cvc5"), "#!/bin/sh\n");
    program(&two.path().join("z3"), "#!/bin/sh\n");
    let both = std::env::join_paths([Path::new("relative"), one.path(), two.path()]).unwrap();
    let found = |named: Option<&Path>| {
        SolverProgram::find(named.map(Path::as_os_str), Some(OsStr::new(&both))).unwrap().path().to_path_buf()
    };
    assert_eq!(found(None), two.path().join("z3"), "z3 is preferred");
    let named = one.path().join("cvc5");
    assert_eq!(found(Some(&named)), named);
    fs::set_permissions(two.path().join("z3"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(found(None), named, "what may not be run is no program");
}

fn against(script: &str, limit: Duration) -> ProveError {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("z3");
    program(&path, script);
    let base = PolicySet::shipped().unwrap();
    let wider =
        PolicySource::new("own.cedar", "@id(\"a\") permit (principal, action == Action::\"tool.execute\", resource);");
    let proposed = base.extended(&[wider], Vec::new()).unwrap();
    let solver = SolverProgram::find(Some(path.as_os_str()), None).unwrap();
    prove(&base, &proposed, &solver, limit).unwrap_err()
}

#[test]
fn a_solver_that_fails_shows_nothing() {
    for script in [
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\necho nonsense\ncat > /dev/null\n",
        "#!/bin/sh\necho unknown\ncat > /dev/null\n",
        "#!/bin/sh\necho sat\necho nonsense\ncat > /dev/null\n",
    ] {
        let error = against(script, Duration::from_secs(30));
        assert_eq!(error.to_stable().code, "solver_failed", "{script}: {error}");
    }
}

#[test]
fn a_solver_that_never_answers_is_stopped() {
    let error = against("#!/bin/sh\nexec sleep 600\n", Duration::from_millis(500));
    assert_eq!(error.to_stable().code, "solver_timeout", "{error}");
}
