//! TokensService: API tokens, and who the caller is.

use std::sync::Arc;

use palyra_client::api::RotateTokenParams;
use palyra_client::command::{About, NoParams};
use palyra_proto::auth::v1 as wire;
use palyra_proto::auth::v1::tokens_service_server::TokensService;
use tonic::{Request, Response, Status};

use super::ask::{caller, outcome, unreadable};
use super::{read, write};
use crate::app::App;

/// The service.
pub(super) struct TokensOverGrpc {
    app: Arc<App>,
}

impl TokensOverGrpc {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl TokensService for TokensOverGrpc {
    async fn who_am_i(&self, request: Request<wire::WhoAmIRequest>) -> Result<Response<wire::WhoAmIResponse>, Status> {
        let caller = caller(&request)?;
        let view = outcome!(&self.app, &caller, PrincipalShow(NoParams {}));
        Ok(Response::new(write::principal(view)))
    }

    async fn create_token(
        &self,
        request: Request<wire::CreateTokenRequest>,
    ) -> Result<Response<wire::CreateTokenResponse>, Status> {
        let caller = caller(&request)?;
        let params = read::new_token(request.into_inner()).map_err(unreadable)?;
        let made = outcome!(&self.app, &caller, TokenCreate(params));
        Ok(Response::new(write::new_token(made)))
    }

    async fn list_tokens(
        &self,
        request: Request<wire::ListTokensRequest>,
    ) -> Result<Response<wire::ListTokensResponse>, Status> {
        let caller = caller(&request)?;
        let listed = outcome!(&self.app, &caller, TokenList(NoParams {}));
        let tokens = listed.tokens.into_iter().map(write::token).collect();
        Ok(Response::new(wire::ListTokensResponse { tokens }))
    }

    async fn rotate_token(
        &self,
        request: Request<wire::RotateTokenRequest>,
    ) -> Result<Response<wire::RotateTokenResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let target = read::parsed(&request.token_id, "token_id").map_err(unreadable)?;
        let params = RotateTokenParams { overlap_minutes: request.overlap_minutes };
        let made = outcome!(&self.app, &caller, TokenRotate(About { target, params }));
        Ok(Response::new(write::rotated_token(made)))
    }

    async fn revoke_token(
        &self,
        request: Request<wire::RevokeTokenRequest>,
    ) -> Result<Response<wire::RevokeTokenResponse>, Status> {
        let caller = caller(&request)?;
        let id = read::parsed(&request.get_ref().token_id, "token_id").map_err(unreadable)?;
        let revoked = outcome!(&self.app, &caller, TokenRevoke(About::only(id)));
        Ok(Response::new(wire::RevokeTokenResponse { token: Some(write::token(revoked)) }))
    }
}
