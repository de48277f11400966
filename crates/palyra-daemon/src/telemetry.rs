//! Telemetry from configuration: what is counted, where lines go, which collector gets traces.

use std::path::Path;
use std::time::Duration;

use palyra_client::command::{COMMANDS, STREAM_COMMANDS};
use palyra_common::config::{Config, LogConfig, TelemetryConfig};
use palyra_common::{
    Clock, Environment, ErrorCategory, RedactedUrl, SecretRef, SecretString, StableErrorEnvelope, ToStableError as _,
};
use palyra_telemetry::{
    ContentCapture, LogFile, LogOptions, Metrics, MetricsOptions, OtlpOptions, Telemetry, TelemetryOptions,
};

use crate::error::DaemonError;

/// The log, below the state root.
const LOG_FILE: &str = "logs/palyrad.log";
const HEADERS_KEY: &str = "telemetry.otlp_headers";
const HEADERS_FORM: &str = "write `NAME: TEXT {REFERENCE}`, such as `authorization: Bearer {env:COLLECTOR_TOKEN}`";

/// The numbers of this daemon, all at zero.
pub(crate) fn metrics(clock: &dyn Clock) -> Metrics {
    let commands: Vec<&'static str> = COMMANDS.iter().chain(STREAM_COMMANDS).map(|spec| spec.name.as_str()).collect();
    Metrics::new(MetricsOptions { commands: &commands, started: clock.now() })
}

/// Begins to log and, where a collector is named, to export. Exporting needs the runtime around it.
pub(crate) fn start(
    config: &Config,
    environment: &Environment,
    state_root: &Path,
    metrics: &Metrics,
) -> Result<Telemetry, DaemonError> {
    let options = TelemetryOptions {
        log: log(&config.log, state_root),
        metrics: metrics.clone(),
        otlp: otlp(&config.telemetry, environment)?,
    };
    Ok(Telemetry::start(options)?)
}

fn log(config: &LogConfig, state_root: &Path) -> LogOptions {
    let file = LogFile { path: state_root.join(LOG_FILE), max_bytes: config.file_max_bytes, keep: config.file_keep };
    LogOptions { level: config.level, format: config.format, file: config.file.then_some(file) }
}

fn otlp(config: &TelemetryConfig, environment: &Environment) -> Result<Option<OtlpOptions>, DaemonError> {
    let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
    let ca_pem = match &config.otlp_ca_file {
        Some(path) => {
            let path = environment.absolute(path);
            Some(std::fs::read(&path).map_err(|error| unreadable(&path, &error))?)
        }
        None => None,
    };
    let headers = config.otlp_headers.iter().enumerate().map(|(at, line)| header(at + 1, line, environment));
    Ok(Some(OtlpOptions {
        headers: headers.collect::<Result<_, _>>()?,
        ca_pem,
        sample_percent: config.sample_percent,
        content: if config.capture_content { ContentCapture::On } else { ContentCapture::Off },
        timeout: Duration::from_secs(config.otlp_timeout_seconds),
        metric_interval: Duration::from_secs(config.metric_interval_seconds),
        ..OtlpOptions::to(RedactedUrl::new(endpoint.as_str()))
    }))
}

fn unreadable(path: &Path, error: &std::io::Error) -> DaemonError {
    let message = format!("`{}` cannot be read: {error}", path.display());
    let reason = StableErrorEnvelope::new("config_invalid_value", ErrorCategory::Validation, message)
        .hint("use a PEM file with at least one certificate");
    DaemonError::config("telemetry.otlp_ca_file", &reason)
}

/// One header with its secret put in. No message repeats the line: it may be a pasted secret.
fn header(number: usize, line: &str, environment: &Environment) -> Result<(String, SecretString), DaemonError> {
    let wrong = |reason: &str| {
        let message = format!("entry {number}: {reason}");
        let error =
            StableErrorEnvelope::new("config_invalid_value", ErrorCategory::Validation, message).hint(HEADERS_FORM);
        DaemonError::config(HEADERS_KEY, &error)
    };
    let (name, value) = line.split_once(':').ok_or_else(|| wrong("it names no header"))?;
    let value = value.trim();
    let resolved = match value.split_once('{') {
        None => value.to_owned(),
        Some((before, inner)) => {
            let (reference, after) = inner.split_once('}').ok_or_else(|| wrong("its `{` is not closed"))?;
            let reference: SecretRef =
                reference.parse().map_err(|_| wrong("the text in braces is not a secret reference"))?;
            let secret = reference.resolve(environment).map_err(|error| wrong(&error.to_stable().message))?;
            format!("{before}{}{after}", secret.expose())
        }
    };
    Ok((name.trim().to_owned(), SecretString::new(resolved)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::from_pairs([("COLLECTOR_TOKEN", "s3cret")])
    }

    #[test]
    fn headers_get_their_secrets_and_messages_do_not() {
        let (name, value) = header(1, "authorization: Bearer {env:COLLECTOR_TOKEN}", &environment()).unwrap();
        assert_eq!((name.as_str(), value.expose().as_str()), ("authorization", "Bearer s3cret"));
        let (name, value) = header(1, " x-tenant : blue ", &environment()).unwrap();
        assert_eq!((name.as_str(), value.expose().as_str()), ("x-tenant", "blue"));
        for line in
            ["hunter2", "x: {hunter2}", "x: {env:COLLECTOR_TOKEN", "x: {env:MISSING} hunter2", "x: {file:/hunter2/no}"]
        {
            let error = header(3, line, &environment()).unwrap_err().to_stable();
            assert_eq!(error.code, "config_invalid_value", "{line}");
            assert!(error.message.contains("entry 3"), "{}", error.message);
            assert!(line.contains("file:") || !format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn nothing_is_exported_unless_a_collector_is_named() {
        let config = Config::default();
        assert!(otlp(&config.telemetry, &environment()).unwrap().is_none());
        let named = TelemetryConfig { otlp_endpoint: Some("http://127.0.0.1:4317".to_owned()), ..config.telemetry };
        let options = otlp(&named, &environment()).unwrap().unwrap();
        assert_eq!(options.content, ContentCapture::Off);
        let missing = TelemetryConfig { otlp_ca_file: Some("/no/such/file".into()), ..named };
        assert!(otlp(&missing, &environment()).is_err());
    }
}
