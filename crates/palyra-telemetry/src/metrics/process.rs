//! What the kernel says about this process. A system without `/proc` has no such numbers, and says nothing rather than zero.

use std::fs;

/// Memory that this process occupies.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// File descriptors that this process holds, without the one that counts them.
pub(super) fn open_descriptors() -> Option<u64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(count).ok()?.checked_sub(1)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_occupies_something() {
        assert!(resident_bytes().unwrap() > 100_000);
        let before = open_descriptors().unwrap();
        let _file = fs::File::open("/proc/self/status").unwrap();
        assert!(before >= 1, "at least standard input or output is open");
    }
}
