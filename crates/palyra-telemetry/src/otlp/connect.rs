//! The connection to the collector: address, headers and trust. It is made when there is something to send, so a collector that is not there does not hold up
//! the start.

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use opentelemetry_otlp::tonic_types::metadata::MetadataMap;
use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithTonicConfig};

use super::OtlpOptions;
use crate::error::TelemetryError;

pub(super) fn span_exporter(options: &OtlpOptions) -> Result<SpanExporter, TelemetryError> {
    configured(SpanExporter::builder().with_tonic(), options)?.build().map_err(|error| invalid(options, &error))
}

pub(super) fn metric_exporter(options: &OtlpOptions) -> Result<MetricExporter, TelemetryError> {
    configured(MetricExporter::builder().with_tonic(), options)?.build().map_err(|error| invalid(options, &error))
}

fn invalid(options: &OtlpOptions, reason: &impl ToString) -> TelemetryError {
    // A reason may repeat the address, and the address may hold a password.
    let reason = reason.to_string().replace(options.endpoint.expose(), &options.endpoint.to_string());
    TelemetryError::CollectorInvalid { endpoint: options.endpoint.clone(), reason }
}

fn configured<B: WithExportConfig + WithTonicConfig>(builder: B, options: &OtlpOptions) -> Result<B, TelemetryError> {
    let address: Uri = options.endpoint.expose().parse().map_err(|error| invalid(options, &error))?;
    if address.host().is_none_or(str::is_empty) {
        return Err(invalid(options, &"it names no host"));
    }
    let builder = builder
        .with_endpoint(options.endpoint.expose())
        .with_timeout(options.timeout)
        .with_metadata(MetadataMap::from_headers(headers(options)?));
    match address.scheme_str() {
        Some("http") => Ok(builder),
        Some("https") => {
            let trust = ClientTlsConfig::new().with_enabled_roots();
            let more = options.ca_pem.iter().map(Certificate::from_pem);
            Ok(builder.with_tls_config(trust.ca_certificates(more)))
        }
        _ => Err(invalid(options, &"it is neither `http` nor `https`")),
    }
}

fn headers(options: &OtlpOptions) -> Result<HeaderMap, TelemetryError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &options.headers {
        let name: HeaderName =
            name.parse().map_err(|_| invalid(options, &format!("`{name}` is not a valid header name")))?;
        let mut value = HeaderValue::from_str(value.expose())
            .map_err(|_| invalid(options, &format!("the value of the header `{name}` contains invalid characters")))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use palyra_common::{RedactedUrl, SecretString, ToStableError as _};

    use super::*;

    #[tokio::test]
    async fn addresses_and_headers_that_make_no_sense_are_refused_and_tell_no_secret() {
        for address in ["", "collector:4317", "ftp://collector", "http://", "unix:/run/x", "http://user:hunter2@[::bad"]
        {
            let error = span_exporter(&OtlpOptions::to(RedactedUrl::new(address))).unwrap_err();
            let envelope = error.to_stable();
            assert_eq!(envelope.code, "collector_invalid", "{address}");
            assert!(!envelope.message.contains("hunter2"), "{}", envelope.message);
        }
        for (name, value) in [("bad name", "x"), ("", "x"), ("authorization", "hunter2\nx: y")] {
            let mut options = OtlpOptions::to(RedactedUrl::new("http://127.0.0.1:4317"));
            options.headers.push((name.to_owned(), SecretString::new(value.to_owned())));
            let error = metric_exporter(&options).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
