//! Carrying out the steps of a plan, in order, stopping at the first that fails.
//!
//! INVARIANT: the program is executed only after every step has succeeded. There is no step whose failure is ignored.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::bpf::BpfProgram;
use super::sockets::Search;
use super::syscall::{Execution, MountUse, Standard, Syscall};
use crate::grant::{Access, Owner, PlaceKind};
use crate::plan::{FilterProfile, GUEST_GROUP, GUEST_USER, GuestIdentity, Plan, Program, Sockets, Step};
use crate::report::HiddenSockets;

/// The step that failed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Name of the step.
    pub(crate) step: String,
    /// What it was about, such as a path.
    pub(crate) subject: String,
    /// The kernel's error number, 0 if it was not the kernel.
    pub(crate) errno: i32,
    /// For people.
    pub(crate) reason: String,
}

impl Failure {
    pub(crate) fn new(step: &str, subject: impl Into<String>, error: &io::Error) -> Self {
        Self {
            step: step.to_owned(),
            subject: subject.into(),
            errno: error.raw_os_error().unwrap_or(0),
            reason: error.to_string(),
        }
    }
}

/// Standard input, output and error of the guest.
#[derive(Debug)]
pub(crate) struct Standards {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
}

/// Compiled filters.
pub(crate) type Filters = BTreeMap<FilterProfile, BpfProgram>;

/// What the steps need besides the plan: ids and descriptors that only the start knows.
#[derive(Debug)]
pub(crate) struct Context {
    /// The guest's ids on the host.
    pub(crate) host_ids: Owner,
    /// The user namespace in which they are mapped, if the guest enters one.
    pub(crate) user_namespace: Option<OwnedFd>,
    /// User namespaces that map the owner of a place to the guest.
    pub(crate) owners: BTreeMap<Owner, OwnedFd>,
    /// Compiled filters.
    pub(crate) filters: Arc<Filters>,
    /// Standard input, output and error.
    pub(crate) standards: Option<Standards>,
    /// What `source` and `device` took hold of.
    pub(crate) sources: BTreeMap<usize, OwnedFd>,
    /// What `listen` opened.
    pub(crate) listeners: Vec<OwnedFd>,
    /// Sockets of the host that are known to lie in shared places.
    pub(crate) known_sockets: Vec<PathBuf>,
    /// What `hide_sockets` did.
    pub(crate) hidden: HiddenSockets,
    /// To the process that makes supervised calls.
    pub(crate) supervisor: Option<OwnedFd>,
}

impl Context {
    /// With nothing but what is known before anyone asks.
    pub(crate) fn bare(host_ids: Owner, filters: Arc<Filters>) -> Self {
        Self {
            host_ids,
            user_namespace: None,
            owners: BTreeMap::new(),
            filters,
            standards: None,
            sources: BTreeMap::new(),
            listeners: Vec::new(),
            known_sockets: Vec::new(),
            hidden: HiddenSockets::default(),
            supervisor: None,
        }
    }
}

/// Carries out steps, in order.
pub(crate) fn carry_out(
    steps: &[Step],
    identity: GuestIdentity,
    context: &mut Context,
    kernel: &mut dyn Syscall,
) -> Result<(), Failure> {
    for step in steps {
        one(step, identity, context, kernel).map_err(|error| Failure::new(step.name(), subject(step), &error))?;
    }
    Ok(())
}

/// Carries out the guest's steps and executes the program, having announced it. Returns only if that did not happen.
pub(crate) fn enter(
    plan: &Plan,
    context: &mut Context,
    kernel: &mut dyn Syscall,
    announce: &mut dyn FnMut() -> io::Result<()>,
) -> Failure {
    if let Err(failure) = carry_out(&plan.guest, plan.identity, context, kernel) {
        return failure;
    }
    if let Err(error) = announce() {
        return Failure::new("announce", "", &error);
    }
    match &plan.program {
        Program::File { name, candidates } => {
            let (arguments, environment) = (&plan.arguments, &plan.environment);
            let error = kernel.execute(&Execution { name, candidates, arguments, environment });
            Failure::new("execute", name, &error)
        }
        Program::Checks => Failure {
            step: "execute".to_owned(),
            subject: String::new(),
            errno: 0,
            reason: "the checks are not a program".to_owned(),
        },
    }
}

