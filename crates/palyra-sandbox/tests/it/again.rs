//! Run as root, the same tests once more as an ordinary user.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::guests;
use crate::world::launcher;

const USER: u32 = 65_534;

#[test]
fn everything_holds_for_an_ordinary_user_too() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("these tests run as an ordinary user already");
        return;
    }
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
    guests::publish(&base.path().join("guests"));
    let program = base.path().join("test-program");
    let copy = base.path().join("launcher");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::copy(launcher(), &copy).unwrap();
    let output = Command::new(&program)
        .args([
            "input::",
            "life::",
            "limits::",
            "network::",
            "owner::",
            "smoke::",
            "sockets::",
            "terminal::",
            "uncounted::",
            "work::plain",
        ])
        .args(["--test-threads", "2"])
        .env("PALYRA_SANDBOX_TEST_LAUNCHER", &copy)
        .env("PALYRA_SANDBOX_TEST_GUESTS", base.path().join("guests"))
        .env("HOME", base.path())
        .uid(USER)
        .gid(USER)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("running 0 tests"), "the names of the tests changed");
}
