//! How a process was confined, in words: which tier it ran in and why, and what was put out of its reach.

use std::fmt::Write as _;

use palyra_common::SandboxTier;
use palyra_sandbox::{Child, HiddenSockets, Plan};
use serde_json::{Value, json};

/// What is known about the confinement of a process that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Confinement {
    pub(super) tier: SandboxTier,
    /// Why it is tier B although C was asked for; empty if it is the tier that was.
    fell_back: Vec<String>,
    hidden: HiddenSockets,
}

impl Confinement {
    pub(super) fn of(plan: &Plan, child: &Child) -> Self {
        Self { tier: plan.tier(), fell_back: plan.fell_back().to_vec(), hidden: child.hidden_sockets.clone() }
    }

    /// Why it is tier B although C was asked for; empty if it is the tier that was.
    pub(super) fn fallback_reasons(&self) -> &[String] {
        &self.fell_back
    }

    /// For the line that says how a process ended or that it was started: which tier it got instead of the one asked for. Empty if nothing fell back.
    pub(super) fn fallback(&self) -> String {
        if self.fell_back.is_empty() {
            return String::new();
        }
        format!(" (in tier {} because tier C is not available: {})", self.tier, self.fell_back.join("; "))
    }

    /// Lines about sockets of the host, if there were any.
    pub(super) fn tell_sockets(&self, content: &mut String) {
        let HiddenSockets { paths, more, unix_sockets_refused } = &self.hidden;
        if !paths.is_empty() {
            let named: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
            let rest = if *more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(content, "--- hidden from the program: sockets of the host {}{rest}", named.join(", "));
        }
        if *unix_sockets_refused {
            let _ = writeln!(
                content,
                "--- the program could make no Unix sockets, because the workspace is too large to search for the host's"
            );
        }
    }

    /// For machines.
    pub(super) fn data(&self) -> Value {
        json!({ "fell_back": self.fell_back, "hidden_sockets": self.hidden })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_of_what_was_asked_for() {
        let plain = Confinement { tier: SandboxTier::C, fell_back: Vec::new(), hidden: HiddenSockets::default() };
        let mut content = String::new();
        plain.tell_sockets(&mut content);
        assert_eq!((plain.fallback().as_str(), content.as_str()), ("", ""));
    }

    #[test]
    fn a_fallback_and_hidden_sockets_are_told() {
        let hidden = HiddenSockets { paths: vec!["/w/a.sock".into()], more: 2, unix_sockets_refused: true };
        let fell_back = vec!["user namespaces are not available (forbidden)".to_owned()];
        let confinement = Confinement { tier: SandboxTier::B, fell_back, hidden };
        assert_eq!(
            confinement.fallback(),
            " (in tier B because tier C is not available: user namespaces are not available (forbidden))"
        );
        let mut content = String::new();
        confinement.tell_sockets(&mut content);
        assert!(content.contains("sockets of the host `/w/a.sock` and 2 more\n"), "{content}");
        assert!(content.contains("no Unix sockets"), "{content}");
    }
}
