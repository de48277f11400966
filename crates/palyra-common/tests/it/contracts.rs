//! One round-trip over every contract enum of the crate, and the documented values of each.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};
use std::path::Path;
use std::str::FromStr;

use palyra_common::config::{LogFormat, LogLevel, MandateClass, ModelProviderChoice};
use palyra_common::*;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Checks one enum and gives its contract's name.
fn check<T>() -> &'static str
where
    T: ContractEnum + Debug + Display + FromStr<Err = UnknownContractValue> + Serialize + DeserializeOwned + JsonSchema,
{
    let contract = T::CONTRACT;
    let mut proto_names = BTreeSet::new();
    let mut canonical = Vec::new();
    for (index, value) in T::ALL.iter().copied().enumerate() {
        let name = value.as_str();
        canonical.push(name);
        for spelling in std::iter::once(name).chain(value.aliases().iter().copied()).flat_map(spellings) {
            assert_eq!(spelling.parse::<T>().as_ref(), Ok(&value), "{contract}: `{spelling}`");
            let json = serde_json::to_string(&spelling).unwrap();
            assert_eq!(serde_json::from_str::<T>(&json).unwrap(), value, "{contract}: {json}");
        }
        assert_eq!(value.to_string(), name);
        assert_eq!(serde_json::to_value(value).unwrap(), name, "writing emits the canonical name only");
        assert_eq!(value.proto_number(), i32::try_from(index).unwrap() + 1);
        let proto = value.proto_name();
        assert!(proto.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'), "{proto}");
        assert!(proto_names.insert(proto));
        assert!(T::sql_values().contains(&format!("'{name}'")));
    }
    let schema = serde_json::to_value(schemars::schema_for!(T)).unwrap();
    assert_eq!(schema["enum"], serde_json::to_value(&canonical).unwrap(), "{contract}");
    let error = "no such value!".parse::<T>().unwrap_err();
    assert_eq!((error.contract, error.expected), (contract, canonical.join(", ")));
    assert!(serde_json::from_str::<T>("\"\"").is_err() && serde_json::from_str::<T>("3").is_err(), "{contract}");
    contract
}

/// The spellings that must be read for a name.
fn spellings(name: &str) -> Vec<String> {
    let snake = name.replace('-', "_");
    let mut camel = String::new();
    let mut raise = false;
    for c in snake.chars() {
        match c {
            '_' => raise = true,
            _ if raise => {
                camel.push(c.to_ascii_uppercase());
                raise = false;
            }
            _ => camel.push(c),
        }
    }
    let screaming = snake.to_uppercase();
    let spaced = format!("  {} ", snake.replace('_', " "));
    vec![name.to_owned(), snake.clone(), snake.replace('_', "-"), camel, screaming, spaced]
}

macro_rules! check_all {
    ($($name:ty),+ $(,)?) => {
        BTreeSet::from([$(check::<$name>()),+])
    };
}

#[test]
fn every_contract_enum_reads_all_spellings_and_writes_one() {
    let checked = check_all![
        AcpCommand,
        ApprovalDecision,
        ApprovalScope,
        ApprovalSubject,
        AuxiliaryInputContract,
        AuxiliaryOutputContract,
        AuxiliaryTaskKind,
        AuxiliaryTaskState,
        BindingBehaviour,
        CommandEffect,
        Confidentiality,
        ConnectivityOption,
        Consequence,
        DeploymentProfile,
        DeploymentRecipe,
        ChangeAttribution,
        ErrorCategory,
        FieldRole,
        HandoffIntent,
        HandoffSection,
        HealthStatus,
        HookDecision,
        HookEvent,
        Integrity,
        LogFormat,
        LogLevel,
        MandateClass,
        MissingIsolation,
        ModelPreference,
        ModelProviderChoice,
        PrincipalRole,
        Provenance,
        Risk,
        InputMode,
        EffectScope,
        SinkKind,
        RunLifecycleHookPhase,
        RunLifecyclePhase,
        RunMode,
        SafetyAction,
        SandboxTier,
        SecurityPosture,
        SkillStatus,
        SkillTrust,
        TelemetrySurface,
        TerminationReason,
        TokenScope,
        ToolVerdict,
        UndoConflictMode,
        UndoObstacle,
        UxOutcome,
        WorkerSupport,
    ];
    let declared = declared_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(declared.len() > 30, "found only {declared:?}");
    let checked: BTreeSet<String> = checked.into_iter().map(str::to_owned).collect();
    assert_eq!(declared, checked, "every declared contract enum is in the list above");
}

/// The contracts that the source declares: `pub enum Name("contract")`.
fn declared_in(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(declared_in(&path));
        } else {
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                if let Some((_, rest)) = line.trim().strip_prefix("pub enum ").and_then(|rest| rest.split_once("(\"")) {
                    found.extend(rest.split_once("\") {").map(|(name, _)| name.to_owned()));
                }
            }
        }
    }
    found
}

