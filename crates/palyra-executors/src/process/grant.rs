//! From a call to the narrowest grant: the workspace, what the operator shares, and the limits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use palyra_common::{ErrorCategory, SandboxTier, StableErrorEnvelope};
use palyra_sandbox::{
    Access, Grant, Invocation as Process, Limits, Network, Place, Plan, ProxyPorts, SandboxError, Share, TerminalSize,
    missing_for, plan,
};
use palyra_tools::{EffectId, ToolError, Workspace};

use super::input::Wanted;
use super::network::{BUNDLE_VARIABLES, WayOut};
use super::options::ProcessOptions;
use super::readiness::{Ready, refused};

/// Lines of a terminal that a program is given.
const TERMINAL_ROWS: u16 = 40;

/// The exact plan of a process; blocks, because it looks at paths.
pub(super) fn planned(
    options: &ProcessOptions,
    ready: &Ready,
    workspace: &Workspace,
    effect_id: &EffectId,
    wanted: &Wanted,
    way_out: Option<&WayOut>,
) -> Result<Plan, ToolError> {
    let mut grant = granted(options, workspace)?;
    let place = |path: &Path| Place::look(path).map_err(|error| refused(&error));
    grant.limits = Limits {
        cpu: options.cpu,
        wall: wanted.wall.max(Duration::from_secs(1)),
        memory_bytes: options.memory_bytes,
        processes: options.processes,
        ..Limits::default()
    };
    // Tier B has no network of its own in which only the proxy could be reached, so a host that gives no more gives no network.
    let isolated = missing_for(SandboxTier::C, &ready.host).is_empty();
    grant.network = if isolated && way_out.is_some() { Network::Proxy(ProxyPorts::default()) } else { Network::None };
    grant.environment = options.environment.iter().map(|(name, _)| name.clone()).collect();
    let mut process = process(options, workspace, effect_id, wanted)?;
    if let Some(bundle) = way_out.and_then(WayOut::bundle) {
        grant.read_only.push(place(bundle)?);
        for name in BUNDLE_VARIABLES {
            grant.environment.push(name.to_owned());
            process.environment.push((name.to_owned(), bundle.display().to_string()));
        }
    }
    for (name, value) in toolchain_variables(&grant) {
        let known = process.environment.iter().any(|(set, _)| set == name);
        if !known {
            grant.environment.push(name.to_owned());
            process.environment.push((name.to_owned(), value));
        }
    }
    let plan = plan(&grant, &ready.host, &process).map_err(|error| refused(&error))?;
    ready.require(plan.tier())?;
    Ok(plan)
}

/// Whether a process could be planned, as far as that does not depend on what the workspace holds: calls before this one may still make its program and its
/// directory.
pub(super) fn check(options: &ProcessOptions, workspace: &Workspace, wanted: &Wanted) -> Result<(), ToolError> {
    let grant = granted(options, workspace)?;
    if let Some(cwd) = wanted.cwd.as_deref().filter(|cwd| !cwd.is_empty()) {
        workspace.path(cwd)?;
    }
    let Some(program) = wanted.argv.first() else { return Ok(()) };
    // Only names are looked up, in the places that programs are started from: nobody decided yet, and whether any other file of the host exists is not to be
    // learned here.
    let may_be_there = |path: &Path| path.starts_with(workspace.root()) || path.exists();
    let found = program.contains('/') || grant.program_path.iter().any(|place| may_be_there(&place.join(program)));
    if found { Ok(()) } else { Err(refused(&SandboxError::ProgramNotFound { program: program.clone() })) }
}

/// What every process gets: the workspace, and what the operator shares.
fn granted(options: &ProcessOptions, workspace: &Workspace) -> Result<Grant, ToolError> {
    let root = workspace.root();
    if let Some(own) = hidden(root, &options.protected).first() {
        let message = format!(
            "the workspace contains `{}`, which belongs to Palyra and must stay hidden from processes",
            own.display()
        );
        let refusal = StableErrorEnvelope::new("workspace_holds_state", ErrorCategory::Conflict, message)
            .hint("work in a directory that does not contain Palyra's own state");
        return Err(ToolError::Custom(Box::new(refusal)));
    }
    let place = Place::look(root).map_err(|error| refused(&error))?;
    let mut grant = Grant::new(options.tier, Share { place, access: Access::ReadWrite });
    grant.fallback = options.fallback;
    grant.read_only = options.read_only.iter().filter_map(|path| Place::look(path).ok()).collect();
    let programs = grant.read_only.iter().filter(|place| place.path.ends_with("bin")).map(|place| place.path.clone());
    let programs: Vec<PathBuf> = programs.chain(grant.program_path.iter().cloned()).collect();
    grant.program_path = programs;
    Ok(grant)
}