fn one(step: &Step, identity: GuestIdentity, context: &mut Context, kernel: &mut dyn Syscall) -> io::Result<()> {
    let private = identity == GuestIdentity::Private;
    match step {
        Step::FirstToGo => kernel.first_to_go(),
        Step::MapCaller => kernel.map_caller(Owner { uid: GUEST_USER, gid: GUEST_GROUP }, context.host_ids),
        Step::MapSelf => kernel.map_caller(context.host_ids, context.host_ids),
        Step::LimitInotify(limits) => kernel.limit_inotify(*limits),
        Step::Hostname(name) => kernel.set_hostname(name),
        Step::LoopbackUp => kernel.loopback_up(),
        Step::Listen(port) => {
            let listener = kernel.listen(*port)?;
            context.listeners.push(listener);
            Ok(())
        }
        Step::PrivateMounts => kernel.make_mounts_private(),
        Step::Source { slot, path, access, mapped } => {
            let tree = kernel.open_tree(path)?;
            let usage = match access {
                Access::ReadOnly => MountUse::ReadOnly,
                Access::ReadWrite => MountUse::ReadWrite,
            };
            let owners = match mapped {
                None => None,
                Some(owner) => Some(context.owners.get(owner).ok_or_else(|| missing("a mapping of owners"))?.as_fd()),
            };
            kernel.restrict_mount(tree.as_fd(), usage, owners)?;
            context.sources.insert(*slot, tree);
            Ok(())
        }
        Step::Device { slot, path } => {
            let tree = kernel.open_tree(path)?;
            kernel.restrict_mount(tree.as_fd(), MountUse::Device, None)?;
            context.sources.insert(*slot, tree);
            Ok(())
        }
        Step::Root => kernel.new_root(),
        Step::Directory(path) => kernel.make_directories(inside(path)),
        Step::Text { path, content } => {
            make_parent(path, kernel)?;
            kernel.write_file(inside(path), content)
        }
        Step::Link { path, target } => {
            make_parent(path, kernel)?;
            kernel.make_link(inside(path), target)
        }
        Step::Attach { slot, path, kind } => {
            let source = context.sources.remove(slot).ok_or_else(|| missing("a source"))?;
            match kind {
                PlaceKind::Directory => kernel.make_directories(inside(path))?,
                PlaceKind::File => {
                    make_parent(path, kernel)?;
                    kernel.write_file(inside(path), "")?;
                }
            }
            kernel.attach(source.as_fd(), inside(path))
        }
        Step::Cover { slot, path } => {
            let source = context.sources.remove(slot).ok_or_else(|| missing("a source"))?;
            kernel.cover(source.as_fd(), path)
        }
        Step::Scratch { path, bytes, mode } => {
            kernel.make_directories(inside(path))?;
            // In a user namespace of one's own the mount belongs to its maker, which is the guest already.
            let owner = private.then_some(context.host_ids);
            kernel.mount_scratch(inside(path), *bytes, *mode, owner)
        }
        Step::Terminals => {
            kernel.make_directories(Path::new("dev/pts"))?;
            kernel.mount_terminals(Path::new("dev/pts"))
        }
        Step::Proc => {
            kernel.make_directories(Path::new("proc"))?;
            kernel.mount_proc(Path::new("proc"))
        }
        Step::CoverProc => kernel.cover_proc(),
        Step::CoverScratch { path, bytes, mode } => {
            kernel.cover_scratch(path, *bytes, *mode, private.then_some(context.host_ids))
        }
        Step::ScratchText { path, content } => kernel.write_scratch(path, content, private.then_some(context.host_ids)),
        Step::HideSockets { writable, read_only } => {
            let known = std::mem::take(&mut context.known_sockets);
            context.hidden = kernel.hide_sockets(Search { writable, read_only, known: &known })?;
            Ok(())
        }
        Step::Pivot => kernel.pivot(),
        Step::DieWithParent => kernel.die_with_parent(),
        Step::Session => kernel.new_session(),
        Step::ControllingTerminal => kernel.take_terminal(),
        Step::Stdio => {
            let standards = context.standards.as_ref().ok_or_else(|| missing("standard input"))?;
            kernel.place_standard(Standard::Input, standards.input.as_fd())?;
            kernel.place_standard(Standard::Output, standards.output.as_fd())?;
            kernel.place_standard(Standard::Error, standards.error.as_fd())
        }
        Step::Limit { resource, value } => kernel.limit(*resource, *value),
        Step::LeaveGroups => kernel.leave_groups(),
        Step::EnterUserNamespace => {
            let namespace = context.user_namespace.as_ref().ok_or_else(|| missing("a user namespace"))?;
            kernel.enter_user_namespace(namespace.as_fd())
        }
        Step::BoundCapabilities => kernel.bound_capabilities(),
        Step::BecomeGuest => {
            let entered = context.user_namespace.is_some();
            let ids = if entered { Owner { uid: GUEST_USER, gid: GUEST_GROUP } } else { context.host_ids };
            kernel.become_user(ids)
        }
        Step::DropCapabilities => kernel.drop_capabilities(),
        Step::NoNewPrivileges => kernel.no_new_privileges(),
        Step::Undumpable => kernel.undumpable(),
        Step::WorkingDirectory(path) => kernel.change_directory(path),
        Step::Landlock(rules) => kernel.landlock(rules),
        Step::CloseDescriptors => kernel.close_descriptors(),
        Step::Seccomp(profile) => {
            let mut profile = *profile;
            if context.hidden.unix_sockets_refused && profile.sockets == Sockets::Isolated {
                profile.sockets = Sockets::IsolatedWithoutUnix;
            }
            restrict_calls(profile, context, kernel)
        }
    }
}

