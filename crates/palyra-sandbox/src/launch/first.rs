//! The first process of a sandbox.
//!
//! In tier C it is process 1 of its namespace: it prepares the root, starts the guest, reaps what nobody else reaps, tells the supervisor how
//! the guest ended, and with its own end takes everything else along. In tier B it becomes the guest.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use palyra_common::SandboxTier;
use serde::{Deserialize, Serialize};

use super::kernel::Kernel;
use super::setup::{self, Context, Failure};
use super::supervisor::ANNOUNCED;
use super::syscall::Syscall as _;
use super::wire;
use crate::plan::{Plan, Program};
use crate::prove;
use crate::sys::{self, Forked, Patience};

/// From the first process to the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Inner {
    /// The attached sockets listen on the private loopback.
    Listening,
    /// The guest ended with this raw status.
    Ended(i32),
}

/// Does not return: it ends, or becomes the guest's program.
pub(super) fn run(plan: &Plan, mut context: Context, inner: &OwnedFd, mut announce: File) -> ! {
    let mut kernel = Kernel::new();
    if let Err(failure) = setup::carry_out(&plan.room, plan.identity, &mut context, &mut kernel) {
        fail(&mut announce, &failure)
    }
    if plan.tier == SandboxTier::B {
        guest(plan, context, &mut kernel, announce)
    }
    if let Err(failure) = hand_over(plan, &mut context, inner) {
        fail(&mut announce, &failure)
    }
    match sys::fork(0) {
        Err(error) => fail(&mut announce, &Failure::new("fork", "", &error)),
        Ok(Forked::Child) => guest(plan, context, &mut Kernel::new(), announce),
        Ok(Forked::Parent(pid)) => {
            drop((context, announce));
            // From here on this process only waits; it needs no rights for that.
            let bare = kernel
                .bound_capabilities()
                .and_then(|()| kernel.drop_capabilities())
                .and_then(|()| kernel.no_new_privileges());
            if bare.is_err() {
                sys::exit(1)
            }
            loop {
                match sys::wait4(None, Patience::Block) {
                    Ok(Some(waited)) if waited.pid == pid => {
                        let _ = wire::send(inner.as_fd(), &Inner::Ended(waited.status), &[]);
                        sys::exit(0)
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => sys::exit(1),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => sys::exit(1),
                }
            }
        }
    }
}

fn hand_over(plan: &Plan, context: &mut Context, inner: &OwnedFd) -> Result<(), Failure> {
    if plan.listeners.is_none() {
        return Ok(());
    }
    let listeners = std::mem::take(&mut context.listeners);
    let attached: Vec<_> = listeners.iter().map(|fd| fd.as_fd()).collect();
    wire::send(inner.as_fd(), &Inner::Listening, &attached).map_err(|error| Failure::new("listen", "", &error))
}

fn guest(plan: &Plan, mut context: Context, kernel: &mut Kernel, mut announce: File) -> ! {
    if plan.program == Program::Checks {
        checks(plan, context, kernel, announce)
    }
    let mut pipe = match announce.try_clone() {
        Ok(pipe) => pipe,
        Err(error) => fail(&mut announce, &Failure::new("pipe", "", &error)),
    };
    let failure = setup::enter(plan, &mut context, kernel, &mut || pipe.write_all(&[ANNOUNCED]));
    fail(&mut announce, &failure)
}

/// Runs the launcher's own checks with everything in place that a program would find.
fn checks(plan: &Plan, mut context: Context, kernel: &mut Kernel, mut announce: File) -> ! {
    if let Err(failure) = setup::carry_out(&plan.guest, plan.identity, &mut context, kernel) {
        fail(&mut announce, &failure)
    }
    if announce.write_all(&[ANNOUNCED]).is_err() || sys::close_from(3).is_err() {
        sys::exit(1)
    }
    // The descriptors behind these are closed; dropping them would close whatever has their number next.
    std::mem::forget((context, announce));
    sys::exit(prove::inside::run(&plan.arguments))
}

fn fail(announce: &mut File, failure: &Failure) -> ! {
    if let Ok(text) = serde_json::to_vec(failure) {
        let _ = announce.write_all(&text);
    }
    sys::exit(1)
}
