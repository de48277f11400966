//! Which services there are. Nothing else is served.

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use http::Uri;
use palyra_proto::auth::v1::tokens_service_server::TokensServiceServer;
use palyra_proto::gateway::v1::approvals_service_server::ApprovalsServiceServer;
use palyra_proto::gateway::v1::canvas_service_server::CanvasServiceServer;
use palyra_proto::gateway::v1::gateway_service_server::GatewayServiceServer;
use palyra_proto::{FILE_DESCRIPTOR_SET, MAX_MESSAGE_BYTES, STATUS_DESCRIPTOR_SET};
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::{Code, Status};

use super::approvals::Approvals;
use super::canvases::Canvases;
use super::gateway::Gateway;
use super::tokens::TokensOverGrpc;
use super::{admit, health, status};
use crate::app::App;
use crate::error::DaemonError;

/// Limits on messages, the same for every service.
macro_rules! limited {
    ($server:expr) => {
        $server.max_decoding_message_size(MAX_MESSAGE_BYTES).max_encoding_message_size(MAX_MESSAGE_BYTES)
    };
}

/// Everything that is served over gRPC.
pub(crate) async fn router(app: Arc<App>) -> Result<Router, DaemonError> {
    let names = [
        <GatewayServiceServer<Gateway> as NamedService>::NAME,
        <ApprovalsServiceServer<Approvals> as NamedService>::NAME,
        <CanvasServiceServer<Canvases> as NamedService>::NAME,
        <TokensServiceServer<TokensOverGrpc> as NamedService>::NAME,
    ];
    let routes = Routes::from(Router::new().fallback(no_service))
        .add_service(limited!(GatewayServiceServer::new(Gateway::new(Arc::clone(&app)))))
        .add_service(limited!(ApprovalsServiceServer::new(Approvals::new(Arc::clone(&app)))))
        .add_service(limited!(CanvasServiceServer::new(Canvases::new(Arc::clone(&app)))))
        .add_service(limited!(TokensServiceServer::new(TokensOverGrpc::new(Arc::clone(&app)))))
        .add_service(health::service(&names, app.closing.clone()).await)
        // Clients of both ages: the older name is what most of them still ask for.
        .add_service(limited!(described(&names, "grpc.reflection.v1.ServerReflection").build_v1().map_err(reflection)?))
        .add_service(limited!(
            described(&names, "grpc.reflection.v1alpha.ServerReflection").build_v1alpha().map_err(reflection)?
        ));
    Ok(routes.into_axum_router().layer(middleware::from_fn_with_state(app, admit::call)))
}

/// The schema with those services alone that are really there.
fn described(names: &[&str], own: &str) -> tonic_reflection::server::Builder<'static> {
    let builder = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(STATUS_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .with_service_name(health::NAME)
        .with_service_name(own);
    names.iter().fold(builder, |builder, name| builder.with_service_name(*name))
}

fn reflection(error: tonic_reflection::server::Error) -> DaemonError {
    DaemonError::system("describe the gRPC services")(std::io::Error::other(error))
}

async fn no_service(uri: Uri) -> axum::response::Response {
    status::of_library(Status::new(Code::Unimplemented, ""), uri.path()).into_http()
}
