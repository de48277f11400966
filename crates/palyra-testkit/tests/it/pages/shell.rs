//! One shell with an empty home, in which a page is typed command by command.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use palyra_testkit::Binary;
use tempfile::TempDir;

pub(super) struct Shell {
    directory: TempDir,
    process: Child,
    input: Option<ChildStdin>,
    statuses: BufReader<ChildStdout>,
}

/// What a command did.
pub(super) struct Typed {
    pub(super) code: i32,
    pub(super) output: String,
}

impl Shell {
    /// Nothing of the person who runs the tests is seen but compilers and their caches; ports are free ones.
    pub(super) fn start() -> Self {
        let directory = TempDir::with_prefix("palyra-page-").unwrap();
        let home = directory.path().join("home");
        fs::create_dir(&home).unwrap();
        let mut command = isolated(Command::new("bash"), &home);
        command.args(["--noprofile", "--norc"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let statuses = BufReader::new(process.stdout.take().unwrap());
        Self { directory, process, input, statuses }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Types one command and waits for its end. What it says goes to a file: a daemon that it starts would keep a pipe open.
    pub(super) fn run(&mut self, command: &str) -> Typed {
        let output = self.directory.path().join("output");
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{{\n{command}\n}} </dev/null >'{}' 2>&1\necho $?", output.display()).unwrap();
        input.flush().unwrap();
        let mut status = String::new();
        self.statuses.read_line(&mut status).unwrap();
        let output = String::from_utf8_lossy(&fs::read(&output).unwrap_or_default()).into_owned();
        let code = status.trim().parse().unwrap_or_else(|_| panic!("the shell ended at `{command}`: {output}"));
        Typed { code, output }
    }

    /// Where the daemon of this home listens.
    pub(super) fn daemon_address(&self) -> String {
        fs::read_to_string(self.home().join(".local/state/palyra/http.addr")).unwrap().trim().to_owned()
    }
}

fn isolated(mut command: Command, home: &Path) -> Command {
    let programs = Binary::Palyra.path().unwrap().parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let own_home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    command.env_clear().current_dir(home).env("HOME", home).env("PATH", format!("{}:{path}", programs.display()));
    for (name, fallback) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("XDG_CACHE_HOME", ".cache")] {
        command.env(name, std::env::var_os(name).map_or_else(|| own_home.join(fallback), PathBuf::from));
    }
    for transport in ["DAEMON_HTTP", "GRPC", "QUIC"] {
        command.env(format!("PALYRA_{transport}_BIND"), "127.0.0.1:0");
    }
    command.env("LANG", "C.UTF-8");
    command
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The page may have left a daemon running; it must not outlive its home.
        let mut stop = isolated(Command::new(Binary::Palyra.path().unwrap()), &self.home());
        let _ = stop.args(["daemon", "stop"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
