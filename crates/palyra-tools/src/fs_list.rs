//! `palyra.fs.list`: what is in a directory, as a sorted list of paths.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use cap_std::fs::FileType;
use palyra_common::{Confidentiality, Integrity};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cancel::{self, Cancel};
use crate::input::{bounded, parse, text};
use crate::walk::{Flow, Found, Include, Walk};
use crate::workspace::kind_name;
use crate::workspace_path::escape;
use crate::{
    Artifacts, CallResource, EffectScope, Invocation, Offering, SinkKind, Tool, ToolDeclaration, ToolError, ToolLimits,
    ToolName, ToolOutput, Workspace, WorkspacePath,
};

/// Levels shown when the call does not say how many.
const DEFAULT_DEPTH: u64 = 2;
/// Entries shown when the call does not say how many.
const DEFAULT_LIMIT: u64 = 500;
/// Most entries looked at: beyond this a listing helps nobody and only fills memory.
const MAX_SEEN: usize = 200_000;

/// Lists a directory as a tree with file sizes, without hidden and git-ignored files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FsListInput {
    /// Directory; the workspace by default.
    #[serde(default)]
    path: Option<String>,
    /// Levels to go down; 2 by default.
    #[serde(default)]
    #[schemars(range(min = 1))]
    depth: Option<u64>,
    /// Most entries to show; 500 by default.
    #[serde(default)]
    #[schemars(extend("x-rare" = true))]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Include hidden files.
    #[serde(default)]
    hidden: Option<bool>,
    /// Include ignored files.
    #[serde(default)]
    ignored: Option<bool>,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct FsList(ToolDeclaration);

impl FsList {
    pub(crate) fn new() -> Self {
        let name = ToolName::builtin("palyra.fs.list");
        Self(
            ToolDeclaration::of::<FsListInput>(name, "List files", "list `{path}`")
                .reads(EffectScope::WorkspaceRead)
                .sink("path", SinkKind::Path)
                .labelling_results()
                .showing_inline()
                .output(Integrity::ToolTrusted, Confidentiality::Private)
                .offered(Offering::Always),
        )
    }
}

#[async_trait]
impl Tool for FsList {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, arguments: &Value, workspace: &Workspace) -> Result<CallResource, ToolError> {
        workspace.named(text(arguments, "path").unwrap_or(".")).map(CallResource::Directory)
    }

    fn summarise(&self, arguments: &Value) -> String {
        match text(arguments, "path") {
            Some(_) => self.0.summarise(arguments),
            None => "list the workspace".to_owned(),
        }
    }

    fn check(&self, arguments: &Value, workspace: &Workspace) -> Result<(), ToolError> {
        let input: FsListInput = parse(&self.0.name, arguments.clone())?;
        input.path.as_deref().map_or(Ok(()), |path| workspace.path(path).map(drop))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let input: FsListInput = parse(&self.0.name, invocation.arguments)?;
        let label = self.0.output.clone();
        let Invocation { workspace, artifacts, limits, cancel: token, .. } = invocation;
        cancel::read(&token, move |cancel| {
            let listing = list(&workspace, &input, cancel)?;
            let label = label.from_source(format!("directory:{}", listing.start));
            // Names are bytes that somebody wrote, too.
            let names = workspace.label_of_names(listing.entries.iter().map(|entry| &entry.path));
            let label = names.map_or(label.clone(), |names| label.join(&names));
            listing.output(label, &limits, artifacts.as_ref())
        })
        .await
    }
}

struct Entry {
    path: WorkspacePath,
    kind: FileType,
    bytes: u64,
    target: Option<String>,
}

struct Listing {
    start: WorkspacePath,
    entries: Vec<Entry>,
    /// Entries beyond the limit.
    rest: usize,
    /// Whether there are even more, uncounted.
    unfinished: bool,
    unreadable: usize,
    excluded: bool,
}

