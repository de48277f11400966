//! The order of the set-up and each way it can fail, with a kernel that only remembers.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use palyra_common::SandboxTier;

use super::super::bpf;
use super::super::double::Double;

use super::{Context, Failure, Standards, carry_out, enter};
use crate::grant::{Network, Owner, ProxyPorts};
use crate::host::Privilege;
use crate::plan::invented::{USER, grant, host, invocation, with_terminal};
use crate::plan::{FilterProfile, GuestIdentity, MemoryFiles, Plan, SetGroupId, Sockets, Step, plan};
use crate::report::HiddenSockets;

fn null() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

fn context(plan: &Plan) -> Context {
    let private = plan.identity == GuestIdentity::Private;
    let owners = [0, 1001, 1003].map(|id| (Owner { uid: id, gid: id }, null()));
    Context {
        host_ids: Owner { uid: 70_000, gid: 70_000 },
        user_namespace: (private && plan.tier == SandboxTier::C).then(null),
        owners: if private { BTreeMap::from(owners) } else { BTreeMap::new() },
        filters: Arc::new(FilterProfile::all().map(|profile| (profile, bpf::compile(profile).unwrap())).collect()),
        standards: Some(Standards { input: null(), output: null(), error: null() }),
        sources: BTreeMap::new(),
        listeners: Vec::new(),
        known_sockets: Vec::new(),
        hidden: HiddenSockets::default(),
        supervisor: plan.is_supervised().then(null),
    }
}

fn plans() -> Vec<(String, Plan)> {
    let mut plans = Vec::new();
    for (rights, privilege) in [("root", Privilege::Root), ("user", USER)] {
        for tier in [SandboxTier::B, SandboxTier::C] {
            let mut grant = grant(tier);
            grant.network = Network::Proxy(ProxyPorts::default());
            let plan = plan(&grant, &host(privilege), &with_terminal(invocation())).unwrap();
            plans.push((format!("{}_{rights}", tier.as_str()), plan));
        }
    }
    plans
}

/// Runs the whole set-up against the double.
fn run(plan: &Plan, fails_at: Option<usize>) -> (Double, Failure, bool) {
    let mut kernel = Double { fails_at, ..Double::default() };
    let mut context = context(plan);
    let mut announced = false;
    let failure = match carry_out(&plan.room, plan.identity, &mut context, &mut kernel) {
        Err(failure) => failure,
        Ok(()) => enter(plan, &mut context, &mut kernel, &mut || {
            announced = true;
            Ok(())
        }),
    };
    (kernel, failure, announced)
}

#[test]
fn the_kernel_is_asked_in_this_order() {
    for (name, plan) in plans() {
        let (kernel, failure, announced) = run(&plan, None);
        assert_eq!(failure.step, "execute", "{name}");
        assert!(announced, "{name}");
        insta::assert_snapshot!(name, kernel.asked.join("\n"));
    }
}

#[test]
fn whatever_fails_nothing_is_executed_and_the_step_is_named() {
    for (name, plan) in plans() {
        let (complete, _, _) = run(&plan, None);
        let requests = complete.asked.len() - 1;
        assert!(requests > 15, "{name}");
        for fails_at in 0..requests {
            let (kernel, failure, announced) = run(&plan, Some(fails_at));
            let asked = &kernel.asked;
            assert_eq!(asked.len(), fails_at + 1, "{name}: something was asked after the failure");
            assert!(!asked.iter().any(|request| request.starts_with("execute")), "{name}: executed after {asked:?}");
            assert!(!announced, "{name}");
            assert_eq!(failure.errno, 1, "{name}");
            let steps: Vec<_> = plan.room.iter().chain(&plan.guest).map(|step| step.name()).collect();
            assert!(steps.contains(&failure.step.as_str()), "{name}: {failure:?}");
        }
    }
}

#[test]
fn what_the_start_did_not_bring_is_a_failure_too() {
    for (_, plan) in plans() {
        let mut bare = context(&plan);
        bare.filters = Arc::default();
        bare.owners.clear();
        bare.user_namespace = None;
        let mut kernel = Double::default();
        let failure = match carry_out(&plan.room, plan.identity, &mut bare, &mut kernel) {
            Err(failure) => failure,
            Ok(()) => enter(&plan, &mut bare, &mut kernel, &mut || Ok(())),
        };
        assert_ne!(failure.step, "execute");
        assert!(failure.reason.contains("missing"), "{failure:?}");
    }
}

#[test]
fn if_nobody_listens_nothing_is_executed() {
    let (_, plan) = plans().remove(3);
    let mut kernel = Double::default();
    let gone = &mut || Err(std::io::Error::from_raw_os_error(32));
    let failure = enter(&plan, &mut context(&plan), &mut kernel, gone);
    assert_eq!(failure.step, "announce");
    assert!(!kernel.asked.iter().any(|request| request.starts_with("execute")));
}

#[test]
fn every_call_in_a_filter_has_a_number_on_x86_64() {
    if std::env::consts::ARCH != "x86_64" {
        return;
    }
    for profile in FilterProfile::all() {
        let filter = profile.filter();
        for rule in filter.denied.iter().chain(&filter.allowed) {
            assert!(crate::sys::number(rule.call).is_some(), "{} has no number", rule.call);
        }
        let denied: Vec<_> = filter.denied.iter().filter(|rule| rule.when.is_empty()).map(|rule| rule.call).collect();
        assert!(
            filter
                .allowed
                .iter()
                .all(|rule| !denied.contains(&rule.call) || rule.call == "socket" || rule.call == "listen")
        );
        assert!(!filter.allowed.iter().any(|rule| rule.call == "clone3"));
    }
}

#[test]
fn where_sockets_may_have_been_missed_the_guest_makes_none() {
    let wanted = FilterProfile {
        sockets: Sockets::Isolated,
        memory_files: MemoryFiles::None,
        set_group_id: SetGroupId::Nothing,
    };
    let strict = FilterProfile { sockets: Sockets::IsolatedWithoutUnix, ..wanted };
    let (_, plan) = plans().remove(3);
    for (refused, present) in [(true, strict), (false, wanted)] {
        let mut context = context(&plan);
        context.hidden.unix_sockets_refused = refused;
        context.filters = Arc::new([(present, bpf::compile(present).unwrap())].into());
        let done = carry_out(&[Step::Seccomp(wanted)], plan.identity, &mut context, &mut Double::default());
        assert_eq!(done, Ok(()), "{refused}");
    }
}

#[test]
fn where_the_kernel_gives_no_listener_the_guest_makes_no_memory_files() {
    const BUSY: i32 = 16;
    let supervised = FilterProfile {
        sockets: Sockets::Isolated,
        memory_files: MemoryFiles::Counted,
        set_group_id: SetGroupId::Directories,
    };
    let (_, plan) = plans().remove(3);
    for (fails_at, expected) in [(None, vec!["seccomp supervised"]), (Some(0), vec!["seccomp supervised", "seccomp"])] {
        let mut context = context(&plan);
        context.supervisor = Some(std::fs::File::open("/dev/null").unwrap().into());
        let filters = [supervised, supervised.unsupervised()];
        context.filters = Arc::new(filters.map(|one| (one, bpf::compile(one).unwrap())).into());
        let mut kernel = Double { fails_at, fails_with: Some(BUSY), ..Double::default() };
        assert_eq!(carry_out(&[Step::Seccomp(supervised)], plan.identity, &mut context, &mut kernel), Ok(()));
        assert_eq!(kernel.asked, expected);
    }
    assert_eq!(supervised.unsupervised().memory_files, MemoryFiles::None);
}
