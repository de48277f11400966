//! Plans as they look on paper, and what no plan may leave out.

use palyra_common::SandboxTier;

use super::invented::{USER, grant, host, invocation, with_terminal};
use super::{FilterProfile, MemoryFiles, Sockets, Step, TcpRule, plan};
use crate::grant::{Network, ProxyPorts};
use crate::host::{Ability, Cgroups, HostFacts, Privilege};

fn all() -> Vec<(String, super::Plan)> {
    let mut plans = Vec::new();
    for (rights, privilege) in [("root", Privilege::Root), ("user", USER)] {
        for tier in [SandboxTier::B, SandboxTier::C] {
            for network in [Network::None, Network::Proxy(ProxyPorts::default())] {
                let mut grant = grant(tier);
                grant.network = network;
                let name =
                    format!("{}_{rights}_{}", tier.as_str(), if network == Network::None { "alone" } else { "proxy" });
                plans.push((name, plan(&grant, &host(privilege), &invocation()).unwrap()));
            }
        }
    }
    plans
}

#[test]
fn plans_on_paper() {
    for (name, plan) in all() {
        insta::assert_snapshot!(name, plan.to_string());
    }
}

#[test]
fn the_same_input_gives_the_same_plan_and_survives_the_wire() {
    for ((_, plan), (_, again)) in all().into_iter().zip(all()) {
        assert_eq!(plan, again);
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<super::Plan>(&text).unwrap(), plan);
    }
}

