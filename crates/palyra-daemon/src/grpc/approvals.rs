//! ApprovalsService: questions to people, their answers, and what was agreed to for longer.

use std::sync::Arc;

use palyra_client::api::ListPatternsParams;
use palyra_client::command::About;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::approvals_service_server::ApprovalsService;
use tonic::{Request, Response, Status};

use super::ask::{caller, outcome, unreadable};
use super::{read, write};
use crate::app::App;

/// The service.
pub(super) struct Approvals {
    app: Arc<App>,
}

impl Approvals {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl ApprovalsService for Approvals {
    async fn list_approvals(
        &self,
        request: Request<wire::ListApprovalsRequest>,
    ) -> Result<Response<wire::ListApprovalsResponse>, Status> {
        let caller = caller(&request)?;
        let mut params = read::list_approvals(request.get_ref()).map_err(unreadable)?;
        let mut approvals = Vec::new();
        // The message has no pages, so it holds them all.
        loop {
            let listed = outcome!(&self.app, &caller, ApprovalList(params.clone()));
            approvals.extend(listed.approvals.into_iter().map(write::approval));
            params.after = listed.next_after;
            if params.after.is_none() {
                return Ok(Response::new(wire::ListApprovalsResponse { approvals }));
            }
        }
    }

    async fn get_approval(
        &self,
        request: Request<wire::GetApprovalRequest>,
    ) -> Result<Response<wire::GetApprovalResponse>, Status> {
        let caller = caller(&request)?;
        let id = read::parsed(&request.get_ref().approval_id, "approval_id").map_err(unreadable)?;
        let found = outcome!(&self.app, &caller, ApprovalGet(About::only(id)));
        Ok(Response::new(wire::GetApprovalResponse { approval: Some(write::approval(found)) }))
    }

    async fn decide_approval(
        &self,
        request: Request<wire::DecideApprovalRequest>,
    ) -> Result<Response<wire::DecideApprovalResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let target = read::parsed(&request.approval_id, "approval_id").map_err(unreadable)?;
        let params =
            read::decision(request.decision, request.scope, request.minutes, request.reason).map_err(unreadable)?;
        let decided = outcome!(&self.app, &caller, ApprovalDecide(About { target, params }));
        Ok(Response::new(wire::DecideApprovalResponse { run: decided.run.map(write::run) }))
    }

    async fn list_patterns(
        &self,
        request: Request<wire::ListPatternsRequest>,
    ) -> Result<Response<wire::ListPatternsResponse>, Status> {
        let caller = caller(&request)?;
        let params = ListPatternsParams { all: Some(request.get_ref().include_ended) };
        let listed = outcome!(&self.app, &caller, PatternList(params));
        let patterns = listed.patterns.into_iter().map(write::pattern).collect();
        Ok(Response::new(wire::ListPatternsResponse { patterns }))
    }

    async fn revoke_pattern(
        &self,
        request: Request<wire::RevokePatternRequest>,
    ) -> Result<Response<wire::RevokePatternResponse>, Status> {
        let caller = caller(&request)?;
        let id = read::parsed(&request.get_ref().approval_id, "approval_id").map_err(unreadable)?;
        let left = outcome!(&self.app, &caller, PatternRevoke(About::only(id)));
        let patterns = left.patterns.into_iter().map(write::pattern).collect();
        Ok(Response::new(wire::RevokePatternResponse { patterns }))
    }
}