#[test]
fn the_documented_values_have_not_moved() {
    fn values<T: ContractEnum>() -> String {
        T::ALL.iter().map(|value| value.as_str()).collect::<Vec<_>>().join(", ")
    }
    for (found, documented) in [
        (
            values::<RunLifecyclePhase>(),
            "queued, running, waiting_for_approval, paused, completed, failed, aborted, expired",
        ),
        (values::<RunLifecycleHookPhase>(), "before_run, before_tool, after_tool, before_delivery, after_run"),
        (values::<AuxiliaryTaskKind>(), "summary, recall_search, classification, extraction, objective_judge, vision"),
        (values::<AuxiliaryTaskState>(), "pending, running, succeeded, failed, cancelled"),
        (
            values::<TerminationReason>(),
            "final_answer, max_turns, max_tool_calls, wall_clock, cancellation, approval_denied, provider_error, \
             context_budget_exhausted, budget_exceeded",
        ),
        (values::<DeploymentProfile>(), "local, single-vm, worker-enabled"),
        (values::<ApprovalDecision>(), "allow, deny, timeout, error"),
        (values::<ApprovalScope>(), "once, session, timeboxed"),
        (
            values::<ApprovalSubject>(),
            "tool, channel_send, secret_access, browser_action, node_capability, device_pairing, budget_override",
        ),
        (values::<Risk>(), "low, medium, high, critical"),
        (values::<SafetyAction>(), "allow, annotate, redact, require_approval, block"),
        (values::<SkillTrust>(), "quarantine, tofu, trusted"),
        (values::<SkillStatus>(), "enabled, disabled, quarantined"),
        (
            values::<HookEvent>(),
            "gateway:startup, skill:enabled, skill:disabled, skill:quarantined, run:before_run, run:before_tool, \
             run:after_tool, run:before_delivery, run:after_run",
        ),
        (values::<HookDecision>(), "continue, annotate, transform_preview, request_approval, block, fail_run"),
        (values::<TelemetrySurface>(), "web, desktop, tui, cli, mobile"),
        (
            values::<HandoffIntent>(),
            "approve, resume-session, reopen-canvas, inspect-run, inspect-access, inspect-diagnostics, open-workspace",
        ),
        (
            values::<HandoffSection>(),
            "chat, approvals, runs, memory, skills, routines, objectives, policy, audit, devices, workers, browser, \
             settings",
        ),
        (values::<SandboxTier>(), "A, B, C"),
        (values::<RunMode>(), "open, guarded, strict"),
        (values::<PrincipalRole>(), "owner, operator, viewer"),
        (
            values::<TokenScope>(),
            "sessions:read, sessions:write, runs:read, runs:write, approvals:read, \
             approvals:decide, journal:read, journal:admin, config:read, policy:read, tools:read, tokens:manage, daemon:control, models:use, \
             metrics:read, approvals:request, skills:read, skills:manage, messages:route",
        ),
        (values::<ToolVerdict>(), "permit, needs_approval, deny"),
        (values::<HealthStatus>(), "ok, degraded, failing"),
    ] {
        assert_eq!(found, documented);
    }
}

#[test]
fn the_documented_aliases_are_read() {
    for (alias, phase) in [
        ("pending", RunLifecyclePhase::Queued),
        ("accepted", RunLifecyclePhase::Queued),
        ("inProgress", RunLifecyclePhase::Running),
        ("STREAMING", RunLifecyclePhase::Running),
        ("waiting", RunLifecyclePhase::WaitingForApproval),
        ("done", RunLifecyclePhase::Completed),
        ("Succeeded", RunLifecyclePhase::Completed),
        ("cancelled", RunLifecyclePhase::Aborted),
        ("timed-out", RunLifecyclePhase::Expired),
    ] {
        assert_eq!(alias.parse(), Ok(phase));
    }
    for (alias, profile) in [
        ("local_desktop", DeploymentProfile::Local),
        ("single_vm", DeploymentProfile::SingleVm),
        ("remote", DeploymentProfile::SingleVm),
        ("remote_vps", DeploymentProfile::SingleVm),
        ("VPS", DeploymentProfile::SingleVm),
        ("worker", DeploymentProfile::WorkerEnabled),
        ("workers", DeploymentProfile::WorkerEnabled),
    ] {
        assert_eq!(alias.parse(), Ok(profile));
    }
    assert_eq!("queued".parse(), Ok(AuxiliaryTaskState::Pending));
    assert_eq!("Verified".parse(), Ok(SkillStatus::Enabled));
    assert_eq!("active".parse(), Ok(SkillStatus::Enabled));
    assert_eq!("SessionNew".parse(), Ok(AcpCommand::SessionNew));
    assert_eq!("wasm".parse(), Ok(SandboxTier::A));
}