#[test]
fn no_plan_leaves_a_restriction_out() {
    for (name, plan) in all() {
        let place = |wanted: &str| {
            plan.guest.iter().position(|step| step.name() == wanted).unwrap_or_else(|| panic!("{name} lacks {wanted}"))
        };
        let order = [
            "stdio",
            "drop_capabilities",
            "no_new_privileges",
            "working_directory",
            "landlock",
            "close_descriptors",
            "seccomp",
        ];
        assert!(order.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{name}");
        assert!(matches!(plan.guest.last(), Some(Step::Seccomp(_))), "{name}: after the filter comes the program");
        if plan.tier == SandboxTier::C {
            let names: Vec<_> = plan.room.iter().map(Step::name).collect();
            assert_eq!(plan.namespaces.len(), 6, "{name}");
            let root = names.iter().position(|step| *step == "root").unwrap();
            assert!(names.iter().position(|step| *step == "attach").unwrap() > root, "{name}");
            // What is done ahead names nothing of the grant.
            let ahead = plan.room[..plan.ahead].iter().map(ToString::to_string).collect::<String>();
            assert!(!ahead.contains("/work") && !ahead.contains("/opt") && ahead.contains("proc"), "{name}: {ahead}");
            let first_share = names.iter().rposition(|step| *step == "source").unwrap();
            assert!(
                names[first_share..]
                    .iter()
                    .all(|step| matches!(*step, "source" | "attach" | "hide_sockets" | "pivot" | "undumpable")),
                "{name}"
            );
            assert_eq!(&names[names.len() - 3..], ["hide_sockets", "pivot", "undumpable"], "{name}");
        }
        // A source that is attached was taken hold of, once.
        let slots = |wanted: &[&str]| {
            let mut slots: Vec<usize> = plan
                .room
                .iter()
                .filter(|step| wanted.contains(&step.name()))
                .filter_map(|step| match step {
                    Step::Source { slot, .. }
                    | Step::Device { slot, .. }
                    | Step::Attach { slot, .. }
                    | Step::Cover { slot, .. } => Some(*slot),
                    _ => None,
                })
                .collect();
            slots.sort_unstable();
            slots
        };
        assert_eq!(slots(&["source", "device"]), slots(&["attach", "cover"]), "{name}");
    }
}

#[test]
fn everything_of_the_host_is_read_only_but_what_was_granted() {
    for (name, plan) in all() {
        for step in &plan.room {
            if let Step::Source { path, access: crate::grant::Access::ReadWrite, .. } = step {
                assert!(path.starts_with("/work/project"), "{name}: {}", path.display());
            }
        }
    }
}

#[test]
fn a_terminal_belongs_to_the_session() {
    let plan = plan(&grant(SandboxTier::C), &host(USER), &with_terminal(invocation())).unwrap();
    let names: Vec<_> = plan.guest.iter().take(3).map(Step::name).collect();
    assert_eq!(names, ["session", "stdio", "controlling_terminal"]);
}

#[test]
fn tier_b_closes_the_network_by_filter_and_by_landlock() {
    for (name, plan) in all().into_iter().filter(|(_, plan)| plan.tier == SandboxTier::B) {
        let proxy = name.ends_with("proxy");
        let rules = plan.guest.iter().find_map(|step| match step {
            Step::Landlock(rules) => Some(rules.clone()),
            _ => None,
        });
        let expected = if proxy { vec![3128, 1080] } else { Vec::new() };
        assert_eq!(rules.unwrap().tcp, TcpRule::Connect(expected), "{name}");
        let sockets = if proxy { Sockets::Tcp } else { Sockets::None };
        let Some(Step::Seccomp(FilterProfile { sockets: planned, .. })) = plan.guest.last() else {
            panic!("{name} has no filter")
        };
        assert_eq!(*planned, sockets, "{name}");
    }
}

#[test]
fn root_without_mapped_mounts_and_any_host_without_filters_is_refused() {
    let mut bare = host(Privilege::Root);
    bare.mapped_mounts = Ability::Fails("old file system".to_owned());
    assert!(plan(&grant(SandboxTier::B), &bare, &invocation()).is_err());
    let mut bare = host(USER);
    bare.seccomp = Ability::Fails("not compiled in".to_owned());
    assert!(plan(&grant(SandboxTier::B), &bare, &invocation()).is_err());
    assert!(plan(&grant(SandboxTier::C), &bare, &invocation()).is_err());
}

#[test]
fn memory_files_exist_only_where_somebody_counts_them() {
    let memory_files = |tier, cgroups: Cgroups| {
        let plan = plan(&grant(tier), &HostFacts { cgroups, ..host(USER) }, &invocation()).unwrap();
        match plan.guest.last() {
            Some(Step::Seccomp(profile)) => profile.memory_files,
            other => panic!("{other:?}"),
        }
    };
    for tier in [SandboxTier::B, SandboxTier::C] {
        let expected = if tier == SandboxTier::C { MemoryFiles::Counted } else { MemoryFiles::None };
        assert_eq!(memory_files(tier, Cgroups::None(String::new())), expected);
        let uncounted = Cgroups::V2 { parent: "/g".into(), memory: false, pids: true };
        assert_eq!(memory_files(tier, uncounted), expected);
        let counted = Cgroups::V2 { parent: "/g".into(), memory: true, pids: true };
        let expected = if tier == SandboxTier::C { MemoryFiles::Any } else { MemoryFiles::NotExecutable };
        assert_eq!(memory_files(tier, counted), expected);
    }
}

#[test]
fn what_tier_b_cannot_deny_stands_in_the_documentation() {
    let page = include_str!("../../../../docs/sandbox.md");
    for line in crate::explain::TIER_B_BY_DESIGN {
        assert!(page.contains(line), "docs/sandbox.md does not say: {line}");
    }
}

#[test]
fn where_nobody_counts_a_users_guest_apart_its_limit_is_above_the_users_own() {
    let mut host = host(USER);
    let names = |plan: &super::Plan| plan.guest.iter().map(ToString::to_string).collect::<Vec<_>>();
    let counted = plan(&grant(SandboxTier::B), &host, &invocation()).unwrap();
    assert_eq!(counted.namespaces, [super::Namespace::User, super::Namespace::Mount, super::Namespace::Pid]);
    // One more than granted: the sandbox's first process is in the namespace too.
    assert!(names(&counted).contains(&"limit processes 257".to_owned()), "{counted}");
    host.user_namespace = Ability::Fails("forbidden".to_owned());
    let uncounted = plan(&grant(SandboxTier::B), &host, &invocation()).unwrap();
    assert!(uncounted.namespaces.is_empty(), "{uncounted}");
    assert!(names(&uncounted).contains(&"limit processes above the user's own 256".to_owned()), "{uncounted}");
    assert!(!names(&uncounted).contains(&"bound_capabilities".to_owned()), "{uncounted}");
}

#[test]
fn a_plan_says_when_it_falls_back_and_why() {
    let bare = HostFacts { isolation: Ability::Fails("forbidden".to_owned()), ..host(USER) };
    let mut grant = grant(SandboxTier::C);
    assert!(plan(&grant, &bare, &invocation()).is_err(), "not unless it may");
    grant.fallback = crate::grant::Fallback::TierB;
    let fallen = plan(&grant, &bare, &invocation()).unwrap();
    assert_eq!(fallen.tier(), SandboxTier::B);
    assert_eq!(fallen.fell_back(), ["the namespaces cannot be set up (forbidden)"]);
    assert!(fallen.to_string().contains("instead of tier C, because the namespaces cannot be set up"), "{fallen}");
    assert_eq!(plan(&grant, &host(USER), &invocation()).unwrap().fell_back(), [""; 0]);
}
