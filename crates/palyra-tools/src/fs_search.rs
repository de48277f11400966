//! `palyra.fs.search`: lines that match, over the whole workspace, with ripgrep's own search engine.
//!
//! `grep-searcher` and `grep-regex` do the searching; files come from the handle-based walk, one searcher per thread. Results are
//! sorted by path, so the same question about the same files has the same answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use palyra_common::{Confidentiality, Integrity, Label};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::cancel::{self, Cancel, CancelRead};
use crate::file_labels::Examined;
use crate::input::{parse, text};
use crate::search_hits::{FileHits, Hits, Report};
use crate::walk::{Flow, Found, Include, Walk};
use crate::{
    CallResource, EffectScope, Invocation, Offering, SinkKind, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput,
    Workspace, WorkspacePath,
};

/// Matches shown when the call does not say how many.
const DEFAULT_LIMIT: u64 = 200;
/// Most matches a call may ask for.
const MAX_LIMIT: u64 = 5_000;
/// Most lines of context around a match.
const MAX_CONTEXT: u64 = 20;
/// Bytes of results kept before the search stops: a pattern that matches everything must not fill memory.
const MAX_KEPT: usize = 8 << 20;
/// Largest compiled pattern, against patterns that are small to write and huge to run.
const MAX_REGEX: usize = 10 << 20;

/// Searches text files for a regular expression and returns matches as `path:line:text`, without hidden and git-ignored files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FsSearchInput {
    /// Regular expression (Rust syntax), matched line by line.
    pattern: String,
    /// Take the pattern as plain text.
    #[serde(default)]
    literal: Option<bool>,
    /// Ignore case.
    #[serde(default)]
    ignore_case: Option<bool>,
    /// File or directory; the workspace by default.
    #[serde(default)]
    path: Option<String>,
    /// Only these files, such as `*.rs`.
    #[serde(default)]
    glob: Option<String>,
    /// Lines to show around each match, at most 20.
    #[serde(default)]
    context: Option<u64>,
    /// Most matches to show, at most 5000; 200 by default.
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
pub(crate) struct FsSearch(ToolDeclaration);

