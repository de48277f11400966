//! The standard health service: whether the daemon serves at all, and each of its services. How well its parts work is
//! `GatewayService.GetHealth`.

use tokio_util::sync::CancellationToken;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::{ServingStatus, server};

/// The service's own name.
pub(super) const NAME: &str = "grpc.health.v1.Health";

/// Largest question: the name of a service. Strangers ask it.
const MAX_QUESTION_BYTES: usize = 1024;

/// The service; everything serves until the daemon closes.
pub(super) async fn service(names: &[&'static str], closing: CancellationToken) -> HealthServer<impl Health> {
    let (reporter, service) = server::health_reporter();
    let service = service.max_decoding_message_size(MAX_QUESTION_BYTES);
    for name in names {
        reporter.set_service_status(*name, ServingStatus::Serving).await;
    }
    let names: Vec<&'static str> = names.iter().copied().chain([""]).collect();
    // Ends with the daemon, which is all it waits for.
    tokio::spawn(async move {
        closing.cancelled().await;
        for name in names {
            reporter.set_service_status(name, ServingStatus::NotServing).await;
        }
    });
    service
}