/// Where the kernel gives no listener, such as to a daemon whose own filter has one already, the guest goes without what would have been supervised.
fn restrict_calls(profile: FilterProfile, context: &Context, kernel: &mut dyn Syscall) -> io::Result<()> {
    let program = |profile| context.filters.get(&profile).ok_or_else(|| missing("a compiled filter"));
    if !profile.is_supervised() {
        return kernel.seccomp(program(profile)?, None);
    }
    let supervisor = context.supervisor.as_ref().ok_or_else(|| missing("a supervisor"))?;
    match kernel.seccomp(program(profile)?, Some(supervisor.as_fd())) {
        Err(error)
            if [Errno::BUSY, Errno::INVAL].map(|known| Some(known.raw_os_error())).contains(&error.raw_os_error()) =>
        {
            kernel.seccomp(program(profile.unsupervised())?, None)
        }
        result => result,
    }
}

fn make_parent(path: &Path, kernel: &mut dyn Syscall) -> io::Result<()> {
    match inside(path).parent() {
        Some(parent) if !parent.as_os_str().is_empty() => kernel.make_directories(parent),
        _ => Ok(()),
    }
}

/// The path relative to the new root, which is the working directory while it is filled.
fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn missing(what: &str) -> io::Error {
    io::Error::other(format!("{what} is missing from the start"))
}

fn subject(step: &Step) -> String {
    match step {
        Step::Source { path, .. }
        | Step::Device { path, .. }
        | Step::Directory(path)
        | Step::Text { path, .. }
        | Step::Link { path, .. }
        | Step::Attach { path, .. }
        | Step::Cover { path, .. }
        | Step::Scratch { path, .. }
        | Step::CoverScratch { path, .. }
        | Step::ScratchText { path, .. }
        | Step::WorkingDirectory(path) => path.display().to_string(),
        Step::Listen(port) => port.to_string(),
        Step::Limit { resource, .. } => resource.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod setup_tests;
