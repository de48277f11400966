//! What a sandbox costs: from asking for `true` to having seen its end, against other ways to start it, in one run.
//!
//! - `sandbox.c`: tier C against `bwrap` with the same namespaces and mounts; `sandbox.c.unshare` against util-linux `unshare` with the same
//!   namespaces and a new `/proc` alone. Ours also has Landlock, a filter of system calls, resource limits and control groups; theirs have not.
//! - `sandbox.c.cold`: the same when no room was made ready ahead, as for the first start and when many start at once.
//! - `sandbox.b`: tier B against a plain fork and exec.
//! - `sandbox.concurrent64`: how many of 64 sandboxes started at once failed.
//! - `escape.tried`, `escape.passed`: the built-in battery in tier C. The larger one, with hostile programs, is in this crate's tests.
//!
//! Making the plan counts, probing the host does not: the daemon does that once. A pause before each run lets what the one before set off (the end of
//! a network namespace, the next room) come to rest, for all alike. Left out: what a program itself does slower inside.

use std::path::Path;
use std::process::{Command, Stdio as ProcessStdio};
use std::time::{Duration, Instant};

use palyra_common::SandboxTier;
use palyra_figures::{Aim, Report, Samples};
use palyra_sandbox::{
    Access, Grant, HostFacts, Invocation, LauncherOptions, Place, Sandbox, Share, Stdio, explain, plan, prove,
};

type Failure = Box<dyn std::error::Error>;

const RUNS: usize = 100;
const WARM_UP: usize = 5;
const PAUSE: Duration = Duration::from_millis(15);
const PROGRAM: &str = "/usr/bin/true";

fn main() -> Result<(), Failure> {
    let sandbox = Sandbox::start(LauncherOptions { binary: env!("CARGO_BIN_EXE_palyra-sandbox-launcher").into() })?;
    let host = sandbox.host_facts()?;
    println!("{}\n", explain(&host).host);
    let directory = tempfile::tempdir_in("/var/tmp")?;
    let workspace = directory.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    let mut report = Report::new("spawn");
    latency(&mut report, &sandbox, &host, &workspace)?;
    concurrent(&mut report, &sandbox, &host, &workspace)?;
    escapes(&mut report, &sandbox, &host, directory.path())?;
    report.finish()?;
    Ok(())
}

fn grant(tier: SandboxTier, workspace: &Path) -> Result<Grant, Failure> {
    let mut grant = Grant::new(tier, Share { place: Place::look(workspace)?, access: Access::ReadWrite });
    grant.scratch_root = workspace.parent().ok_or("no parent")?.to_owned();
    Ok(grant)
}

/// The same grant with private directories of another size, which no room that is ready has.
fn odd(grant: &Grant, run: usize) -> Grant {
    let mut grant = grant.clone();
    grant.limits.scratch_bytes += (run as u64 + 1) << 12;
    grant
}

fn ours(sandbox: &Sandbox, host: &HostFacts, grant: &Grant, id: String) -> Result<f64, Failure> {
    let began = Instant::now();
    let invocation = Invocation::new(id, PROGRAM, &grant.workspace.place.path);
    let plan = plan(grant, host, &invocation)?;
    let report = sandbox.spawn_blocking(&plan, Stdio::default())?.wait_blocking()?;
    let took = began.elapsed().as_secs_f64();
    if report.exit.success() { Ok(took) } else { Err(format!("it ended with {report:?}").into()) }
}

fn theirs(command: &mut Command) -> Result<f64, Failure> {
    command.stdin(ProcessStdio::null()).stdout(ProcessStdio::null());
    let began = Instant::now();
    let status = command.status().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let took = began.elapsed().as_secs_f64();
    if status.success() { Ok(took) } else { Err(format!("{command:?} ended with {status}").into()) }
}

fn bwrap(workspace: &Path) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"]);
    command.args([
        "--ro-bind",
        "/usr",
        "/usr",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "--tmpfs",
        "/home/agent",
    ]);
    for link in ["bin", "sbin", "lib", "lib64"] {
        command.args(["--symlink", &format!("usr/{link}"), &format!("/{link}")]);
    }
    for file in ["/etc/ld.so.cache", "/etc/ssl/certs", "/etc/alternatives"] {
        command.args(["--ro-bind-try", file, file]);
    }
    command.arg("--bind").arg(workspace).arg(workspace).arg("--chdir").arg(workspace).arg(PROGRAM);
    command
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--net",
        "--ipc",
        "--uts",
        "--fork",
        "--mount-proc",
        PROGRAM,
    ]);
    command
}

