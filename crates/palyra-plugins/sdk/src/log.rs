//! Lines for the plugin's author and the operator. They go to the log of the daemon, never to the model.

use crate::bindings::host::palyra::host::log as wit;

/// Of use while the plugin is being written.
pub fn debug(message: &str) {
    wit::write(wit::Level::Debug, message);
}

/// Worth knowing.
pub fn info(message: &str) {
    wit::write(wit::Level::Info, message);
}

/// Something is odd.
pub fn warn(message: &str) {
    wit::write(wit::Level::Warn, message);
}

/// Something failed.
pub fn error(message: &str) {
    wit::write(wit::Level::Error, message);
}
