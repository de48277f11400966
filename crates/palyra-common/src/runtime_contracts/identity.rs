//! Who a caller is to the daemon: roles, and the scopes that bound what a credential is good for.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// What a principal is to this installation. Ordered from the most to the least that it may do.
    pub enum PrincipalRole("principal_role") {
        /// Whose installation it is: may do everything.
        Owner = "owner",
        /// Works with it: its own sessions, runs and approvals.
        Operator = "operator",
        /// Looks on: reads what is its own, changes nothing.
        Viewer = "viewer",
    }
}

impl PrincipalRole {
    /// Everything that this role can ever reach. A credential may hold fewer scopes, never more.
    #[must_use]
    pub const fn scopes(self) -> &'static [TokenScope] {
        match self {
            Self::Owner => TokenScope::ALL,
            Self::Operator => OPERATOR,
            Self::Viewer => VIEWER,
        }
    }

    /// Whether this role can reach a scope at all.
    #[must_use]
    pub fn reaches(self, scope: TokenScope) -> bool {
        self.scopes().contains(&scope)
    }
}

runtime_contract_enum! {
    /// What a credential may be used for. The part before the colon is the thing, the part after it what is done to it.
    pub enum TokenScope("token_scope") {
        /// List and read sessions.
        SessionsRead = "sessions:read",
        /// Start, change and archive sessions.
        SessionsWrite = "sessions:write",
        /// Read runs and their tapes.
        RunsRead = "runs:read",
        /// Start, steer and stop runs.
        RunsWrite = "runs:write",
        /// See what waits for an answer.
        ApprovalsRead = "approvals:read",
        /// Answer what waits.
        ApprovalsDecide = "approvals:decide",
        /// Read and verify the journal.
        JournalRead = "journal:read",
        /// Back up, seal and repair the journal.
        JournalAdmin = "journal:admin",
        /// Read settings.
        ConfigRead = "config:read",
        /// Read policies and ask how they decide.
        PolicyRead = "policy:read",
        /// List tools and how they are classified.
        ToolsRead = "tools:read",
        /// Create, rotate and revoke tokens; list and revoke devices; grant and revoke workspaces.
        TokensManage = "tokens:manage",
        /// Stop and reload the daemon; set up and remove agents.
        DaemonControl = "daemon:control",
        /// Use models through the OpenAI-compatible interface.
        ModelsUse = "models:use",
        /// Read measurements.
        MetricsRead = "metrics:read",
        /// Put questions of a client's own to its person.
        ApprovalsRequest = "approvals:request",
        /// List skills, their publishers and hooks.
        SkillsRead = "skills:read",
        /// Install, enable, configure and remove skills and hooks.
        SkillsManage = "skills:manage",
        /// Hand over messages of chat channels, as their senders' words and not the person's.
        MessagesRoute = "messages:route",
    }
}

const VIEWER: &[TokenScope] = &[
    TokenScope::SessionsRead,
    TokenScope::RunsRead,
    TokenScope::ApprovalsRead,
    TokenScope::JournalRead,
    TokenScope::ConfigRead,
    TokenScope::PolicyRead,
    TokenScope::ToolsRead,
    TokenScope::MetricsRead,
    TokenScope::SkillsRead,
];

const OPERATOR: &[TokenScope] = &[
    TokenScope::SessionsRead,
    TokenScope::SessionsWrite,
    TokenScope::RunsRead,
    TokenScope::RunsWrite,
    TokenScope::ApprovalsRead,
    TokenScope::ApprovalsRequest,
    TokenScope::ApprovalsDecide,
    TokenScope::JournalRead,
    TokenScope::ConfigRead,
    TokenScope::PolicyRead,
    TokenScope::ToolsRead,
    TokenScope::ModelsUse,
    TokenScope::MetricsRead,
    TokenScope::SkillsRead,
    TokenScope::MessagesRoute,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_reads_and_nothing_else() {
        for scope in TokenScope::ALL {
            assert_eq!(PrincipalRole::Viewer.reaches(*scope), scope.as_str().ends_with(":read"), "{scope}");
        }
    }

    #[test]
    fn every_role_reaches_what_the_next_one_does_and_more() {
        for pair in PrincipalRole::ALL.windows(2) {
            assert!(pair[1].scopes().iter().all(|scope| pair[0].reaches(*scope)), "{} within {}", pair[1], pair[0]);
            assert!(pair[0].scopes().len() > pair[1].scopes().len());
        }
        assert_eq!(PrincipalRole::Owner.scopes(), TokenScope::ALL);
    }

    #[test]
    fn an_operator_administers_nothing() {
        let beyond: Vec<&str> = TokenScope::ALL
            .iter()
            .filter(|scope| !PrincipalRole::Operator.reaches(**scope))
            .map(|scope| scope.as_str())
            .collect();
        assert_eq!(beyond, ["journal:admin", "tokens:manage", "daemon:control", "skills:manage"]);
    }

    #[test]
    fn scopes_are_read_with_any_separator() {
        for text in ["sessions:read", "sessions_read", "sessions.read", "SessionsRead"] {
            assert_eq!(text.parse(), Ok(TokenScope::SessionsRead), "{text}");
        }
    }
}
