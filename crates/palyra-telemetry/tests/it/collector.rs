//! A collector: a real gRPC server with the services that OTLP defines. It keeps what it gets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

#[derive(Debug, Default)]
struct Received {
    spans: Vec<Span>,
    metrics: Vec<Metric>,
    resources: Vec<BTreeMap<String, String>>,
    tokens: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct Keep(Arc<Mutex<Received>>);

fn token<T>(request: &Request<T>) -> String {
    request.metadata().get("authorization").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tonic::async_trait]
impl TraceService for Keep {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut received = self.0.lock().unwrap();
        received.tokens.push(token(&request));
        for resource_spans in request.into_inner().resource_spans {
            received.resources.push(attributes(&resource_spans.resource.unwrap().attributes));
            received.spans.extend(resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Keep {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let mut received = self.0.lock().unwrap();
        let metrics = request.into_inner().resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
        received.metrics.extend(metrics.flat_map(|scope| scope.metrics));
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

pub(crate) fn attributes(given: &[opentelemetry_proto::tonic::common::v1::KeyValue]) -> BTreeMap<String, String> {
    given
        .iter()
        .map(|pair| {
            let value = match pair.value.clone().and_then(|value| value.value) {
                Some(Value::StringValue(text)) => text,
                Some(Value::IntValue(number)) => number.to_string(),
                other => format!("{other:?}"),
            };
            (pair.key.clone(), value)
        })
        .collect()
}

/// A collector on loopback, stopped when it is dropped.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    keep: Keep,
    serving: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Collector {
    pub(crate) async fn start() -> Self {
        Self::serve(Server::builder()).await
    }

    /// A collector that speaks TLS, and the certificate to trust.
    pub(crate) async fn start_with_tls() -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.pem();
        let identity = Identity::from_pem(&certificate, made.signing_key.serialize_pem());
        let server = Server::builder().tls_config(ServerTlsConfig::new().identity(identity)).unwrap();
        (Self::serve(server).await, certificate)
    }

    async fn serve(mut server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let keep = Keep::default();
        let server = server
            .add_service(TraceServiceServer::new(keep.clone()))
            .add_service(MetricsServiceServer::new(keep.clone()))
            .serve_with_incoming(TcpIncoming::from(listener));
        let serving = tokio::spawn(async move { server.await.unwrap() });
        Self { address, keep, serving }
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.keep.0.lock().unwrap().spans.clone()
    }

    pub(crate) fn span(&self, name: &str) -> Span {
        let spans = self.spans();
        let found = spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no `{name}` among {:?}", names(&spans))).clone()
    }

    pub(crate) fn metrics(&self) -> BTreeMap<String, Metric> {
        self.keep.0.lock().unwrap().metrics.iter().map(|metric| (metric.name.clone(), metric.clone())).collect()
    }

    pub(crate) fn resources(&self) -> Vec<BTreeMap<String, String>> {
        self.keep.0.lock().unwrap().resources.clone()
    }

    pub(crate) fn tokens(&self) -> Vec<String> {
        self.keep.0.lock().unwrap().tokens.clone()
    }

    /// Everything that arrived, as text to look for what must not be there.
    pub(crate) fn everything(&self) -> String {
        format!("{:?}", self.keep.0.lock().unwrap())
    }
}

fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

/// Waits for something that comes late, for as long as a loaded machine may need.
pub(crate) async fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
