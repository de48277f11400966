//! A workspace in a temporary directory and one line per call.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use palyra_common::{FixedClock, RunId, Timestamp, ToStableError};
use palyra_tools::{
    Artifacts, BeginReport, EffectId, EffectStore, Invocation, MemoryArtifacts, Registry, Roots, ToolError, ToolLimits,
    ToolOutput, ToolProgress, Workspace,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// No directory is refused.
pub(crate) const ANYWHERE: Roots = Roots::Anywhere { except: Vec::new(), granted: Vec::new() };

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) artifacts: Arc<MemoryArtifacts>,
    pub(crate) effects: Arc<EffectStore>,
    pub(crate) registry: Registry,
    pub(crate) cancel: CancellationToken,
    pub(crate) limits: ToolLimits,
    calls: AtomicUsize,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("w")).unwrap();
        let workspace = Arc::new(Workspace::open(dir.path().join("w"), &ANYWHERE, &[]).unwrap());
        let effects = Arc::new(EffectStore::open(dir.path().join("state/effects")).unwrap());
        Self {
            dir,
            workspace,
            artifacts: Arc::default(),
            effects,
            registry: Registry::builtin().unwrap(),
            cancel: CancellationToken::new(),
            limits: ToolLimits::default(),
            calls: AtomicUsize::new(0),
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    pub(crate) fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root().join(name)).ok()
    }

    pub(crate) fn invocation(&self, effect: &str, arguments: Value) -> Invocation {
        Invocation {
            run_id: RunId::from_u128(1),
            call_id: "call".to_owned(),
            effect_id: EffectId::new(effect),
            arguments,
            workspace: Arc::clone(&self.workspace),
            artifacts: Arc::clone(&self.artifacts) as Arc<dyn Artifacts>,
            clock: Arc::new(FixedClock::at(Timestamp(1_794_700_000_123))),
            cancel: self.cancel.clone(),
            time_limit: std::time::Duration::from_secs(60),
            limits: self.limits.clone(),
            effects: Arc::clone(&self.effects),
            progress: ToolProgress::default(),
            begin: BeginReport::default(),
            decided_as: palyra_tools::DecidedAs::default(),
        }
    }

    /// A call with its own effect id, checked like the engine does.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        self.call_as(&format!("effect-{number}"), tool, arguments)
    }

    pub(crate) fn call_as(&self, effect: &str, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let name = format!("palyra.{tool}");
        self.registry.validate(&name, &arguments)?;
        let tool = Arc::clone(self.registry.get(&name)?);
        let invocation = self.invocation(effect, arguments);
        runtime().block_on(async move { tool.call(invocation).await })
    }

    /// The code of the refusal; every refusal is one line.
    pub(crate) fn refusal(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments.clone()) {
            Ok(output) => panic!("{tool} {arguments} was not refused: {}", output.content),
            Err(error) => {
                let stable = error.to_stable();
                assert!(!stable.message.contains('\n'), "{}", stable.message);
                stable.code
            }
        }
    }

    pub(crate) fn content(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap().content
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Every file below a directory with its content, and every link with its target.
pub(crate) fn snapshot(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(here) = left.pop() {
        for entry in fs::read_dir(&here).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                found.push((path.clone(), b"directory".to_vec()));
                left.push(path);
            } else if kind.is_symlink() {
                found.push((path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()));
            } else {
                found.push((path.clone(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}
