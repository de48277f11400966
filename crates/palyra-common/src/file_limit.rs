//! How many files this process may have open: raised once at the start of a daemon, given back to the programs it starts, and recognised where it is reached.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the process was started with, once it was raised.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard one and gives what holds now. A daemon calls this before it opens anything. The usual soft limit of 1,024 is for programs that
/// use `select`; those that it starts get it back by [`restore_file_limit`].
pub fn raise_file_limit() -> u64 {
    let found = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: found.maximum, maximum: found.maximum };
    if setrlimit(Resource::Nofile, raised).is_err() {
        // Refused by a sandbox around the daemon; it works with what there is.
        return found.current.unwrap_or(u64::MAX);
    }
    ORIGINAL.get_or_init(|| found);
    raised.current.unwrap_or(u64::MAX)
}

/// Starts a program with the limit that this process itself was started with.
pub fn restore_file_limit(command: &mut Command) {
    let Some(original) = ORIGINAL.get() else { return };
    let restore = || Ok(setrlimit(Resource::Nofile, *original)?);
    #[expect(unsafe_code, reason = "only the child itself can change its limits before it executes the program")]
    // SAFETY: between fork and exec the closure makes one system call and touches no lock, no allocation and no other thread's memory.
    unsafe {
        command.pre_exec(restore);
    }
}

/// Whether an error says that this process or the whole system has no file handle left. Such an error says nothing about the file that was asked for: it must never be
/// reported as missing.
#[must_use]
pub fn is_out_of_files(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_back_what_this_process_was_started_with() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(200), maximum }).unwrap();
        let raised = raise_file_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(raised, maximum.unwrap_or(u64::MAX));
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -Sn; ulimit -Hn"]);
        restore_file_limit(&mut command);
        let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let hard = maximum.map_or("unlimited".to_owned(), |hard| hard.to_string());
        assert_eq!(printed, format!("200\n{hard}\n"));
    }

    #[test]
    fn running_out_of_files_is_told_from_everything_else() {
        for (errno, expected) in [(Errno::MFILE, true), (Errno::NFILE, true), (Errno::NOENT, false)] {
            assert_eq!(is_out_of_files(&io::Error::from(errno)), expected, "{errno}");
        }
    }
}
