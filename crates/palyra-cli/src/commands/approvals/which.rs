//! Which approval a person means, answered ones included: a whole id, its beginning or its end.
//!
//! For looking and for taking back. What is to be *answered* is looked for among the open ones first, by [`crate::resolve`].

use palyra_client::Client;
use palyra_client::api::{ApprovalState, ListApprovalsParams, ListPatternsParams};
use palyra_common::ApprovalId;

use crate::error::CliError;

/// Any approval.
pub(super) async fn approval(client: &Client, wanted: &str) -> Result<ApprovalId, CliError> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let all = ListApprovalsParams { state: Some(ApprovalState::All), ..Default::default() };
    let page = client.approvals(&all).await?;
    only("approval", wanted, page.approvals.iter().map(|approval| approval.approval_id))
}

/// An approval by which a pattern was agreed to that still counts.
pub(super) async fn pattern(client: &Client, wanted: &str) -> Result<ApprovalId, CliError> {
    if let Ok(id) = wanted.parse() {
        return Ok(id);
    }
    let page = client.patterns(&ListPatternsParams::default()).await?;
    only("pattern", wanted, page.patterns.iter().map(|pattern| pattern.approval_id))
}

fn only(kind: &'static str, wanted: &str, ids: impl Iterator<Item = ApprovalId>) -> Result<ApprovalId, CliError> {
    let part = wanted.to_ascii_uppercase();
    let is_meant = |id: &ApprovalId| {
        let text = id.to_string();
        !part.is_empty() && (text.starts_with(&part) || text.ends_with(&part))
    };
    let matches: Vec<ApprovalId> = ids.filter(is_meant).collect();
    match matches.as_slice() {
        [one] => Ok(*one),
        [] => Err(CliError::NoMatch { kind, wanted: wanted.to_owned() }),
        many => {
            let matches = many.iter().map(ToString::to_string).collect();
            Err(CliError::Ambiguous { wanted: wanted.to_owned(), matches })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_must_mean_one() {
        let ids = [1, 33].map(ApprovalId::from_u128);
        assert_eq!(only("approval", "01", ids.into_iter()).unwrap(), ids[0]);
        assert_eq!(only("approval", "11", ids.into_iter()).unwrap(), ids[1]);
        assert!(matches!(only("approval", "000", ids.into_iter()), Err(CliError::Ambiguous { .. })));
        for nothing in ["", "last", "zz"] {
            assert!(matches!(only("approval", nothing, ids.into_iter()), Err(CliError::NoMatch { .. })), "{nothing:?}");
        }
    }
}
