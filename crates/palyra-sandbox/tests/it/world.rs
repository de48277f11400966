//! A workspace with something worth stealing next to it, and short ways to run a program in a sandbox.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use palyra_common::SandboxTier;
use palyra_sandbox::{
    Access, Child, ExitReport, Grant, HostFacts, Invocation, LauncherOptions, Place, Plan, Sandbox, SandboxError,
    Share, Stdio, plan,
};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The launcher of this crate; the copy of this program that runs without rights has it next to itself.
pub(crate) fn launcher() -> PathBuf {
    std::env::var_os("PALYRA_SANDBOX_TEST_LAUNCHER")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_palyra-sandbox-launcher")), PathBuf::from)
}

pub(crate) struct World {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) workspace: PathBuf,
    pub(crate) sandbox: Sandbox,
    pub(crate) host: HostFacts,
}

/// What a finished guest said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) report: ExitReport,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let workspace = directory.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let secret = directory.path().join("secret");
        fs::write(&secret, "the secret").unwrap();
        let sandbox = Sandbox::start(LauncherOptions { binary: launcher() }).unwrap();
        let host = sandbox.host_facts().unwrap();
        Self { workspace, sandbox, host, directory }
    }

    pub(crate) fn grant(&self, tier: SandboxTier) -> Grant {
        let place = Place::look(&self.workspace).unwrap();
        let mut grant = Grant::new(tier, Share { place, access: Access::ReadWrite });
        grant.scratch_root = self.directory.path().to_owned();
        grant
    }

    pub(crate) fn invocation(&self, program: &str, arguments: &[&str]) -> Invocation {
        let id = format!("t{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Invocation::new(id, program, &self.workspace).arguments(arguments.iter().copied())
    }

    pub(crate) fn plan(&self, grant: &Grant, invocation: &Invocation) -> Plan {
        plan(grant, &self.host, invocation).unwrap()
    }

    pub(crate) fn run(&self, tier: SandboxTier, program: &str, arguments: &[&str]) -> Ran {
        self.run_with(&self.grant(tier), &self.invocation(program, arguments), "").unwrap()
    }

    pub(crate) fn run_with(&self, grant: &Grant, invocation: &Invocation, input: &str) -> Result<Ran, SandboxError> {
        let plan = plan(grant, &self.host, invocation)?;
        let child = self.sandbox.spawn_blocking(&plan, Stdio::pipes())?;
        Ok(finish(child, input))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A compiled guest, where every user can execute it.
    pub(crate) fn guest(&self, guest: &str) -> PathBuf {
        let copy = self.path(guest);
        if !copy.exists() {
            fs::copy(crate::guests::compiled().join(guest), &copy).unwrap();
        }
        copy
    }

    /// Runs one of the compiled guests.
    pub(crate) fn run_guest(&self, mut grant: Grant, guest: &str, arguments: &[&str]) -> Ran {
        let program = self.guest(guest);
        grant.read_only.push(Place::look(&program).unwrap());
        let invocation = self.invocation(program.to_str().unwrap(), arguments);
        self.run_with(&grant, &invocation, "").unwrap()
    }

    /// Whether anything still runs whose command line mentions this world.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let mark = self.directory.path().to_str().unwrap();
        let own = std::process::id().to_string();
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy() != own)
            .filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok().map(|cwd| (entry, cwd)))
            .filter(|(_, cwd)| cwd.starts_with(mark))
            .map(|(entry, _)| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
            .collect()
    }
}

/// Feeds a child, reads everything it says and waits for its end.
pub(crate) fn finish(mut child: Child, input: &str) -> Ran {
    let mut stdin = fs::File::from(child.stdin.take().unwrap());
    // A guest that does not read its input closes the pipe.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let read = |stream: Option<std::os::fd::OwnedFd>| {
        let mut file = fs::File::from(stream.unwrap());
        thread::spawn(move || {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let report = child.wait_blocking().unwrap();
    Ran { report, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// Makes a file that can be executed.
pub(crate) fn executable(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
