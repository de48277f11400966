//! The fixtures against the vendors' own client libraries, which nobody here wrote.

use std::path::Path;
use std::process::Command;

/// The libraries come from `scripts/clients/setup.sh vendors`, made once per machine.
#[test]
fn the_vendors_own_types_know_what_is_sent_and_read_here() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new("bash").arg(here.join("../../scripts/clients/setup.sh")).arg("vendors").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let python = String::from_utf8(made.stdout).unwrap();
    let checked = Command::new(python.trim()).arg("-B").arg(here.join("tests/vendor_types.py")).output().unwrap();
    let findings = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{findings}{}", String::from_utf8_lossy(&checked.stderr));
}