fn latency(report: &mut Report, sandbox: &Sandbox, host: &HostFacts, workspace: &Path) -> Result<(), Failure> {
    let (grant_b, grant_c) = (grant(SandboxTier::B, workspace)?, grant(SandboxTier::C, workspace)?);
    let mut times: [Vec<f64>; 6] = Default::default();
    // In turns, so that a slow moment of the machine hits all.
    for run in 0..RUNS + WARM_UP {
        let rested = |result: Result<f64, Failure>| {
            std::thread::sleep(PAUSE);
            result
        };
        let round = [
            rested(theirs(&mut Command::new(PROGRAM)))?,
            rested(ours(sandbox, host, &grant_b, format!("bench-b-{run}")))?,
            rested(ours(sandbox, host, &odd(&grant_c, run), format!("bench-cold-{run}")))?,
            // Of two alike, the second finds the room that the first left ready.
            rested(ours(sandbox, host, &grant_c, format!("bench-again-{run}")).and_then(|_| {
                std::thread::sleep(PAUSE);
                ours(sandbox, host, &grant_c, format!("bench-c-{run}"))
            }))?,
            rested(theirs(&mut bwrap(workspace)))?,
            rested(theirs(&mut unshare()))?,
        ];
        if run >= WARM_UP {
            times.iter_mut().zip(round).for_each(|(all, one)| all.push(one));
        }
    }
    let [plain, tier_b, cold, tier_c, bwrap, unshare] = times;
    let mut ratio = |id: &str, ours: &[f64], theirs: &[f64], reference: &str, aim: Aim| -> Result<(), Failure> {
        let (ours, theirs) = (samples(ours)?, samples(theirs)?);
        report.figure(
            id,
            ours.median() / theirs.median(),
            "ratio",
            Some(reference),
            aim,
            RUNS as u64,
            Some(ours.spread()),
        );
        Ok(())
    };
    ratio("sandbox.c", &tier_c, &bwrap, "bwrap with the same namespaces and mounts", Aim::AtMost(0.5))?;
    ratio("sandbox.c.cold", &cold, &bwrap, "bwrap with the same namespaces and mounts", Aim::None)?;
    ratio("sandbox.c.unshare", &tier_c, &unshare, "unshare with the same namespaces", Aim::AtMost(1.0))?;
    ratio("sandbox.c.plain", &tier_c, &plain, "plain fork and exec", Aim::None)?;
    ratio("sandbox.b", &tier_b, &plain, "plain fork and exec", Aim::None)?;
    let all = [
        ("plain", &plain),
        ("tier_b", &tier_b),
        ("tier_c", &tier_c),
        ("tier_c_cold", &cold),
        ("bwrap", &bwrap),
        ("unshare", &unshare),
    ];
    for (id, values) in all {
        let samples = samples(values)?;
        let id = format!("sandbox.time.{id}");
        report.figure(&id, samples.median() * 1e3, "ms", None, Aim::None, RUNS as u64, Some(samples.spread()));
    }
    Ok(())
}

fn samples(values: &[f64]) -> Result<Samples, Failure> {
    Samples::from_values(values.to_vec()).ok_or_else(|| "no samples".into())
}

fn concurrent(report: &mut Report, sandbox: &Sandbox, host: &HostFacts, workspace: &Path) -> Result<(), Failure> {
    let grant = grant(SandboxTier::C, workspace)?;
    let began = Instant::now();
    let failures = std::thread::scope(|scope| {
        let all: Vec<_> = (0..64)
            .map(|number| {
                let grant = &grant;
                scope.spawn(move || ours(sandbox, host, grant, format!("bench-many-{number}")).is_err())
            })
            .collect();
        all.into_iter().filter_map(|one| one.join().ok()).filter(|failed| *failed).count()
    });
    report.figure("sandbox.concurrent64", failures as f64, "failures", None, Aim::AtMost(0.0), 64, None);
    let took = began.elapsed().as_secs_f64() * 1e3;
    report.figure("sandbox.concurrent64.time", took, "ms", None, Aim::None, 64, None);
    Ok(())
}

fn escapes(report: &mut Report, sandbox: &Sandbox, host: &HostFacts, directory: &Path) -> Result<(), Failure> {
    let proof = prove(sandbox, host, SandboxTier::C, directory)?;
    let tried = proof.checks.len();
    let passed = proof.checks.iter().filter(|check| !check.held).count();
    report.figure("escape.tried", tried as f64, "attempts", None, Aim::AtLeast(60.0), tried as u64, None);
    report.figure("escape.passed", passed as f64, "escapes", None, Aim::AtMost(0.0), tried as u64, None);
    Ok(())
}