fn list(workspace: &Workspace, input: &FsListInput, cancel: &Cancel) -> Result<Listing, ToolError> {
    let start = match &input.path {
        Some(path) => workspace.resolve(&workspace.path(path)?)?,
        None => WorkspacePath::root(),
    };
    if !workspace.metadata(&start)?.is_dir() {
        return Err(ToolError::PathNotDirectory { path: start.to_string() });
    }
    let number = |value: Option<u64>, default| usize::try_from(value.unwrap_or(default)).unwrap_or(usize::MAX).max(1);
    let walk = Walk {
        workspace,
        start: start.clone(),
        depth: Some(number(input.depth, DEFAULT_DEPTH)),
        hidden: Include::from(input.hidden),
        ignored: Include::from(input.ignored),
        everything: None,
        cancel,
    };
    let entries = Mutex::new(Vec::new());
    let lock = || entries.lock().unwrap_or_else(PoisonError::into_inner);
    let end = walk.run(|| {
        |found: &Found| {
            let Some(entry) = look(found) else { return Flow::Continue };
            let mut entries = lock();
            entries.push(entry);
            if entries.len() < MAX_SEEN { Flow::Continue } else { Flow::Stop }
        }
    })?;
    let mut entries: Vec<Entry> = std::mem::take(&mut *lock());
    entries.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    let unfinished = entries.len() >= MAX_SEEN;
    let rest = entries.len().saturating_sub(number(input.limit, DEFAULT_LIMIT));
    entries.truncate(entries.len() - rest);
    Ok(Listing { start, entries, rest, unfinished, unreadable: end.unreadable.count, excluded: end.start_excluded })
}

/// Size and link target, asked of the open directory; `None` if the entry has vanished.
fn look(found: &Found) -> Option<Entry> {
    let bytes = if found.kind.is_file() { found.directory.symlink_metadata(&found.name).ok()?.len() } else { 0 };
    let target = if found.kind.is_symlink() {
        let target = found.directory.read_link_contents(&found.name).ok()?;
        Some(escape(target.as_os_str()))
    } else {
        None
    };
    Some(Entry { path: found.path.clone(), kind: found.kind, bytes, target })
}

impl Listing {
    fn output(
        self,
        label: palyra_common::Label,
        limits: &ToolLimits,
        artifacts: &dyn Artifacts,
    ) -> Result<ToolOutput, ToolError> {
        let mut lines = String::new();
        for entry in &self.entries {
            // Writing to a string cannot fail.
            let _ = match (&entry.target, entry.kind.is_dir(), entry.kind.is_file()) {
                (Some(target), ..) => writeln!(lines, "{} -> {target}", entry.path),
                (None, true, _) => writeln!(lines, "{}/", entry.path),
                (None, _, true) => writeln!(lines, "{}  {} bytes", entry.path, entry.bytes),
                _ => writeln!(lines, "{}  ({})", entry.path, kind_name(entry.kind)),
            };
        }
        if self.excluded {
            let _ = writeln!(lines, "[ignore files exclude `{}`; list it with ignored true]", self.start);
        } else if self.entries.is_empty() {
            let _ = writeln!(lines, "[`{}` has nothing to show]", self.start);
        }
        if self.rest > 0 {
            let at_least = if self.unfinished { "at least " } else { "" };
            let _ =
                writeln!(lines, "[{at_least}{} more entries not shown; list a subdirectory or raise limit]", self.rest);
        }
        if self.unreadable > 0 {
            let _ = writeln!(lines, "[{} directories could not be read]", self.unreadable);
        }
        let data = json!({
            "path": self.start.to_string(),
            "shown": self.entries.len(),
            "more": self.rest,
            "unreadable": self.unreadable,
        });
        let output = bounded(lines, label, limits, artifacts)?.with_data(data);
        Ok(ToolOutput { truncated: output.truncated || self.rest > 0, ..output })
    }
}
