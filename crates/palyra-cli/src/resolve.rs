//! Which run, session, canvas or approval a person means: a whole id, its beginning or its end, or `last`.
//!
//! The end is accepted because ids of the same hour share their beginning.

use palyra_client::Client;
use palyra_client::api::{
    ListApprovalsParams, ListCanvasesParams, ListCanvasesResponse, ListRunsParams, ListSessionsParams,
};
use palyra_client::command::Command;
use palyra_common::{ApprovalId, CanvasId, RunId, SessionId};

use crate::error::CliError;

const LAST: &str = "last";
/// Pages that are searched for a part of an id; whoever means an older one gives it whole.
const MOST_PAGES: usize = 50;
const PAGE: u32 = 200;

/// The run that is meant.
pub(crate) async fn run(client: &Client, wanted: &str) -> Result<RunId, CliError> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let mut found = Search::new("run", wanted);
    let mut params = ListRunsParams { limit: Some(PAGE), ..Default::default() };
    for _ in 0..MOST_PAGES {
        let page = client.runs(&params).await?;
        if found.offer(page.runs.iter().map(|run| run.run_id)) == More::Unneeded || page.next_before.is_none() {
            break;
        }
        params.before = page.next_before;
    }
    found.finish()
}

/// The session that is meant.
pub(crate) async fn session(client: &Client, wanted: &str) -> Result<SessionId, CliError> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let mut found = Search::new("session", wanted);
    let mut params = ListSessionsParams { limit: Some(PAGE), ..Default::default() };
    for _ in 0..MOST_PAGES {
        let page = client.sessions(&params).await?;
        if let Some(named) = page.sessions.iter().find(|session| session.session_key.as_deref() == Some(wanted)) {
            return Ok(named.session_id);
        }
        if found.offer(page.sessions.iter().map(|session| session.session_id)) == More::Unneeded
            || page.next_before.is_none()
        {
            break;
        }
        params.before = page.next_before;
    }
    found.finish()
}

/// The pending approval that is meant. `last` is not accepted: one should know what one agrees to.
pub(crate) async fn approval(client: &Client, wanted: &str) -> Result<ApprovalId, CliError> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let mut found = Search { last: Last::NotAccepted, ..Search::new("approval", wanted) };
    let page = client.approvals(&ListApprovalsParams::default()).await?;
    found.offer(page.approvals.iter().map(|approval| approval.approval_id));
    found.finish()
}

/// The canvas that is meant.
pub(crate) async fn canvas(client: &Client, wanted: &str) -> Result<CanvasId, CliError> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    // One that is shown is meant before one that was closed.
    let shown = ListCanvasesParams { limit: Some(PAGE), ..Default::default() };
    let all = ListCanvasesParams { include_closed: Some(true), ..shown.clone() };
    match one_canvas(client, wanted, shown).await {
        Err(CliError::NoMatch { .. }) => one_canvas(client, wanted, all).await,
        found => found,
    }
}

async fn one_canvas(client: &Client, wanted: &str, params: ListCanvasesParams) -> Result<CanvasId, CliError> {
    let mut found = Search::new("canvas", wanted);
    let page: ListCanvasesResponse = client.execute(&Command::CanvasList(params)).await?;
    found.offer(page.canvases.iter().map(|canvas| canvas.canvas_id));
    found.finish()
}

#[derive(PartialEq, Eq)]
enum More {
    Wanted,
    Unneeded,
}

#[derive(PartialEq, Eq)]
enum Last {
    Accepted,
    NotAccepted,
}

/// A search over ids that come newest first.
struct Search<Id> {
    kind: &'static str,
    wanted: String,
    last: Last,
    matches: Vec<Id>,
}

impl<Id: Copy + ToString> Search<Id> {
    fn new(kind: &'static str, wanted: &str) -> Self {
        Self { kind, wanted: wanted.to_owned(), last: Last::Accepted, matches: Vec::new() }
    }

    fn offer(&mut self, ids: impl Iterator<Item = Id>) -> More {
        let mut ids = ids;
        if self.wanted.eq_ignore_ascii_case(LAST) && self.last == Last::Accepted {
            self.matches.extend(ids.next());
            return More::Unneeded;
        }
        let part = self.wanted.to_ascii_uppercase();
        if part.is_empty() {
            return More::Unneeded;
        }
        self.matches.extend(ids.filter(|id| {
            let text = id.to_string();
            text.starts_with(&part) || text.ends_with(&part)
        }));
        More::Wanted
    }

    fn finish(self) -> Result<Id, CliError> {
        match self.matches.as_slice() {
            [] => Err(CliError::NoMatch { kind: self.kind, wanted: self.wanted }),
            [one] => Ok(*one),
            many => {
                let matches = many.iter().map(ToString::to_string).collect();
                Err(CliError::Ambiguous { wanted: self.wanted, matches })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(wanted: &str, ids: &[u128]) -> Result<RunId, CliError> {
        let mut search = Search::new("run", wanted);
        search.offer(ids.iter().map(|bits| RunId::from_u128(*bits)));
        search.finish()
    }

    #[test]
    fn parts_of_ids() {
        let (a, b) =
            (RunId::from_u128(0x0190_0000_0000_0000_0000_0000_0000_00aa), 0x0190_0000_0000_0000_0000_0000_0000_00bb);
        let ids = [a.to_u128(), b];
        let text = a.to_string();
        assert_eq!(search("last", &ids).unwrap(), a);
        assert_eq!(search(&text[20..].to_lowercase(), &ids).unwrap(), a);
        assert!(matches!(search(&text[..8], &ids), Err(CliError::Ambiguous { matches, .. }) if matches.len() == 2));
        assert!(matches!(search("ZZZZ", &ids), Err(CliError::NoMatch { .. })));
        assert!(matches!(search("", &ids), Err(CliError::NoMatch { .. })));
        assert!(matches!(search("last", &[]), Err(CliError::NoMatch { .. })));
    }

    #[test]
    fn nobody_agrees_to_the_last_thing_unseen() {
        let mut search = Search { last: Last::NotAccepted, ..Search::new("approval", "last") };
        search.offer([ApprovalId::from_u128(1)].into_iter());
        assert!(matches!(search.finish(), Err(CliError::NoMatch { .. })));
    }
}
