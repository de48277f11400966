//! The schema as data: it says what the contracts say, with the same names and numbers, and explains everything it says.

use std::collections::BTreeSet;

use palyra_common as common;
use palyra_common::ContractEnum;
use palyra_proto::{FILE_DESCRIPTOR_SET, STATUS_DESCRIPTOR_SET};
use prost_reflect::{DescriptorPool, EnumDescriptor};

fn pool() -> DescriptorPool {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap()
}

/// Fails unless the enum has exactly the contract's values, by name and number, after a zero that says nothing.
fn same_as_contract<T: ContractEnum>(pool: &DescriptorPool, checked: &mut BTreeSet<String>) {
    let name: String = T::CONTRACT
        .split('_')
        .map(|word| word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect::<String>())
        .collect();
    let found: EnumDescriptor = pool.get_enum_by_name(&format!("palyra.common.v1.{name}")).expect(&name);
    let mut expected = vec![(format!("{}_UNSPECIFIED", T::CONTRACT.to_uppercase()), 0)];
    expected.extend(T::ALL.iter().map(|value| (value.proto_name(), value.proto_number())));
    let values: Vec<(String, i32)> = found.values().map(|value| (value.name().to_owned(), value.number())).collect();
    assert_eq!(values, expected, "{name}");
    checked.insert(name);
}

#[test]
fn shared_enums_are_the_contracts() {
    let pool = pool();
    let mut checked = BTreeSet::new();
    same_as_contract::<common::RunLifecyclePhase>(&pool, &mut checked);
    same_as_contract::<common::TerminationReason>(&pool, &mut checked);
    same_as_contract::<common::RunMode>(&pool, &mut checked);
    same_as_contract::<common::InputMode>(&pool, &mut checked);
    same_as_contract::<common::ToolVerdict>(&pool, &mut checked);
    same_as_contract::<common::ApprovalDecision>(&pool, &mut checked);
    same_as_contract::<common::ApprovalScope>(&pool, &mut checked);
    same_as_contract::<common::ApprovalSubject>(&pool, &mut checked);
    same_as_contract::<common::Risk>(&pool, &mut checked);
    same_as_contract::<common::SinkKind>(&pool, &mut checked);
    same_as_contract::<common::Provenance>(&pool, &mut checked);
    same_as_contract::<common::SandboxTier>(&pool, &mut checked);
    same_as_contract::<common::Integrity>(&pool, &mut checked);
    same_as_contract::<common::Confidentiality>(&pool, &mut checked);
    same_as_contract::<common::HealthStatus>(&pool, &mut checked);
    same_as_contract::<common::ErrorCategory>(&pool, &mut checked);
    same_as_contract::<common::PrincipalRole>(&pool, &mut checked);
    same_as_contract::<common::TokenScope>(&pool, &mut checked);
    let shared = pool.all_enums().filter(|found| found.package_name() == "palyra.common.v1");
    let unchecked: Vec<String> =
        shared.map(|found| found.name().to_owned()).filter(|name| !checked.contains(name)).collect();
    assert!(unchecked.is_empty(), "compare these with their contracts too: {unchecked:?}");
}

#[test]
fn every_service_of_the_contract_is_there() {
    let expected = [
        (
            "palyra.gateway.v1.GatewayService",
            "GetHealth RunStream Execute AppendEvent AbortRun ListRuns GetRun GetRunTape ListSessions ResolveSession \
             CleanupSession RouteMessage ListAgents GetAgent SetAgent RemoveAgent ListBindings SetBinding RemoveBinding",
        ),
        ("palyra.gateway.v1.ApprovalsService", "ListApprovals GetApproval DecideApproval ListPatterns RevokePattern"),
        ("palyra.gateway.v1.VaultService", "PutSecret GetSecret ListSecrets DeleteSecret RotateKeys"),
        ("palyra.gateway.v1.CanvasService", "ListCanvases GetCanvas WatchCanvas SubmitCanvasAction CloseCanvas"),
        ("palyra.memory.v1.MemoryService", "Ingest Search Get List Delete Purge"),
        (
            "palyra.auth.v1.AuthService",
            "ListProfiles SetProfile RemoveProfile GetAuthHealth BeginPairing ExchangePairing CompletePairing \
             ListDevices RevokeDevice",
        ),
        ("palyra.auth.v1.TokensService", "WhoAmI CreateToken ListTokens RotateToken RevokeToken"),
        (
            "palyra.browser.v1.BrowserService",
            "GetHealth CreateSession CloseSession OpenTab ListTabs CloseTab Navigate Snapshot Screenshot Click Type \
             PressKey Scroll WaitFor",
        ),
        (
            "palyra.cron.v1.CronService",
            "ListSchedules GetSchedule SetSchedule RemoveSchedule PreviewSchedule ListFirings",
        ),
        (
            "palyra.routines.v1.RoutinesService",
            "ListRoutines GetRoutine SetRoutine RemoveRoutine TriggerRoutine ListRoutineRuns",
        ),
        ("palyra.node.v1.NodeService", "RegisterNode WorkStream ListNodes DrainNode"),
    ];
    let pool = pool();
    for (service, methods) in expected {
        let found = pool.get_service_by_name(service).expect(service);
        let names: BTreeSet<String> = found.methods().map(|method| method.name().to_owned()).collect();
        assert_eq!(names, methods.split_whitespace().map(str::to_owned).collect(), "{service}");
    }
    assert_eq!(pool.services().count(), expected.len());
    let stream = pool.get_service_by_name("palyra.gateway.v1.GatewayService").unwrap();
    let stream = stream.methods().find(|method| method.name() == "RunStream").unwrap();
    assert!(stream.is_client_streaming() && stream.is_server_streaming());
}