fn process(
    options: &ProcessOptions,
    workspace: &Workspace,
    effect_id: &EffectId,
    wanted: &Wanted,
) -> Result<Process, ToolError> {
    let directory = working_directory(workspace, wanted)?;
    let (program, arguments) = wanted.argv.split_first().ok_or_else(|| ToolError::Internal("no program".to_owned()))?;
    let id: String = effect_id.to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let mut process = Process::new(id, program.clone(), directory).arguments(arguments.iter().cloned());
    let inherited = options.environment.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    process.environment = inherited.filter(|(name, _)| !wanted.env.contains_key(name)).collect();
    process.environment.extend(wanted.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    process.terminal = wanted.terminal_columns.map(|columns| TerminalSize { rows: TERMINAL_ROWS, columns });
    Ok(process)
}

/// Where shared Rust toolchains lie: `rustup` and `cargo` look in the home directory, which is a private one inside.
///
/// A process with network keeps a private `CARGO_HOME`, into which it can download. One without gets the shared one, in which only what the operator shares exists:
/// programs and the registry, read-only, and never the credentials that lie beside them.
fn toolchain_variables(grant: &Grant) -> Vec<(&'static str, String)> {
    let text = |path: &Path| path.display().to_string();
    let shared =
        |name: &str| grant.read_only.iter().map(|place| place.path.as_path()).find(|path| path.ends_with(name));
    let rustup = shared(".rustup").map(|path| ("RUSTUP_HOME", text(path)));
    let registry = shared(".cargo/registry").filter(|_| grant.network == Network::None);
    let cargo = registry.and_then(Path::parent).map(|path| ("CARGO_HOME", text(path)));
    rustup.into_iter().chain(cargo).collect()
}

/// Where a process starts.
fn working_directory(workspace: &Workspace, wanted: &Wanted) -> Result<PathBuf, ToolError> {
    match wanted.cwd.as_deref() {
        None | Some("") => Ok(workspace.root().to_owned()),
        Some(cwd) => workspace.directory(cwd),
    }
}

/// Palyra's own places that lie inside the workspace.
fn hidden(root: &Path, protected: &[PathBuf]) -> Vec<PathBuf> {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    protected.iter().map(real).filter(|path| path.starts_with(root) && path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use palyra_sandbox::{Owner, PlaceKind};

    use super::*;

    fn grant(read_only: &[&str], network: Network) -> Grant {
        let place = |path: &str| Place {
            path: PathBuf::from(path),
            kind: PlaceKind::Directory,
            owner: Owner { uid: 1000, gid: 1000 },
        };
        let mut grant = Grant::new(SandboxTier::C, Share { place: place("/work"), access: Access::ReadWrite });
        grant.read_only = read_only.iter().map(|path| place(path)).collect();
        grant.network = network;
        grant
    }

    #[test]
    fn shared_toolchains_are_found_from_a_private_home() {
        let shared = ["/home/ada/.cargo/bin", "/home/ada/.cargo/registry", "/home/ada/.rustup"];
        let rustup = ("RUSTUP_HOME", "/home/ada/.rustup".to_owned());
        let cargo = ("CARGO_HOME", "/home/ada/.cargo".to_owned());
        assert_eq!(toolchain_variables(&grant(&shared, Network::None)), [rustup.clone(), cargo]);
        // One that can download needs a place to put it.
        assert_eq!(toolchain_variables(&grant(&shared, Network::Proxy(ProxyPorts::default()))), [rustup]);
        assert_eq!(toolchain_variables(&grant(&["/home/ada/.nvm"], Network::None)), []);
    }
}
