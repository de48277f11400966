//! Suspicious strings: credentials, addresses of undeclared hosts, archives and programs among the assets.
//!
//! These are signs, not proof. What a skill can do is bounded by its grants whatever its strings say; but a credential in a published archive is a leak, and
//! an address that nobody declared is worth a question.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use palyra_safety::{Confidence, Coverage, FindingKind, Scanner};

use super::modules::Used;
use super::report::{AuditCode, AuditSeverity, Findings};
use crate::archive::path;
use crate::{SkillArchive, SkillManifest};

/// Shortest run of printable characters that is looked at.
const MIN_RUN: usize = 8;
/// Most text of one file that is looked at; an interpreter in a module has several megabytes.
const MAX_TEXT: usize = 4 << 20;
/// Most text of all files together: searching takes time, and an audit is made at every load.
const MAX_TOTAL: usize = 8 << 20;
/// Hosts that are listed for one file.
const MAX_HOSTS: usize = 8;
/// Names of formats that look like addresses.
const NAMESPACES: [&str; 4] = ["www.w3.org", "json-schema.org", "schemas.xmlsoap.org", "schemas.microsoft.com"];
/// How other archives begin.
const ARCHIVES: [&[u8]; 8] = [
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"7z\xbc\xaf\x27\x1c",
    b"\x28\xb5\x2f\xfd",
    b"Rar!",
];
/// How programs begin.
const PROGRAMS: [&[u8]; 7] =
    [b"\x7fELF", b"MZ", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm"];

/// `None` only if the built-in patterns did not compile; the audit then fails.
static SCANNER: LazyLock<Option<Scanner>> = LazyLock::new(|| Scanner::new(&[]).ok());

/// Checks every file.
pub(super) fn check(archive: &SkillArchive, used: &Used, found: &mut Findings) {
    let Some(scanner) = &*SCANNER else {
        found.fail(AuditCode::Incomplete, None, "the search for credentials is not available");
        return;
    };
    let mut searched = 0;
    for (path, bytes) in archive.files() {
        if path == path::SIGNATURE {
            continue;
        }
        if path.starts_with(path::ASSETS) {
            check_kind(path, bytes, found);
        }
        if searched > MAX_TOTAL {
            let message = "there is too much text to search for credentials and hosts";
            found.warn(AuditCode::Incomplete, None, message);
            continue;
        }
        let text = printable(bytes);
        searched += text.len();
        check_secrets(path, &text, scanner, found);
        if path::is_module(path) {
            check_hosts(path, &text, archive.manifest(), used, found);
        }
    }
}

fn check_kind(path: &str, bytes: &[u8], found: &mut Findings) {
    // `ustar` stands further on in a tape archive.
    let tape = bytes.get(257..262) == Some(b"ustar");
    if tape || ARCHIVES.iter().any(|magic| bytes.starts_with(magic)) {
        found.fail(
            AuditCode::ArchiveNested,
            Some(path),
            format!("`{path}` is an archive; its contents cannot be audited"),
        );
    }
    if PROGRAMS.iter().any(|magic| bytes.starts_with(magic)) {
        found.fail(
            AuditCode::ExecutableAsset,
            Some(path),
            format!("`{path}` is a program; programs belong in `modules/`"),
        );
    }
}

/// The runs of printable ASCII, a line each.
fn printable(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for run in bytes.split(|byte| !(byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t'))) {
        if run.len() >= MIN_RUN {
            text.extend_from_slice(run);
            text.push(b'\n');
        }
        if text.len() > MAX_TEXT {
            text.truncate(MAX_TEXT);
            break;
        }
    }
    text
}

fn check_secrets(path: &str, text: &[u8], scanner: &Scanner, found: &mut Findings) {
    let scan = scanner.scan(text);
    let mut told = BTreeSet::new();
    for finding in &scan.findings {
        // These shapes also occur in the texts of interpreters and in documentation.
        let vague = matches!(
            finding.kind,
            FindingKind::AssignedSecret | FindingKind::ConnectionString | FindingKind::AuthorizationHeader
        );
        let severity = match (finding.confidence, vague) {
            (Confidence::Low, _) => continue,
            (Confidence::High, false) => AuditSeverity::Fail,
            _ => AuditSeverity::Warn,
        };
        if told.insert((finding.kind, severity)) {
            found.push(
                severity,
                AuditCode::SecretEmbedded,
                Some(path),
                format!("`{path}` appears to contain a credential ({})", finding.kind),
            );
        }
    }
    if scan.coverage == Coverage::Partial || text.len() >= MAX_TEXT {
        found.note(AuditCode::Incomplete, Some(path), format!("not all of `{path}` could be searched"));
    }
}

fn check_hosts(path: &str, text: &[u8], manifest: &SkillManifest, used: &Used, found: &mut Findings) {
    let declared = |host: &str| {
        NAMESPACES.contains(&host) || manifest.capabilities.http.iter().any(|rule| rule.host.matches(host))
    };
    let hosts: BTreeSet<String> = hosts_in(text).into_iter().filter(|host| !declared(host)).collect();
    if hosts.is_empty() {
        return;
    }
    let named: Vec<String> = hosts.iter().take(MAX_HOSTS).map(|host| format!("`{host}`")).collect();
    let more = if hosts.len() > MAX_HOSTS { " and others" } else { "" };
    // A module that cannot send requests mentions addresses in messages at most.
    let severity = if used.http { AuditSeverity::Warn } else { AuditSeverity::Note };
    found.push(
        severity,
        AuditCode::HostUndeclared,
        Some(path),
        format!("`{path}` mentions hosts that are not in the manifest: {}{more}", named.join(", ")),
    );
}

/// The hosts of everything that looks like an address.
fn hosts_in(text: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    let mut hosts = BTreeSet::new();
    for (at, scheme) in text.match_indices("://") {
        let before = text.get(..at).unwrap_or_default();
        if !before.ends_with("http")
            && !before.ends_with("https")
            && !before.ends_with("ws")
            && !before.ends_with("wss")
        {
            continue;
        }
        let rest = text.get(at + scheme.len()..).unwrap_or_default();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '@' | ':')))
            .unwrap_or(rest.len());
        let authority = rest.get(..end).unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
        let host = host.trim_matches('.');
        if host.contains('.') || host == "localhost" {
            hosts.insert(host.chars().take(100).collect());
        }
        if hosts.len() > 1_000 {
            break;
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_wherever_they_stand() {
        let text = b"see https://evil.example/x and WSS://u:p@Other.Example:8443, not https:// nor a://b.c";
        assert_eq!(hosts_in(text).into_iter().collect::<Vec<_>>(), ["evil.example", "other.example"]);
    }

    #[test]
    fn short_runs_are_left_out() {
        assert_eq!(printable(b"\0short\0long enough\x01\xffand another one"), b"long enough\nand another one\n");
    }
}
