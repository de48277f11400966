//! How much is logged, and changing that while the daemon runs.

use palyra_common::config::LogLevel;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::{Registry, reload};

use crate::work::{CONTENT_TARGET, OWN_TARGET};

/// Changes the level of a running log.
#[derive(Debug, Clone)]
pub(crate) struct LevelHandle(reload::Handle<Targets, Registry>);

impl LevelHandle {
    /// Does nothing if the log is gone: then there is nothing to change.
    pub(crate) fn set(&self, level: LogLevel) {
        let _ = self.0.reload(targets(level));
    }
}

/// The filter for a level, and the handle that changes it.
pub(crate) fn level_filter(level: LogLevel) -> (reload::Layer<Targets, Registry>, LevelHandle) {
    let (filter, handle) = reload::Layer::new(targets(level));
    (filter, LevelHandle(handle))
}

fn targets(level: LogLevel) -> Targets {
    let own = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    // Libraries speak at `debug` about every byte they move; only `trace` asks for that.
    let others = if level == LogLevel::Trace { LevelFilter::TRACE } else { own.min(LevelFilter::WARN) };
    // What people and models wrote stays out of the log at every level.
    Targets::new().with_target(OWN_TARGET, own).with_target(CONTENT_TARGET, LevelFilter::OFF).with_default(others)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn content_is_never_logged_and_libraries_are_quiet() {
        for level in LogLevel::ALL {
            let targets = targets(*level);
            assert!(!targets.would_enable(CONTENT_TARGET, &Level::ERROR), "{level}");
            assert!(targets.would_enable("palyra_agent::engine", &Level::ERROR), "{level}");
            assert_eq!(targets.would_enable("h2::codec", &Level::DEBUG), *level == LogLevel::Trace, "{level}");
        }
        let targets = targets(LogLevel::Debug);
        assert!(targets.would_enable("palyrad", &Level::DEBUG));
        assert!(!targets.would_enable("palyrad", &Level::TRACE));
    }
}
