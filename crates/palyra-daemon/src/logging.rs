//! The daemon's log: lines on standard error, for people or as JSON. Whoever starts the daemon decides where they go.

use std::io::{self, IsTerminal as _};

use palyra_common::config::{LogConfig, LogFormat, LogLevel};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

/// Begins to log. A process that already has a log keeps it.
pub(crate) fn start(config: &LogConfig) {
    let own = match config.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // Libraries speak at `debug` about every byte they move; only `trace` asks for that.
    let others = if config.level == LogLevel::Trace { LevelFilter::TRACE } else { own.min(LevelFilter::WARN) };
    let targets =
        ["palyra_agent", "palyra_daemon", "palyra_journal", "palyra_mcp", "palyra_models", "palyra_tools", "palyrad"];
    let filter = Targets::new().with_targets(targets.map(|target| (target, own))).with_default(others);
    let lines = match config.format {
        LogFormat::Text => fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => fmt::layer().json().with_writer(io::stderr).boxed(),
    };
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}
