//! Refusing what must not reach the kernel: bad limits, bad texts, shares over the system, tiers the host cannot give.

use std::path::{Component, Path};

use palyra_common::SandboxTier;

use super::room::GUEST_HOME;
use crate::error::PlanError;
use crate::grant::{Grant, Invocation, Limits, PlaceKind};
use crate::host::{HostFacts, Privilege};

/// The kernel's limit for one argument or variable, with its final zero byte.
const LONGEST_TEXT: usize = 128 * 1024;
/// All arguments and variables together: half of the least stack that Linux gives by default, so that the program still starts.
const LONGEST_SUM: usize = 1024 * 1024;
/// Roots of what the new root puts into place itself; a share above one of these would hide it.
const RESERVED: [&str; 9] = ["/usr", "/etc/passwd", "/proc", "/dev", "/sys", "/tmp", "/run", "/bin", GUEST_HOME];
/// Nothing below these is ever shared: they are windows into the kernel.
const FORBIDDEN: [&str; 3] = ["/proc", "/sys", "/dev"];

/// What the host lacks for a tier; empty if it can be given.
#[must_use]
pub fn missing_for(tier: SandboxTier, host: &HostFacts) -> Vec<String> {
    let mut missing = Vec::new();
    if host.landlock == 0 {
        missing.push("the kernel has no Landlock".to_owned());
    }
    if let Some(reason) = host.seccomp.failure() {
        missing.push(format!("system calls cannot be filtered ({reason})"));
    }
    if tier == SandboxTier::C {
        if let Some(reason) = host.user_namespace.failure() {
            missing.push(format!("user namespaces are not available ({reason})"));
        }
        if let Some(reason) = host.isolation.failure() {
            missing.push(format!("the namespaces cannot be set up ({reason})"));
        }
    }
    if host.privilege == Privilege::Root
        && let Some(reason) = host.mapped_mounts.failure()
    {
        missing.push(format!("root needs mounts with mapped owners, which fail ({reason}); run the daemon as a user"));
    }
    missing
}

pub(super) fn check(grant: &Grant, invocation: &Invocation) -> Result<(), PlanError> {
    check_limits(&grant.limits)?;
    check_shares(grant)?;
    check_texts(invocation)?;
    check_environment(grant, invocation)?;
    check_directory(grant, invocation)
}

fn check_limits(limits: &Limits) -> Result<(), PlanError> {
    let Limits { cpu, wall, memory_bytes, processes, open_files, file_bytes, written_bytes, scratch_bytes } = limits;
    let all = [
        ("cpu", cpu.is_zero()),
        ("wall", wall.is_zero()),
        ("memory_bytes", *memory_bytes == 0),
        ("processes", *processes == 0),
        ("open_files", *open_files == 0),
        ("file_bytes", *file_bytes == 0),
        ("written_bytes", *written_bytes == 0),
        ("scratch_bytes", *scratch_bytes == 0),
    ];
    match all.into_iter().find(|(_, zero)| *zero) {
        Some((limit, _)) => Err(PlanError::LimitZero { limit }),
        None => Ok(()),
    }
}

fn check_shares(grant: &Grant) -> Result<(), PlanError> {
    for (place, _) in grant.shares() {
        let refused = |reason| Err(PlanError::PlaceReserved { path: place.path.clone(), reason });
        if !is_plain(&place.path) {
            return refused("the path is not absolute, has `..` in it or is not text");
        }
        if FORBIDDEN.iter().any(|root| place.path.starts_with(root)) {
            return refused("it is a kernel interface");
        }
        if RESERVED.iter().any(|root| Path::new(root).starts_with(&place.path)) {
            return refused("it would cover a part of the sandbox's own root");
        }
    }
    if grant.workspace.place.kind != PlaceKind::Directory {
        let path = grant.workspace.place.path.clone();
        return Err(PlanError::PlaceReserved { path, reason: "a workspace must be a directory" });
    }
    Ok(())
}

/// Absolute, without `..`, text without zero bytes: what can be a mount point and a line of a plan.
fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && path.to_str().is_some_and(|text| !text.contains('\0'))
}

fn check_texts(invocation: &Invocation) -> Result<(), PlanError> {
    let invalid = |what: String, reason| Err(PlanError::ArgumentInvalid { what, reason });
    let id = &invocation.id;
    if id.is_empty() || id.len() > 128 || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        return invalid(format!("the id `{}`", id.escape_default()), "it must be 1 to 128 letters, digits, `-` or `_`");
    }
    if invocation.program.is_empty() {
        return invalid("the program".to_owned(), "its name is empty");
    }
    let mut sum = 0;
    let named = std::iter::once(("the program".to_owned(), invocation.program.len(), invocation.program.as_str()))
        .chain(invocation.arguments.iter().enumerate().map(|(at, text)| {
            let what = format!("argument {}", at.saturating_add(1));
            (what, text.len(), text.as_str())
        }))
        .chain(invocation.environment.iter().map(|(name, value)| {
            (format!("the variable `{}`", name.escape_default()), name.len() + value.len() + 1, value.as_str())
        }));
    for (what, bytes, text) in named {
        if text.contains('\0') {
            return invalid(what, "it contains a zero byte");
        }
        if bytes >= LONGEST_TEXT {
            return Err(PlanError::ArgumentsTooLong { what, bytes, limit: LONGEST_TEXT - 1 });
        }
        sum += bytes + 1;
    }
    if sum > LONGEST_SUM {
        let what = "all arguments and variables together".to_owned();
        return Err(PlanError::ArgumentsTooLong { what, bytes: sum, limit: LONGEST_SUM });
    }
    Ok(())
}

fn check_environment(grant: &Grant, invocation: &Invocation) -> Result<(), PlanError> {
    for (name, _) in &invocation.environment {
        if name.is_empty() || name.contains(['=', '\0']) {
            let what = format!("the variable `{}`", name.escape_default());
            return Err(PlanError::ArgumentInvalid {
                what,
                reason: "its name is empty or contains `=` or a zero byte",
            });
        }
        if !grant.environment.contains(name) {
            return Err(PlanError::VariableNotGranted { name: name.clone() });
        }
    }
    Ok(())
}

fn check_directory(grant: &Grant, invocation: &Invocation) -> Result<(), PlanError> {
    let path = &invocation.working_directory;
    let inside = is_plain(path)
        && grant.shares().any(|(place, _)| place.kind == PlaceKind::Directory && path.starts_with(&place.path));
    if inside { Ok(()) } else { Err(PlanError::WorkingDirectoryOutside { path: path.clone() }) }
}
