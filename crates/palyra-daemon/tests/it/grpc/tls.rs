//! gRPC over TLS: callers are known by a token or by a device certificate.

use palyra_identity::ClientCredentials;
use palyra_proto::auth::v1 as auth;
use palyra_proto::auth::v1::tokens_service_client::TokensServiceClient;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

use super::support::{grpc_address, refused};
use crate::quic_support::credentials;
use crate::support::{Daemon, Place};

/// A certificate shown or not.
enum Shows<'a> {
    Nothing,
    Certificate(&'a ClientCredentials),
}

async fn channel(daemon: &Daemon, authority: &str, shows: Shows<'_>) -> Result<Channel, tonic::transport::Error> {
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority)).domain_name("localhost");
    if let Shows::Certificate(local) = shows {
        tls = tls.identity(Identity::from_pem(&local.certificate_pem, local.key_pem.expose()));
    }
    let uri = format!("https://{}", grpc_address(daemon));
    Channel::from_shared(uri).unwrap().tls_config(tls)?.connect().await
}

#[tokio::test]
async fn a_device_certificate_says_who_calls() {
    let place = Place::new().with("PALYRA_GRPC_TLS", "true");
    let daemon = place.start().await;
    let health = daemon.client.health().await.unwrap();
    let grpc = health.components.iter().find(|component| component.component == "grpc").unwrap();
    assert!(grpc.summary.starts_with("https://127.0.0.1:"), "{grpc:?}");

    let local = credentials(&daemon).await;
    let known = channel(&daemon, &local.authority_pem, Shows::Certificate(&local)).await.unwrap();
    let who = TokensServiceClient::new(known).who_am_i(auth::WhoAmIRequest {}).await.unwrap().into_inner();
    assert_eq!(who.via, format!("grpc, device {}", local.identity.device));
    assert_eq!(who.principal, local.identity.principal.to_string());

    let stranger = channel(&daemon, &local.authority_pem, Shows::Nothing).await.unwrap();
    let answer = TokensServiceClient::new(stranger).who_am_i(auth::WhoAmIRequest {}).await;
    assert_eq!(refused(answer), (Code::Unauthenticated, "token_refused".into()));
    // Whoever speaks no TLS is not heard.
    let plain = Channel::from_shared(format!("http://{}", grpc_address(&daemon))).unwrap().connect_lazy();
    assert!(TokensServiceClient::new(plain).who_am_i(auth::WhoAmIRequest {}).await.is_err());
}