impl FsSearch {
    pub(crate) fn new() -> Self {
        let name = ToolName::builtin("palyra.fs.search");
        Self(
            ToolDeclaration::of::<FsSearchInput>(name, "Search files", "search for `{pattern}`")
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
impl Tool for FsSearch {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, arguments: &Value, workspace: &Workspace) -> Result<CallResource, ToolError> {
        workspace.named(text(arguments, "path").unwrap_or(".")).map(CallResource::Directory)
    }

    fn check(&self, arguments: &Value, workspace: &Workspace) -> Result<(), ToolError> {
        let input: FsSearchInput = parse(&self.0.name, arguments.clone())?;
        input.path.as_deref().map_or(Ok(()), |path| workspace.path(path).map(drop))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let input: FsSearchInput = parse(&self.0.name, invocation.arguments)?;
        let label = self.0.output.clone();
        let Invocation { workspace, artifacts, limits, cancel: token, .. } = invocation;
        cancel::read(&token, move |cancel| {
            search(&workspace, &input, cancel)?.output(label, &limits, artifacts.as_ref())
        })
        .await
    }
}

fn search(workspace: &Workspace, input: &FsSearchInput, cancel: &Cancel) -> Result<Report, ToolError> {
    let start = match &input.path {
        Some(path) => workspace.resolve(&workspace.path(path)?)?,
        None => WorkspacePath::root(),
    };
    let matcher = matcher(input)?;
    let glob = input.glob.as_deref().map(glob).transpose()?;
    let context = usize::try_from(input.context.unwrap_or(0).min(MAX_CONTEXT)).unwrap_or(0);
    let limit = usize::try_from(input.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)).unwrap_or(1);
    let walk = Walk {
        workspace,
        start: start.clone(),
        depth: None,
        hidden: Include::from(input.hidden),
        ignored: Include::from(input.ignored),
        everything: None,
        cancel,
    };
    let files = Mutex::new(Vec::new());
    let lock = || files.lock().unwrap_or_else(PoisonError::into_inner);
    let (kept, searched, binary, unreadable) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let end = walk.run(|| {
        let matcher = matcher.clone();
        let mut searcher = searcher(context);
        let glob = glob.as_ref();
        let (lock, kept, searched, binary, unreadable) = (&lock, &kept, &searched, &binary, &unreadable);
        move |found: &Found| {
            if !found.kind.is_file() || glob.is_some_and(|glob| !glob.fits(&found.path)) {
                return Flow::Continue;
            }
            match search_file(workspace, found, &matcher, &mut searcher, limit, cancel) {
                Searched::Hits(hits) => {
                    searched.fetch_add(1, Ordering::Relaxed);
                    if hits.count == 0 {
                        return Flow::Continue;
                    }
                    let total = kept.fetch_add(hits.bytes, Ordering::Relaxed) + hits.bytes;
                    lock().push(hits);
                    if total > MAX_KEPT { Flow::Stop } else { Flow::Continue }
                }
                Searched::Binary => {
                    binary.fetch_add(1, Ordering::Relaxed);
                    Flow::Continue
                }
                Searched::Unreadable => {
                    unreadable.fetch_add(1, Ordering::Relaxed);
                    Flow::Continue
                }
            }
        }
    })?;
    let files: Vec<FileHits> = std::mem::take(&mut *lock());
    Ok(Report {
        start,
        start_excluded: end.start_excluded,
        unreadable: end.unreadable.count + unreadable.into_inner(),
        searched: searched.into_inner(),
        binary: binary.into_inner(),
        stopped: kept.into_inner() > MAX_KEPT,
        files,
        limit,
        context,
    })
}

enum Searched {
    Hits(FileHits),
    Binary,
    Unreadable,
}

fn search_file(
    workspace: &Workspace,
    found: &Found,
    matcher: &RegexMatcher,
    searcher: &mut Searcher,
    limit: usize,
    cancel: &Cancel,
) -> Searched {
    let Ok(mut open) = workspace.open_here(&found.directory, &found.name, &found.path) else {
        return Searched::Unreadable;
    };
    let mut hits = Hits::new(limit);
    match searcher.search_reader(matcher, CancelRead(&open.file, cancel.clone()), &mut hits) {
        Ok(()) if hits.binary => return Searched::Binary,
        Ok(()) => {}
        Err(_) => return Searched::Unreadable,
    }
    let mut file = hits.into_file(found.path.clone(), nothing_shown(&found.path));
    // A file without hits shows nothing, so most files need not be read again.
    if file.count > 0 {
        match workspace.examine(&found.path, &mut open, cancel) {
            // The name is shown with what was found.
            Ok(Examined { label, .. }) => {
                let name = workspace.label_of_written_name(&found.path);
                file.label = name.map_or(label.clone(), |name| label.join(&name));
            }
            Err(_) => return Searched::Unreadable,
        }
    }
    Searched::Hits(file)
}

/// The label of what a file without hits shows.
fn nothing_shown(path: &WorkspacePath) -> Label {
    Label::new(Integrity::ToolTrusted, Confidentiality::Private).from_source(format!("file:{path}"))
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(64 << 20))
        .build()
}

fn matcher(input: &FsSearchInput) -> Result<RegexMatcher, ToolError> {
    let invalid = |reason: String| {
        let reason = reason.lines().last().unwrap_or_default().trim().to_owned();
        ToolError::InvalidPattern { pattern: input.pattern.clone(), reason }
    };
    if input.pattern.is_empty() {
        return Err(invalid("it is empty".to_owned()));
    }
    RegexMatcherBuilder::new()
        .fixed_strings(input.literal == Some(true))
        .case_insensitive(input.ignore_case == Some(true))
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_REGEX)
        .build(&input.pattern)
        .map_err(|error| invalid(error.to_string()))
}

/// A glob for names in any directory, or for paths if it has a slash.
struct Glob {
    matcher: GlobMatcher,
    whole_path: bool,
}

impl Glob {
    fn fits(&self, path: &WorkspacePath) -> bool {
        if self.whole_path {
            return self.matcher.is_match(path.as_path());
        }
        path.file_name().is_some_and(|name| self.matcher.is_match(name))
    }
}

fn glob(text: &str) -> Result<Glob, ToolError> {
    let pattern = text.trim_start_matches("./").trim_start_matches('/');
    let built = GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| ToolError::InvalidPattern { pattern: text.to_owned(), reason: error.kind().to_string() })?;
    Ok(Glob { matcher: built.compile_matcher(), whole_path: text.contains('/') })
}
