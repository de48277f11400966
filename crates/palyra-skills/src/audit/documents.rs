//! The lists that come with a skill: parts and provenance, compared with what is really there.

use palyra_common::Digest;

use super::AuditPolicy;
use super::report::{AuditCode, Findings};
use crate::SkillArchive;
use crate::archive::path;
use crate::error::shown;
use crate::provenance::Provenance;
use crate::sbom::Sbom;

/// Checks both lists.
pub(super) fn check(archive: &SkillArchive, policy: &AuditPolicy, found: &mut Findings) {
    check_sbom(archive, policy, found);
    check_provenance(archive, policy, found);
}

fn check_sbom(archive: &SkillArchive, policy: &AuditPolicy, found: &mut Findings) {
    let at = Some(path::SBOM);
    let Some(bytes) = archive.files().get(path::SBOM) else {
        found.push(policy.missing_sbom, AuditCode::SbomMissing, at, "there is no SBOM");
        return;
    };
    let sbom = match Sbom::parse(bytes) {
        Ok(sbom) => sbom,
        Err(reason) => {
            found.fail(AuditCode::SbomMalformed, at, format!("the SBOM cannot be read: {}", shown(&reason)));
            return;
        }
    };
    if sbom.components == 0 {
        found.warn(AuditCode::SbomMismatch, at, "the SBOM is empty");
    }
    for (name, digest) in &sbom.digests {
        if archive.files().get(name).is_some_and(|bytes| Digest::of(bytes) != *digest) {
            found.fail(AuditCode::SbomMismatch, at, format!("the SBOM has a different digest for `{}`", shown(name)));
        }
    }
    let manifest = archive.manifest();
    if let Some((name, version)) = &sbom.subject
        && (name != manifest.skill_id.as_str() || *version != manifest.version.to_string())
    {
        found.warn(AuditCode::SbomMismatch, at, format!("the SBOM describes `{}` {}", shown(name), shown(version)));
    }
}

fn check_provenance(archive: &SkillArchive, policy: &AuditPolicy, found: &mut Findings) {
    let at = Some(path::PROVENANCE);
    let Some(bytes) = archive.files().get(path::PROVENANCE) else {
        found.push(
            policy.missing_provenance,
            AuditCode::ProvenanceMissing,
            at,
            "there is no provenance record for the modules",
        );
        return;
    };
    let provenance = match Provenance::parse(bytes) {
        Ok(provenance) => provenance,
        Err(error) => {
            found.fail(AuditCode::ProvenanceMalformed, at, format!("the provenance record cannot be read: {error}"));
            return;
        }
    };
    for (module, wasm) in archive.modules() {
        match provenance.modules.iter().find(|built| built.path == module) {
            None => {
                found.fail(
                    AuditCode::ProvenanceMismatch,
                    at,
                    format!("the provenance record does not list `{module}`"),
                );
            }
            Some(built) if built.sha256 != Digest::of(wasm) => {
                found.fail(AuditCode::ProvenanceMismatch, at, format!("`{module}` is not the module that was built"));
            }
            Some(_) => {}
        }
    }
    for built in &provenance.modules {
        if !archive.files().contains_key(&built.path) {
            found.warn(
                AuditCode::ProvenanceMismatch,
                at,
                format!("the provenance record lists `{}`, which is missing", shown(&built.path)),
            );
        }
    }
}
