//! What decides and what scans, loaded while the rest of the daemon starts.
//!
//! Both fail closed: without policies or without a scanner there is no daemon.

use std::io;
use std::thread::JoinHandle;

use palyra_policy::{PolicySources, PolicyStore};
use palyra_safety::Scanner;

use crate::error::DaemonError;

/// The policies in force and the scanner.
pub(crate) struct Rules {
    pub(crate) policies: PolicyStore,
    pub(crate) scanner: Scanner,
}

/// Rules that are being loaded.
pub(crate) struct Loading(JoinHandle<Result<Rules, DaemonError>>);

impl Rules {
    /// Begins to load.
    pub(crate) fn load(sources: PolicySources) -> Result<Loading, DaemonError> {
        let work = move || Ok(Self { policies: PolicyStore::open(sources)?, scanner: Scanner::new(&[])? });
        let builder = std::thread::Builder::new().name("palyra-rules".to_owned());
        builder.spawn(work).map(Loading).map_err(DaemonError::system("start a thread"))
    }
}

impl Loading {
    /// The rules, once they are there.
    pub(crate) fn finished(self) -> Result<Rules, DaemonError> {
        let ended = |_| DaemonError::system("load the policies")(io::Error::other("the thread that loads them ended"));
        self.0.join().map_err(ended)?
    }
}
