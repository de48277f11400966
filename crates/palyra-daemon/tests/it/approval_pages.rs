//! Pages of approvals: those of runs and those that clients ask for, in one order, each once.

use std::time::Duration;

use palyra_client::api::ListApprovalsParams;
use palyra_common::ApprovalId;

use crate::raw::unix;
use crate::support::Place;

const SCRIPT: &str = r#"
[[turn]]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "x" }
[[turn]]
text = "done"
"#;

#[tokio::test]
async fn every_approval_is_on_exactly_one_page() {
    let place = Place::new().with_script(SCRIPT).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = place.start().await;
    for number in 0..7 {
        if number % 2 == 0 {
            daemon.create(&format!("write {number}")).await;
        } else {
            let asked = unix(&daemon, "POST /api/v1/approvals", br#"{"subject":"tool","summary":"may I?"}"#);
            assert_eq!(asked.status, 200, "{asked:?}");
        }
        while daemon.client.approvals(&ListApprovalsParams::default()).await.unwrap().approvals.len() <= number {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let whole = daemon.client.approvals(&ListApprovalsParams::default()).await.unwrap();
    assert_eq!((whole.approvals.len(), whole.next_after), (7, None));
    let ids = |approvals: &[palyra_client::api::ApprovalView]| -> Vec<ApprovalId> {
        approvals.iter().map(|approval| approval.approval_id).collect()
    };
    for limit in 1..=7 {
        let (mut after, mut listed) = (None, Vec::new());
        loop {
            let params = ListApprovalsParams { limit: Some(limit), after, ..ListApprovalsParams::default() };
            let page = daemon.client.approvals(&params).await.unwrap();
            assert!(page.approvals.len() <= limit as usize, "{limit}: {page:?}");
            listed.extend(ids(&page.approvals));
            after = page.next_after;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, ids(&whole.approvals), "pages of {limit}");
    }
    assert_eq!(unix(&daemon, "GET /api/v1/approvals?limit=0", b"").code(), "request_invalid");
}
