//! What is refused, and that every refusal carries its envelope.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use palyra_proto::auth::v1 as auth;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::{common, error_from_status};
use tonic::client::Grpc as Raw;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use super::support::{Grpc, channel, grpc_address, refused};
use crate::support::Place;

#[tokio::test]
async fn strangers_learn_nothing_but_that_somebody_is_there() {
    let place = Place::new();
    let daemon = place.start().await;
    for token in [None, Some("wrong".to_owned()), Some(String::new())] {
        let mut stranger = Grpc::showing(&daemon, token).await;
        let expected = (Code::Unauthenticated, "token_refused".to_owned());
        assert_eq!(refused(stranger.gateway.list_runs(wire::ListRunsRequest::default()).await), expected);
        assert_eq!(refused(stranger.gateway.get_health(wire::GetHealthRequest {}).await), expected);
        assert_eq!(refused(stranger.tokens.who_am_i(auth::WhoAmIRequest {}).await), expected);
    }
    // Who somebody is never comes from other metadata.
    let mut stranger = Grpc::showing(&daemon, None).await;
    let mut request = Request::new(wire::ListRunsRequest::default());
    for name in ["x-principal", "x-user", "x-forwarded-client-cert", "cookie"] {
        request.metadata_mut().insert(name, "uid:0".parse().unwrap());
    }
    assert_eq!(refused(stranger.gateway.list_runs(request).await).0, Code::Unauthenticated);

    let mut health = HealthClient::new(channel(&daemon).await);
    let names =
        ["", "palyra.gateway.v1.GatewayService", "palyra.auth.v1.TokensService", "palyra.gateway.v1.CanvasService"];
    for name in names {
        let answer = health.check(HealthCheckRequest { service: name.to_owned() }).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving, "{name}");
    }
    let absent = HealthCheckRequest { service: "palyra.gateway.v1.VaultService".to_owned() };
    assert_eq!(health.check(absent).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn every_refusal_carries_its_envelope() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let run = |run_id: &str| wire::GetRunRequest { run_id: run_id.to_owned() };
    let missing = grpc.gateway.get_run(run("01JC0Q6F7Z8G9H0J1K2M3N4P5Q")).await.unwrap_err();
    assert_eq!((missing.code(), error_from_status(&missing).code.as_str()), (Code::NotFound, "run_not_found"));
    let wrong = grpc.gateway.get_run(run("short")).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
    assert_eq!(error_from_status(&wrong).validation_errors[0].field, "run_id");
    let page = wire::ListRunsRequest { page_token: "nonsense".into(), ..Default::default() };
    assert_eq!(refused(grpc.gateway.list_runs(page).await), (Code::InvalidArgument, "proto_message_invalid".into()));

    for empty in [
        refused(grpc.gateway.append_event(wire::AppendEventRequest::default()).await),
        refused(grpc.gateway.set_agent(wire::SetAgentRequest::default()).await),
        refused(grpc.gateway.route_message(wire::RouteMessageRequest::default()).await),
    ] {
        assert_eq!(empty.0, Code::InvalidArgument, "{empty:?}");
    }

    let large = wire::GetRunRequest { run_id: "x".repeat(5 << 20) };
    assert_eq!(refused(grpc.gateway.get_run(large).await), (Code::ResourceExhausted, "body_too_large".into()));
}

/// Calls any path with any message.
async fn raw<M: prost::Message + std::fmt::Debug + Default + 'static>(
    place: &Place,
    path: &'static str,
    message: M,
) -> Status {
    let daemon = place.start().await;
    let mut client = Raw::new(channel(&daemon).await);
    client.ready().await.unwrap();
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {}", daemon.token()).parse().unwrap());
    let codec = tonic_prost::ProstCodec::<M, M>::default();
    client.unary(request, PathAndQuery::from_static(path), codec).await.unwrap_err()
}

#[tokio::test]
async fn what_the_library_refuses_carries_an_envelope_too() {
    let place = Place::new();
    let methods = [
        ("/palyra.gateway.v1.GatewayService/Explode", Code::Unimplemented, "unsupported_rpc"),
        ("/palyra.gateway.v1.VaultService/GetSecret", Code::Unimplemented, "unsupported_rpc"),
        ("/nothing", Code::Unimplemented, "unsupported_rpc"),
        // A label is no request for a run: its first field is a number and not a text.
        ("/palyra.gateway.v1.GatewayService/GetRun", Code::InvalidArgument, "proto_message_invalid"),
    ];
    for (path, code, name) in methods {
        let label = common::v1::Label { integrity: 3, confidentiality: 3, ..Default::default() };
        let status = raw(&place, path, label).await;
        assert_eq!((status.code(), error_from_status(&status).code.as_str()), (code, name), "{path}: {status:?}");
    }
}

#[tokio::test]
async fn a_timeout_that_is_none_is_refused() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let mut request = Request::new(wire::ListRunsRequest::default());
    request.metadata_mut().insert("grpc-timeout", "soon".parse().unwrap());
    // The client of the library reads the header too, and passes over what it does not understand.
    assert_eq!(refused(grpc.gateway.list_runs(request).await), (Code::InvalidArgument, "request_invalid".into()));
}

#[tokio::test]
async fn who_does_not_speak_http2_is_told() {
    let place = Place::new();
    let daemon = place.start().await;
    let address = grpc_address(&daemon);
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 505"), "{answer}");
}
