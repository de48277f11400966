//! Decisions about skills, one by one and in any order.

use palyra_common::{Digest, SkillStatus, SkillTrust, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::audit::{AuditCode, AuditFinding};
use crate::{
    AuditReport, AuditSeverity, Envelope, Examined, KeyRotation, PublisherKey, RevocationList, RevokedArtifact,
    RevokedKey, SkillManifest, Verified,
};

const NOW: Timestamp = Timestamp(1_794_700_000_000);

fn key(number: u8) -> PublisherKey {
    PublisherKey::from_seed(&[number; 32])
}

fn report(outcome: Outcome) -> AuditReport {
    match outcome {
        Outcome::Pass => AuditReport::of(Vec::new()),
        Outcome::Fail(number) => AuditReport::of(vec![AuditFinding {
            code: AuditCode::ImportForeign,
            severity: AuditSeverity::Fail,
            message: format!("finding {number}"),
            path: None,
        }]),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Pass,
    Fail(u8),
}

/// An artifact as if it had been read and verified.
fn examined(skill: &str, version: &str, publisher: &str, signer: u8, outcome: Outcome) -> Examined {
    let manifest = format!(
        "manifest_version = 1\nskill_id = \"{skill}\"\nname = \"S\"\nversion = \"{version}\"\npublisher = \"{publisher}\"\n\
         [[entrypoints.tools]]\nid = \"t\"\ndescription = \"d\"\ninput_schema = {{ type = \"object\" }}\n\
         [capabilities]\nhttp_egress_allowlist = [\"GET https://api.example.com\"]\n[[config]]\nkey = \"language\"\n"
    );
    let public_key = key(signer).public();
    let content = Digest::of(format!("{skill} {version} {publisher}").as_bytes());
    Examined {
        verified: Verified {
            publisher: publisher.parse().unwrap(),
            key_id: public_key.id(),
            public_key,
            signed_at: NOW,
        },
        report: report(outcome),
        manifest: SkillManifest::parse(&manifest).unwrap(),
        archive: Digest::of(content.to_hex().as_bytes()),
        content,
    }
}

fn install(tofu: Tofu) -> InstallRequest {
    InstallRequest {
        by: "ana".to_owned(),
        tofu,
        origin: Origin::File { name: "a.palyra-skill".to_owned() },
        start: InitialStatus::Enabled,
        grants: None,
    }
}

fn update() -> UpdateRequest {
    UpdateRequest { by: "ana".to_owned(), origin: Origin::File { name: "b.palyra-skill".to_owned() } }
}

/// Applies what a decision returned.
fn carry_out(index: &mut SkillIndex, plan: Result<Vec<SkillEvent>, SkillError>) {
    for event in plan.unwrap() {
        index.apply(&event, NOW);
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, SkillError>) -> &'static str {
    result.unwrap_err().code()
}

fn skill(id: &str) -> SkillId {
    id.parse().unwrap()
}

fn publisher(name: &str) -> PublisherName {
    name.parse().unwrap()
}

/// An index with `acme` (key 1) pinned and its skill `echo` 1.0.0 enabled.
fn with_echo() -> SkillIndex {
    let mut index = SkillIndex::default();
    let plan = index.plan_install(&examined("echo", "1.0.0", "acme", 1, Outcome::Pass), &install(Tofu::Pin), NOW);
    carry_out(&mut index, plan);
    index
}

#[test]
fn an_unknown_publisher_is_refused_or_pinned_and_another_key_refused_loudly() {
    let index = SkillIndex::default();
    let artifact = examined("echo", "1.0.0", "acme", 1, Outcome::Pass);
    assert_eq!(code(index.plan_install(&artifact, &install(Tofu::Refuse), NOW)), "skill_publisher_unknown");
    let index = with_echo();
    let record = index.runnable(&skill("echo")).unwrap();
    assert_eq!(index.trust(record), SkillTrust::Tofu);
    for tofu in [Tofu::Refuse, Tofu::Pin] {
        let swapped = examined("other", "1.0.0", "acme", 2, Outcome::Pass);
        assert_eq!(code(index.plan_install(&swapped, &install(tofu), NOW)), "skill_key_changed");
        let stolen = examined("other", "1.0.0", "evil", 1, Outcome::Pass);
        assert_eq!(code(index.plan_install(&stolen, &install(tofu), NOW)), "skill_key_taken");
    }
    let update_by_other = examined("echo", "1.1.0", "acme", 2, Outcome::Pass);
    assert_eq!(code(index.plan_update(&update_by_other, &update(), NOW)), "skill_key_changed");
}

#[test]
fn versions_only_go_up_and_never_change() {
    let mut index = with_echo();
    let offer = |version, publisher, signer| examined("echo", version, publisher, signer, Outcome::Pass);
    assert_eq!(code(index.plan_update(&offer("0.9.0", "acme", 1), &update(), NOW)), "skill_downgrade_refused");
    assert_eq!(code(index.plan_update(&offer("1.0.0", "acme", 1), &update(), NOW)), "skill_already_installed");
    let mut changed = offer("1.0.0", "acme", 1);
    changed.content = Digest::of(b"other");
    assert_eq!(code(index.plan_update(&changed, &update(), NOW)), "skill_version_conflict");
    assert_eq!(code(index.plan_update(&offer("2.0.0", "zeta", 3), &update(), NOW)), "skill_publisher_changed");
    assert_eq!(
        code(index.plan_install(&offer("2.0.0", "acme", 1), &install(Tofu::Pin), NOW)),
        "skill_already_installed"
    );
    let plan = index.plan_update(&offer("1.1.0", "acme", 1), &update(), NOW);
    carry_out(&mut index, plan);
    assert_eq!(index.runnable(&skill("echo")).unwrap().artifact.version.to_string(), "1.1.0");
    // Removed first, the older version may come.
    let plan = index.plan_remove(&skill("echo"), "ana");
    carry_out(&mut index, plan);
    let plan = index.plan_install(&offer("1.0.0", "acme", 1), &install(Tofu::Refuse), NOW);
    carry_out(&mut index, plan);
    index.runnable(&skill("echo")).unwrap();
    // But only with the contents it had, whether it is installed anew or as an update.
    let other = |version| Examined { content: Digest::of(b"other"), ..offer(version, "acme", 1) };
    assert_eq!(code(index.plan_update(&other("1.1.0"), &update(), NOW)), "skill_version_conflict");
    let plan = index.plan_remove(&skill("echo"), "ana");
    carry_out(&mut index, plan);
    for version in ["1.0.0", "1.1.0"] {
        let refused = index.plan_install(&other(version), &install(Tofu::Refuse), NOW);
        assert_eq!(code(refused), "skill_version_conflict", "{version}");
    }
    let kept: SkillIndex = serde_json::from_str(&serde_json::to_string(&index).unwrap()).unwrap();
    assert_eq!(code(kept.plan_install(&other("1.0.0"), &install(Tofu::Refuse), NOW)), "skill_version_conflict");
}

#[test]
fn what_fails_waits_for_a_person_with_a_reason() {
    let mut index = with_echo();
    let echo = skill("echo");
    let plan = index.plan_audited(&echo, &report(Outcome::Fail(1)), AuditCause::Routine);
    carry_out(&mut index, plan);
    assert_eq!(code(index.runnable(&echo)), "skill_quarantined");
    assert_eq!(code(index.plan_disable(&echo, "ana", None)), "skill_quarantined");
    assert_eq!(code(index.plan_enable(&echo, "ana", None)), "skill_reason_missing");
    assert_eq!(code(index.plan_enable(&echo, "ana", Some("  "))), "skill_reason_missing");
    let plan = index.plan_enable(&echo, "ana", Some("it is ours"));
    carry_out(&mut index, plan);
    index.runnable(&echo).unwrap();
    // The same finding was accepted, another was not.
    assert!(index.plan_audited(&echo, &report(Outcome::Fail(1)), AuditCause::Routine).unwrap().is_empty());
    // Whoever asks gets an audit of that moment; it changes when it was, and not whether the skill runs.
    let events = index.plan_audited(&echo, &report(Outcome::Fail(1)), AuditCause::Asked).unwrap();
    assert!(matches!(events.as_slice(), [SkillEvent::AuditRecorded { .. }]), "{events:?}");
    let later = Timestamp(NOW.0 + 5000);
    events.iter().for_each(|event| index.apply(event, later));
    assert_eq!(index.runnable(&echo).unwrap().audited_at, later);
    let plan = index.plan_audited(&echo, &report(Outcome::Fail(2)), AuditCause::Routine);
    carry_out(&mut index, plan);
    assert_eq!(code(index.runnable(&echo)), "skill_quarantined");
    // Neither an update nor removal and installation gets it out.
    let plan = index.plan_update(&examined("echo", "1.1.0", "acme", 1, Outcome::Pass), &update(), NOW);
    carry_out(&mut index, plan);
    assert_eq!(code(index.runnable(&echo)), "skill_quarantined");
    let plan = index.plan_remove(&echo, "ana");
    carry_out(&mut index, plan);
    let plan = index.plan_install(&examined("echo", "1.2.0", "acme", 1, Outcome::Pass), &install(Tofu::Refuse), NOW);
    carry_out(&mut index, plan);
    assert_eq!(code(index.runnable(&echo)), "skill_quarantined");
    // However often that is tried, the reason does not grow.
    let reason = index.skill(&echo).unwrap().status_reason.clone();
    let plan = index.plan_remove(&echo, "ana");
    carry_out(&mut index, plan);
    let plan = index.plan_install(&examined("echo", "1.2.0", "acme", 1, Outcome::Pass), &install(Tofu::Refuse), NOW);
    carry_out(&mut index, plan);
    assert_eq!(index.skill(&echo).unwrap().status_reason, reason);
}

/// What a registry or a publisher does to one version of `echo`.
fn revoke_echo(index: &mut SkillIndex, version: &str, number: u64) {
    let content = examined("echo", version, "acme", 1, Outcome::Pass).content;
    let artifacts = vec![RevokedArtifact { content, reason: "it leaks tokens".to_owned() }];
    let list = RevocationList { publisher: publisher("acme"), number, issued_at: NOW, keys: Vec::new(), artifacts };
    let plan = index.plan_revocations(&list.sign(&key(1)).unwrap());
    carry_out(index, plan);
}

#[test]
fn a_clean_update_ends_the_quarantine_of_a_revoked_version() {
    let echo = skill("echo");
    let newer = |outcome| examined("echo", "1.1.0", "acme", 1, outcome);
    for before in [SkillStatus::Enabled, SkillStatus::Disabled] {
        let mut index = with_echo();
        if before == SkillStatus::Disabled {
            let plan = index.plan_disable(&echo, "ana", None);
            carry_out(&mut index, plan);
        }
        revoke_echo(&mut index, "1.0.0", 1);
        assert_eq!(index.skill(&echo).unwrap().status, SkillStatus::Quarantined);
        assert_eq!(code(index.runnable(&echo)), "skill_artifact_revoked");
        let plan = index.plan_update(&newer(Outcome::Pass), &update(), NOW);
        carry_out(&mut index, plan);
        let record = index.skill(&echo).unwrap();
        assert_eq!((record.status, record.status_reason.as_str()), (before, "updated from 1.0.0, which was revoked"));
        // The next revocation is as good as the first.
        revoke_echo(&mut index, "1.1.0", 2);
        assert_eq!(index.skill(&echo).unwrap().status, SkillStatus::Quarantined);
    }
}

#[test]
fn whatever_else_is_held_against_a_revoked_version_outlasts_an_update() {
    let echo = skill("echo");
    type Doubt = fn(&SkillIndex, &SkillId) -> Result<Vec<SkillEvent>, SkillError>;
    let doubts: [(&str, Doubt); 4] = [
        ("a person", |index, echo| index.plan_quarantine(echo, "ana", "odd")),
        ("an audit", |index, echo| index.plan_audited(echo, &report(Outcome::Fail(1)), AuditCause::Routine)),
        ("a changed file", |index, echo| {
            index.plan_load_failed(echo, &SkillError::Tampered { reason: "changed".to_owned() })
        }),
        ("its publisher", |index, _| index.plan_untrust(&publisher("acme"), "ana", "odd")),
    ];
    for (name, doubt) in doubts {
        for revoked_first in [true, false] {
            let mut index = with_echo();
            if revoked_first {
                revoke_echo(&mut index, "1.0.0", 1);
            }
            let plan = doubt(&index, &echo);
            carry_out(&mut index, plan);
            if !revoked_first {
                revoke_echo(&mut index, "1.0.0", 1);
            }
            let plan = index.plan_trust(&publisher("acme"), &key(1).public(), "ana");
            carry_out(&mut index, plan);
            let plan = index.plan_update(&examined("echo", "1.1.0", "acme", 1, Outcome::Pass), &update(), NOW);
            carry_out(&mut index, plan);
            assert_eq!(code(index.runnable(&echo)), "skill_quarantined", "{name}, revoked first: {revoked_first}");
        }
    }
    // A version that fails its audit does not end it either.
    let mut index = with_echo();
    revoke_echo(&mut index, "1.0.0", 1);
    let plan = index.plan_update(&examined("echo", "1.1.0", "acme", 1, Outcome::Fail(1)), &update(), NOW);
    carry_out(&mut index, plan);
    assert_eq!(code(index.runnable(&echo)), "skill_quarantined");
}

#[test]
fn what_an_older_daemon_did_not_note_is_noted_at_load() {
    let index = with_echo();
    let manifest = examined("echo", "1.0.0", "acme", 1, Outcome::Pass).manifest;
    assert!(index.plan_described(&manifest).unwrap().is_empty());
    // As the journal of such a daemon reads.
    let mut written = serde_json::to_value(&index).unwrap();
    let artifact = written["skills"]["echo"]["artifact"].as_object_mut().unwrap();
    artifact.remove("tools").unwrap();
    artifact.remove("hooks").unwrap();
    let mut older: SkillIndex = serde_json::from_value(written).unwrap();
    assert!(older.skill(&skill("echo")).unwrap().artifact.tools.is_empty());
    let plan = older.plan_described(&manifest);
    carry_out(&mut older, plan);
    assert_eq!(older.skill(&skill("echo")).unwrap().artifact.tools, ["t"]);
    assert!(older.plan_described(&manifest).unwrap().is_empty());
}

#[test]
fn a_tampered_skill_goes_to_quarantine_and_an_unreadable_disk_does_not() {
    let index = with_echo();
    let tampered = SkillError::Tampered { reason: "x".to_owned() };
    assert_eq!(index.plan_load_failed(&skill("echo"), &tampered).unwrap().len(), 1);
    let busy = SkillError::file("read", std::path::Path::new("x"), std::io::ErrorKind::PermissionDenied.into());
    assert!(index.plan_load_failed(&skill("echo"), &busy).unwrap().is_empty());
}

#[test]
fn trust_taken_back_stops_skills_and_comes_back_for_the_named_key_alone() {
    let mut index = with_echo();
    let acme = publisher("acme");
    let plan = index.plan_rotate(&KeyRotation::sign(acme.clone(), &key(1), &key(2), NOW).unwrap());
    carry_out(&mut index, plan);
    let plan = index.plan_untrust(&acme, "ana", "sold");
    carry_out(&mut index, plan);
    assert_eq!(code(index.runnable(&skill("echo"))), "skill_publisher_distrusted");
    assert_eq!(code(index.plan_enable(&skill("echo"), "ana", Some("please"))), "skill_publisher_distrusted");
    let offer = |signer| examined("other", "1.0.0", "acme", signer, Outcome::Pass);
    assert_eq!(code(index.plan_install(&offer(2), &install(Tofu::Pin), NOW)), "skill_publisher_distrusted");
    let plan = index.plan_trust(&acme, &key(2).public(), "ana");
    carry_out(&mut index, plan);
    // The first key is not trusted along, and the skill stays where it is until it is enabled.
    assert_eq!(index.key_trust(&acme, &key(1).public().id()), SkillTrust::Quarantine);
    assert_eq!(index.key_trust(&acme, &key(2).public().id()), SkillTrust::Trusted);
    assert!(index.runnable(&skill("echo")).is_err());
    index.plan_install(&offer(2), &install(Tofu::Refuse), NOW).unwrap();
    assert_eq!(code(index.plan_install(&offer(1), &install(Tofu::Pin), NOW)), "skill_key_changed");
    // A publisher may be refused before it ever shows up.
    let plan = index.plan_untrust(&publisher("spam"), "ana", "spam");
    carry_out(&mut index, plan);
    let spam = examined("spam", "1.0.0", "spam", 7, Outcome::Pass);
    assert_eq!(code(index.plan_install(&spam, &install(Tofu::Pin), NOW)), "skill_publisher_distrusted");
}

#[test]
fn keys_change_only_with_the_word_of_the_old_one() {
    let mut index = with_echo();
    let acme = publisher("acme");
    let good = KeyRotation::sign(acme.clone(), &key(1), &key(2), NOW).unwrap();
    // Signed by the new key alone, by a stranger, for another publisher, or to a key of somebody else.
    let stranger = KeyRotation::sign(acme.clone(), &key(9), &key(2), NOW).unwrap();
    assert_eq!(code(index.plan_rotate(&stranger)), "skill_rotation_refused");
    let mut unsigned = KeyRotation { publisher: acme.clone(), from: key(1).public(), to: key(2).public(), at: NOW };
    let forged = Envelope::sign(&unsigned, &[&key(2)]).unwrap();
    assert_eq!(code(index.plan_rotate(&forged)), "skill_rotation_refused");
    unsigned.publisher = publisher("zeta");
    assert_eq!(
        code(index.plan_rotate(&Envelope::sign(&unsigned, &[&key(1), &key(2)]).unwrap())),
        "skill_publisher_not_found"
    );
    let plan = index.plan_rotate(&good);
    carry_out(&mut index, plan);
    assert_eq!(index.key_trust(&acme, &key(2).public().id()), SkillTrust::Tofu);
    index.runnable(&skill("echo")).unwrap();
    assert_eq!(code(index.plan_rotate(&good)), "skill_rotation_refused");
    let old = examined("echo", "1.1.0", "acme", 1, Outcome::Pass);
    assert_eq!(code(index.plan_update(&old, &update(), NOW)), "skill_key_retired");
    assert_eq!(code(index.plan_trust(&acme, &key(1).public(), "ana")), "skill_key_retired");
    index.plan_update(&examined("echo", "1.1.0", "acme", 2, Outcome::Pass), &update(), NOW).unwrap();
}

#[test]
fn revocations_count_for_their_own_publisher_and_never_go_back() {
    let mut index = with_echo();
    let acme = publisher("acme");
    let plan = index.plan_install(&examined("zed", "1.0.0", "zeta", 5, Outcome::Pass), &install(Tofu::Pin), NOW);
    carry_out(&mut index, plan);
    let list = |number, keys: Vec<u8>, artifacts: Vec<Digest>| RevocationList {
        publisher: acme.clone(),
        number,
        issued_at: NOW,
        keys: keys
            .into_iter()
            .map(|key_number| RevokedKey { key_id: key(key_number).public().id(), reason: "lost".to_owned() })
            .collect(),
        artifacts: artifacts
            .into_iter()
            .map(|content| RevokedArtifact { content, reason: "broken".to_owned() })
            .collect(),
    };
    assert_eq!(
        code(index.plan_revocations(&list(1, vec![1], vec![]).sign(&key(5)).unwrap())),
        "skill_revocation_refused"
    );
    // A list about somebody else's key and skill changes nothing for them.
    let zed = index.skill(&skill("zed")).unwrap().artifact.content;
    let plan = index.plan_revocations(&list(1, vec![5], vec![zed]).sign(&key(1)).unwrap());
    carry_out(&mut index, plan);
    index.runnable(&skill("zed")).unwrap();
    index.runnable(&skill("echo")).unwrap();
    assert_eq!(
        code(index.plan_revocations(&list(1, vec![], vec![]).sign(&key(1)).unwrap())),
        "skill_revocation_refused"
    );
    let echo = index.skill(&skill("echo")).unwrap().artifact.content;
    let plan = index.plan_revocations(&list(2, vec![], vec![echo]).sign(&key(1)).unwrap());
    carry_out(&mut index, plan);
    assert_eq!(code(index.runnable(&skill("echo"))), "skill_artifact_revoked");
    assert_eq!(code(index.plan_enable(&skill("echo"), "ana", Some("please"))), "skill_artifact_revoked");
    let plan = index.plan_revocations(&list(3, vec![1, 2], vec![]).sign(&key(1)).unwrap());
    carry_out(&mut index, plan);
    // The revoked keys can neither be trusted, nor rotated to, nor sign another list.
    assert_eq!(code(index.plan_trust(&acme, &key(1).public(), "ana")), "skill_key_revoked");
    assert_eq!(
        code(index.plan_rotate(&KeyRotation::sign(acme.clone(), &key(1), &key(2), NOW).unwrap())),
        "skill_key_revoked"
    );
    assert_eq!(
        code(index.plan_revocations(&list(4, vec![], vec![]).sign(&key(1)).unwrap())),
        "skill_revocation_refused"
    );
    // By the operator's word it counts for everybody.
    let plan = index.plan_revoke_key(&key(5).public().id(), "ana", "stolen");
    carry_out(&mut index, plan);
    assert_eq!(code(index.runnable(&skill("zed"))), "skill_key_revoked");
}

#[test]
fn a_registry_takes_back_only_what_came_from_it() {
    let mut index = with_echo();
    let registry: crate::RegistryName = "main".parse().unwrap();
    let mut request = install(Tofu::Pin);
    request.origin = Origin::Registry { name: registry.clone() };
    let plan = index.plan_install(&examined("zed", "1.0.0", "zeta", 5, Outcome::Pass), &request, NOW);
    carry_out(&mut index, plan);
    let all: Vec<RevokedArtifact> = index
        .skills()
        .map(|record| RevokedArtifact { content: record.artifact.content, reason: "malware".to_owned() })
        .collect();
    for event in index.plan_registry_revocations(&registry, &all) {
        index.apply(&event, NOW);
    }
    assert_eq!(code(index.runnable(&skill("zed"))), "skill_artifact_revoked");
    index.runnable(&skill("echo")).unwrap();
    assert!(index.plan_registry_revocations(&registry, &all).is_empty());
}

#[test]
fn what_a_registry_passes_on_counts_by_its_publishers_key_alone() {
    let mut index = with_echo();
    let registry: crate::RegistryName = "main".parse().unwrap();
    let lost = |number: u8| vec![RevokedKey { key_id: key(number).public().id(), reason: "lost".to_owned() }];
    let list = |publisher_name: &str, signer| {
        RevocationList::none(publisher(publisher_name)).and(lost(1), Vec::new(), NOW).sign(&key(signer)).unwrap()
    };
    let visited = |revocations| crate::RegistryIndex {
        version: 1,
        expires: NOW,
        root_version: 1,
        artifacts: Vec::new(),
        revoked: Vec::new(),
        revocations,
    };
    // Of somebody unknown, and in the name of a publisher with another key.
    assert!(index.plan_visit(&registry, &visited(vec![list("zeta", 7), list("acme", 7)])).is_empty());
    let good = visited(vec![list("zeta", 7), list("acme", 1)]);
    let planned = index.plan_visit(&registry, &good);
    carry_out(&mut index, Ok(planned));
    assert_eq!(index.skill(&skill("echo")).unwrap().status, SkillStatus::Quarantined);
    assert_eq!(code(index.runnable(&skill("echo"))), "skill_key_revoked");
    assert!(index.plan_visit(&registry, &good).is_empty(), "it is no news");
}

#[test]
fn grants_and_settings_stay_within_the_manifest() {
    let mut index = with_echo();
    let manifest = examined("echo", "1.0.0", "acme", 1, Outcome::Pass).manifest;
    assert_eq!(index.skill(&skill("echo")).unwrap().grants, manifest.capabilities);
    let wider = Capabilities { http: vec!["https://*.example.com".parse().unwrap()], ..Capabilities::default() };
    assert_eq!(code(index.plan_set_grants(&manifest, &wider, "ana")), "skill_grant_refused");
    let plan = index.plan_set_grants(&manifest, &Capabilities::default(), "ana");
    carry_out(&mut index, plan);
    assert!(index.skill(&skill("echo")).unwrap().grants.http.is_empty());
    assert_eq!(code(index.plan_set_config(&manifest, "color", Some("red"), "ana")), "skill_config_unknown");
    let plan = index.plan_set_config(&manifest, "language", Some("de"), "ana");
    carry_out(&mut index, plan);
    assert_eq!(index.skill(&skill("echo")).unwrap().config["language"], "de");
    let mut request = install(Tofu::Pin);
    request.grants = Some(wider);
    assert_eq!(
        code(index.plan_install(&examined("other", "1.0.0", "acme", 1, Outcome::Pass), &request, NOW)),
        "skill_grant_refused"
    );
}

#[test]
fn a_signature_from_the_future_and_an_unfit_palyra_are_refused() {
    let index = SkillIndex::default();
    let mut early = examined("echo", "1.0.0", "acme", 1, Outcome::Pass);
    early.verified.signed_at = Timestamp(NOW.0 + 2 * 86_400_000);
    assert_eq!(code(index.plan_install(&early, &install(Tofu::Pin), NOW)), "skill_signature_invalid");
    let mut newer = examined("echo", "1.0.0", "acme", 1, Outcome::Pass);
    newer.manifest.compat.min_palyra_version = Some("99.0.0".parse().unwrap());
    assert_eq!(code(index.plan_install(&newer, &install(Tofu::Pin), NOW)), "skill_incompatible");
}

/// One thing that somebody or something tries.
#[derive(Debug, Clone)]
enum Attempt {
    Install { skill: u8, version: u8, publisher: u8, signer: u8, fails: Option<u8>, pin: bool },
    Update { skill: u8, version: u8, publisher: u8, signer: u8, fails: Option<u8> },
    Remove { skill: u8 },
    EnableWithoutReason { skill: u8 },
    EnableWithReason { skill: u8 },
    Disable { skill: u8 },
    Quarantine { skill: u8 },
    Audit { skill: u8, fails: Option<u8> },
    Tampered { skill: u8 },
    Trust { publisher: u8, key: u8 },
    Untrust { publisher: u8 },
    Rotate { publisher: u8, from: u8, to: u8 },
    RevokeKey { key: u8 },
    RevocationList { publisher: u8, signer: u8, number: u8, key: u8 },
    RevokeVersion { publisher: u8, signer: u8, number: u8, skill: u8, version: u8, key: Option<u8> },
}

const SKILLS: [&str; 2] = ["echo", "zed"];
const PUBLISHERS: [&str; 2] = ["acme", "zeta"];

fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    let (s, v, p, k) = (0_u8..2, 1_u8..4, 0_u8..2, 1_u8..4);
    let revoked = (p.clone(), k.clone(), 1_u8..6, s.clone(), v.clone(), proptest::option::of(k.clone()));
    let fails = prop_oneof![3 => Just(None), 1 => (0_u8..2).prop_map(Some)];
    let one = prop_oneof![
        4 => (s.clone(), v.clone(), p.clone(), k.clone(), fails.clone(), any::<bool>())
            .prop_map(|(skill, version, publisher, signer, fails, pin)| Attempt::Install { skill, version, publisher, signer, fails, pin }),
        3 => (s.clone(), v, p.clone(), k.clone(), fails.clone())
            .prop_map(|(skill, version, publisher, signer, fails)| Attempt::Update { skill, version, publisher, signer, fails }),
        2 => s.clone().prop_map(|skill| Attempt::Remove { skill }),
        2 => s.clone().prop_map(|skill| Attempt::EnableWithoutReason { skill }),
        1 => s.clone().prop_map(|skill| Attempt::EnableWithReason { skill }),
        1 => s.clone().prop_map(|skill| Attempt::Disable { skill }),
        1 => s.clone().prop_map(|skill| Attempt::Quarantine { skill }),
        2 => (s.clone(), fails).prop_map(|(skill, fails)| Attempt::Audit { skill, fails }),
        1 => s.prop_map(|skill| Attempt::Tampered { skill }),
        2 => (p.clone(), k.clone()).prop_map(|(publisher, key)| Attempt::Trust { publisher, key }),
        1 => p.clone().prop_map(|publisher| Attempt::Untrust { publisher }),
        2 => (p.clone(), k.clone(), k.clone()).prop_map(|(publisher, from, to)| Attempt::Rotate { publisher, from, to }),
        1 => k.clone().prop_map(|key| Attempt::RevokeKey { key }),
        2 => revoked.prop_map(|(publisher, signer, number, skill, version, key)| {
            Attempt::RevokeVersion { publisher, signer, number, skill, version, key }
        }),
        1 => (p, k.clone(), 1_u8..4, k)
            .prop_map(|(publisher, signer, number, key)| Attempt::RevocationList { publisher, signer, number, key }),
    ];
    proptest::collection::vec(one, 1..40)
}

fn plan(index: &SkillIndex, attempt: &Attempt) -> Result<Vec<SkillEvent>, SkillError> {
    let skill = |number: &u8| SKILLS[usize::from(*number)].parse::<SkillId>().unwrap();
    let publisher = |number: &u8| PUBLISHERS[usize::from(*number)].parse::<PublisherName>().unwrap();
    let outcome = |fails: &Option<u8>| fails.map_or(Outcome::Pass, Outcome::Fail);
    let artifact = |s: &u8, v: &u8, p: &u8, k: &u8, f: &Option<u8>| {
        examined(SKILLS[usize::from(*s)], &format!("{v}.0.0"), PUBLISHERS[usize::from(*p)], *k, outcome(f))
    };
    match attempt {
        Attempt::Install { skill: s, version, publisher: p, signer, fails, pin } => {
            let tofu = if *pin { Tofu::Pin } else { Tofu::Refuse };
            index.plan_install(&artifact(s, version, p, signer, fails), &install(tofu), NOW)
        }
        Attempt::Update { skill: s, version, publisher: p, signer, fails } => {
            index.plan_update(&artifact(s, version, p, signer, fails), &update(), NOW)
        }
        Attempt::Remove { skill: s } => index.plan_remove(&skill(s), "ana"),
        Attempt::EnableWithoutReason { skill: s } => index.plan_enable(&skill(s), "ana", None),
        Attempt::EnableWithReason { skill: s } => index.plan_enable(&skill(s), "ana", Some("looked at it")),
        Attempt::Disable { skill: s } => index.plan_disable(&skill(s), "ana", None),
        Attempt::Quarantine { skill: s } => index.plan_quarantine(&skill(s), "ana", "odd"),
        Attempt::Audit { skill: s, fails } => {
            index.plan_audited(&skill(s), &report(outcome(fails)), AuditCause::Routine)
        }
        Attempt::Tampered { skill: s } => {
            index.plan_load_failed(&skill(s), &SkillError::Tampered { reason: "changed".to_owned() })
        }
        Attempt::Trust { publisher: p, key: k } => index.plan_trust(&publisher(p), &key(*k).public(), "ana"),
        Attempt::Untrust { publisher: p } => index.plan_untrust(&publisher(p), "ana", "odd"),
        Attempt::Rotate { publisher: p, from, to } => KeyRotation::sign(publisher(p), &key(*from), &key(*to), NOW)
            .and_then(|envelope| index.plan_rotate(&envelope)),
        Attempt::RevokeKey { key: k } => index.plan_revoke_key(&key(*k).public().id(), "ana", "lost"),
        Attempt::RevocationList { publisher: p, signer, number, key: k } => {
            let keys = vec![RevokedKey { key_id: key(*k).public().id(), reason: "lost".to_owned() }];
            let list = RevocationList {
                publisher: publisher(p),
                number: u64::from(*number),
                issued_at: NOW,
                keys,
                artifacts: Vec::new(),
            };
            list.sign(&key(*signer)).and_then(|envelope| index.plan_revocations(&envelope))
        }
        Attempt::RevokeVersion { publisher: p, signer, number, skill: s, version, key: k } => {
            let content = artifact(s, version, p, signer, &None).content;
            let revoked = |k: &u8| RevokedKey { key_id: key(*k).public().id(), reason: "lost".to_owned() };
            let list = RevocationList {
                publisher: publisher(p),
                number: u64::from(*number),
                issued_at: NOW,
                keys: k.iter().map(revoked).collect(),
                artifacts: vec![RevokedArtifact { content, reason: "leaks".to_owned() }],
            };
            list.sign(&key(*signer)).and_then(|envelope| index.plan_revocations(&envelope))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The index is the fold of its events, also after they went through the journal.
    #[test]
    fn the_index_is_the_fold_of_its_events(attempts in attempts()) {
        let mut index = SkillIndex::default();
        let mut journal = Vec::new();
        for attempt in &attempts {
            for event in plan(&index, attempt).unwrap_or_default() {
                index.apply(&event, NOW);
                journal.push(serde_json::to_string(&event).unwrap());
            }
        }
        let mut again = SkillIndex::default();
        for line in &journal {
            again.apply(&serde_json::from_str(line).unwrap(), NOW);
        }
        prop_assert_eq!(&index, &again);
        let stored: SkillIndex = serde_json::from_str(&serde_json::to_string(&index).unwrap()).unwrap();
        prop_assert_eq!(index, stored);
    }

    /// Nothing but a person's enabling with a reason lets a skill run that fails or was ever put into quarantine; but for another version in the place of one that
    /// was revoked.
    #[test]
    fn quarantine_is_left_by_a_reason_only(attempts in attempts()) {
        let mut index = SkillIndex::default();
        let mut held: BTreeSet<SkillId> = BTreeSet::new();
        for attempt in &attempts {
            for event in plan(&index, attempt).unwrap_or_default() {
                index.apply(&event, NOW);
                if let SkillEvent::StatusChanged { skill_id, status: SkillStatus::Enabled, .. } = &event
                    && matches!(attempt, Attempt::EnableWithReason { .. })
                {
                    held.remove(skill_id);
                }
                held.extend(index.skills().filter(|record| record.is_held()).map(|record| record.skill_id.clone()));
            }
            for record in index.skills() {
                if index.runnable(&record.skill_id).is_ok() {
                    prop_assert!(!held.contains(&record.skill_id), "{attempt:?} let {} run", record.skill_id);
                    prop_assert!(!record.has_open_failures(), "{attempt:?} let {} run against its audit", record.skill_id);
                }
            }
        }
    }

    /// A key that is no longer trusted becomes trusted again by the operator's own word only, and a revoked one never.
    #[test]
    fn a_lost_key_is_not_trusted_again_silently(attempts in attempts()) {
        let mut index = SkillIndex::default();
        let mut lost: BTreeSet<(PublisherName, KeyId)> = BTreeSet::new();
        let mut revoked: BTreeSet<KeyId> = BTreeSet::new();
        for attempt in &attempts {
            let before: Vec<(PublisherName, KeyId)> = index
                .publishers()
                .flat_map(|(name, record)| record.keys.keys().map(|id| (name.clone(), *id)))
                .filter(|(name, id)| index.key_trust(name, id) != SkillTrust::Quarantine)
                .collect();
            for event in plan(&index, attempt).unwrap_or_default() {
                index.apply(&event, NOW);
                match &event {
                    SkillEvent::PublisherTrusted { publisher, key, .. } => { lost.remove(&(publisher.clone(), key.id())); }
                    SkillEvent::KeyRevoked { key_id, publisher: None, .. } => { revoked.insert(*key_id); }
                    _ => {}
                }
            }
            lost.extend(before.into_iter().filter(|(name, id)| index.key_trust(name, id) == SkillTrust::Quarantine));
            for (name, id) in &lost {
                prop_assert_eq!(index.key_trust(name, id), SkillTrust::Quarantine, "{:?} after {:?}", id, attempt);
            }
            for name in PUBLISHERS {
                for id in &revoked {
                    prop_assert_eq!(index.key_trust(&name.parse().unwrap(), id), SkillTrust::Quarantine);
                }
            }
        }
    }
}