/// The bodies of an event have the names they have in JSON.
#[test]
fn bodies_are_named_as_in_json() {
    let event = pool().get_message_by_name("palyra.common.v1.RunStreamEvent").unwrap();
    let names: BTreeSet<String> =
        event.oneofs().next().unwrap().fields().map(|field| field.name().to_owned()).collect();
    assert_eq!(names, json_keys());
}

/// The keys of the JSON form, from values of every kind.
fn json_keys() -> BTreeSet<String> {
    use proptest::strategy::{Strategy as _, ValueTree as _};
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = crate::strategies::event();
    (0..500).map(|_| strategy.new_tree(&mut runner).unwrap().current().body.kind().to_owned()).collect()
}

/// The comments are in the set that reflection serves, so a client can show them.
#[test]
fn everything_is_explained() {
    let pool = pool();
    let mut unexplained = Vec::new();
    let mut seen = 0_u32;
    for file in pool.files().filter(|file| file.package_name().starts_with("palyra.")) {
        let proto = file.file_descriptor_proto();
        let info = proto.source_code_info.as_ref().expect("the set carries comments");
        let explained: BTreeSet<&[i32]> = info.location.iter().map(|location| location.path.as_slice()).collect();
        let mut check = |path: Vec<i32>, name: &str| {
            seen += 1;
            if !explained.contains(path.as_slice()) {
                unexplained.push(format!("{}: {name}", file.name()));
            }
        };
        for (m, message) in (0..).zip(&proto.message_type) {
            check(vec![4, m], message.name());
            for (f, field) in (0..).zip(&message.field) {
                check(vec![4, m, 2, f], &format!("{}.{}", message.name(), field.name()));
            }
        }
        for (e, found) in (0..).zip(&proto.enum_type) {
            check(vec![5, e], found.name());
            for (v, value) in (0..).zip(&found.value) {
                check(vec![5, e, 2, v], value.name());
            }
        }
        for (s, service) in (0..).zip(&proto.service) {
            check(vec![6, s], service.name());
            for (m, method) in (0..).zip(&service.method) {
                check(vec![6, s, 2, m], &format!("{}.{}", service.name(), method.name()));
            }
        }
    }
    assert!(seen > 500, "looked at {seen} things only");
    assert!(unexplained.is_empty(), "without a comment: {unexplained:#?}");
}

/// Names follow the usual lint rules, so that generated code reads well in every language.
#[test]
fn names_follow_the_convention() {
    let pool = pool();
    let mut wrong = Vec::new();
    for service in pool.services() {
        for method in service.methods() {
            for (message, suffix) in [(method.input(), "Request"), (method.output(), "Response")] {
                if message.name() != format!("{}{suffix}", method.name()) {
                    wrong.push(format!("{} takes or gives {}", method.full_name(), message.name()));
                }
            }
        }
    }
    for message in pool.all_messages().filter(|message| message.package_name().starts_with("palyra.")) {
        for field in message.fields() {
            let snake = field
                .name()
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
            if !snake {
                wrong.push(field.full_name().to_owned());
            }
        }
    }
    for found in pool.all_enums().filter(|found| found.package_name().starts_with("palyra.")) {
        if !found.values().next().is_some_and(|value| value.number() == 0 && value.name().ends_with("_UNSPECIFIED")) {
            wrong.push(format!("{} has no zero that says nothing", found.full_name()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn details_of_a_status_can_be_described_too() {
    let pool = DescriptorPool::decode(STATUS_DESCRIPTOR_SET).unwrap();
    assert!(pool.get_message_by_name("google.rpc.ErrorInfo").is_some());
}
