//! The directory of outside servers: which there are, what was agreed to, how they are labelled.
//!
//! The command line edits the files; a daemon holds a registry open and asks [`McpRegistry::reload_if_changed`] from time to time. Everything
//! here that touches files blocks; the files are small.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use palyra_common::{Environment, suggest};

use crate::tool_set::ServerFiles;
use crate::{
    ClassificationFile, McpConfig, McpError, McpOptions, McpServer, Pins, ServerConfig, ServerName, ToolDescription,
    config, files,
};

/// Whether a reload found anything new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// Everything is as it was.
    Unchanged,
    /// Servers, pins or classifications may be different now.
    Changed,
}

/// All outside servers of one directory.
#[derive(Debug)]
pub struct McpRegistry {
    directory: PathBuf,
    environment: Environment,
    options: McpOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stamp: Stamp,
    servers: BTreeMap<ServerName, Arc<McpServer>>,
}

/// Names, times and sizes of the files: different whenever one of them was replaced.
type Stamp = Vec<(String, SystemTime, u64)>;

impl McpRegistry {
    /// Opens the directory, which need not exist. A list of servers that cannot be understood is an error.
    pub fn open(
        directory: impl Into<PathBuf>,
        environment: Environment,
        options: McpOptions,
    ) -> Result<Self, McpError> {
        let state = Mutex::new(State { stamp: Stamp::new(), servers: BTreeMap::new() });
        let registry = Self { directory: directory.into(), environment, options, state };
        let stamp = registry.stamp()?;
        registry.load(stamp)?;
        Ok(registry)
    }

    /// The directory below the state root.
    #[must_use]
    pub fn directory_in(state_root: &Path) -> PathBuf {
        state_root.join("mcp")
    }

    /// Where the files are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All servers, by name.
    #[must_use]
    pub fn servers(&self) -> Vec<Arc<McpServer>> {
        self.locked().servers.values().cloned().collect()
    }

    /// The server of this name.
    pub fn server(&self, name: &ServerName) -> Result<Arc<McpServer>, McpError> {
        let locked = self.locked();
        locked.servers.get(name).cloned().ok_or_else(|| {
            let suggestion = suggest(name.as_str(), locked.servers.keys().map(ServerName::as_str));
            McpError::ServerNotFound { name: name.to_string(), suggestion }
        })
    }

    /// Looks at the files again if they were changed. Servers whose entry stayed the same keep their connection; an error leaves
    /// everything as it was.
    pub fn reload_if_changed(&self) -> Result<Reload, McpError> {
        let stamp = self.stamp()?;
        if stamp == self.locked().stamp {
            return Ok(Reload::Unchanged);
        }
        self.load(stamp)?;
        Ok(Reload::Changed)
    }

    /// Adds a server. Its tools are offered once they are pinned.
    pub fn add(&self, name: &ServerName, server: &ServerConfig) -> Result<Arc<McpServer>, McpError> {
        // Files that an earlier server of this name left behind must not speak for the new one.
        if McpConfig::load(&self.servers_file())?.servers.contains_key(name) {
            return Err(McpError::ServerExists { name: name.to_string() });
        }
        self.forget(name)?;
        config::add(&self.servers_file(), name, server)?;
        self.reload_if_changed()?;
        self.server(name)
    }

    /// Removes a server with everything that was agreed to about it.
    pub fn remove(&self, name: &ServerName) -> Result<(), McpError> {
        config::remove(&self.servers_file(), name)?;
        self.forget(name)?;
        self.reload_if_changed().map(drop)
    }

    /// What was agreed to.
    pub fn pins(&self, name: &ServerName) -> Result<Pins, McpError> {
        Pins::load(&self.files(name).pins)
    }

    /// Agrees to exactly these tools as they are.
    pub fn pin(&self, name: &ServerName, tools: &[ToolDescription]) -> Result<(), McpError> {
        let server = self.server(name)?;
        Pins::of(tools).save(&self.files(name).pins)?;
        server.files_changed();
        Ok(())
    }

    /// The classification file of a server as it is.
    pub fn classification(&self, name: &ServerName) -> Result<ClassificationFile, McpError> {
        ClassificationFile::load(&self.files(name).classification)
    }

    /// Where the classification file of a server is, or would be.
    #[must_use]
    pub fn classification_path(&self, name: &ServerName) -> PathBuf {
        self.files(name).classification
    }

    /// Writes a classification file for these tools: entries of `kept` that still fit as they are, proposals for the others. It is not
    /// reviewed, so from now on the cautious classification holds again.
    pub fn propose_classification(
        &self,
        name: &ServerName,
        tools: &[ToolDescription],
        kept: &ClassificationFile,
    ) -> Result<PathBuf, McpError> {
        let server = self.server(name)?;
        let path = self.files(name).classification;
        files::replace(&path, &ClassificationFile::draft(name, tools, kept)?)?;
        server.files_changed();
        Ok(path)
    }

    /// Marks a server's classification file as reviewed.
    pub fn accept_classification(&self, name: &ServerName) -> Result<PathBuf, McpError> {
        let server = self.server(name)?;
        let path = self.files(name).classification;
        let missing = || McpError::ClassificationInvalid { path: path.clone(), reason: "no such file".to_owned() };
        let text = files::read(&path)?.ok_or_else(missing)?;
        files::replace(&path, &ClassificationFile::accept(&text, &path)?)?;
        server.files_changed();
        Ok(path)
    }

    /// Ends all connections in good order.
    pub async fn shutdown(&self) {
        let servers = self.servers();
        futures::future::join_all(servers.iter().map(|server| server.shutdown())).await;
    }

    fn forget(&self, name: &ServerName) -> Result<(), McpError> {
        let files = self.files(name);
        files::remove(&files.pins)?;
        files::remove(&files.classification)
    }

    fn servers_file(&self) -> PathBuf {
        self.directory.join("servers.toml")
    }

    fn files(&self, name: &ServerName) -> ServerFiles {
        ServerFiles::of(&self.directory, name)
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, stamp: Stamp) -> Result<(), McpError> {
        let config = McpConfig::load(&self.servers_file())?;
        let mut state = self.locked();
        let mut before = std::mem::take(&mut state.servers);
        for (name, config) in config.servers {
            let server = match before.remove(&name) {
                Some(same) if *same.config() == config => {
                    same.files_changed();
                    same
                }
                other => {
                    other.iter().for_each(|other| other.retire());
                    let files = self.files(&name);
                    let (environment, options) = (self.environment.clone(), self.options.clone());
                    Arc::new(McpServer::new(name.clone(), config, environment, options, files))
                }
            };
            state.servers.insert(name, server);
        }
        before.values().for_each(|gone| gone.retire());
        state.stamp = stamp;
        Ok(())
    }

    fn stamp(&self) -> Result<Stamp, McpError> {
        let failed = |source| McpError::File { doing: "read", path: self.directory.clone(), source };
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Stamp::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut stamp = Stamp::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours = name == "servers.toml" || name.ends_with(".pins.json") || name.ends_with(".classification.toml");
            // A file that vanishes while we look is a change that the next look finds.
            if let Some(metadata) = entry.metadata().ok().filter(|_| ours && !name.starts_with('.')) {
                stamp.push((name, metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len()));
            }
        }
        stamp.sort();
        Ok(stamp)
    }
}
