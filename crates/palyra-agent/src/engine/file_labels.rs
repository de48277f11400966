//! Labels of what runs wrote: on the journal, and in memory for every file that is read.
//!
//! The record of a finished call carries the labels of its files; the projection keeps them, and [`FileLabelBook`] is what the projection says. It is read at the start, grows
//! with each commit that labels something, and is read again after an endorsement.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use palyra_common::{Digest, Integrity, Label};
use palyra_flow::{Rewrite, Written, WrittenFile, is_worse_than_a_file};
use palyra_journal::NewRecord;
use palyra_tools::{EffectScope, FileLabels, ToolDeclaration, Workspace};

use super::{Engine, Shared};
use crate::error::AgentError;
use crate::machine::{CallResult, Input, Machine};
use crate::projections::{self, FileEndorsed, LabelledFile, file_kind};
use crate::started_with::StartedWith;

/// The one tool that says everything its file holds afterwards. Of any other tool, what a file held before may still be in it.
const WRITES_WHOLE_FILES: &str = "palyra.fs.write";

/// What has a label now.
#[derive(Debug, Default)]
pub(super) struct FileLabelBook {
    known: RwLock<Known>,
    /// Held from reading the projection to taking in what it says, so that nothing newer is replaced by something older.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    contents: BTreeMap<Digest, Label>,
    /// By absolute path.
    names: BTreeMap<String, Label>,
    /// By absolute path: everything that was written there.
    places: BTreeMap<String, Label>,
    /// Up to which record of the journal.
    seq: u64,
}

impl Known {
    fn add(&mut self, file: LabelledFile) {
        let LabelledFile { workspace, path, digest, label, named, seq, .. } = file;
        let place = format!("{workspace}/{path}");
        if named {
            worsen(&mut self.names, place.clone(), &label);
        }
        worsen(&mut self.places, place, &label);
        // An empty file holds nothing of anybody, and every empty file is the same.
        if digest != Digest::of(b"") {
            worsen(&mut self.contents, digest, &label);
        }
        self.seq = self.seq.max(seq);
    }
}

fn worsen<K: Ord>(known: &mut BTreeMap<K, Label>, key: K, label: &Label) {
    known.entry(key).and_modify(|known| *known = known.join(label)).or_insert_with(|| label.clone());
}

impl FileLabelBook {
    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, files: Vec<LabelledFile>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        files.into_iter().for_each(|file| known.add(file));
    }

    fn replace(&self, files: Vec<LabelledFile>) {
        let mut known = Known::default();
        files.into_iter().for_each(|file| known.add(file));
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

impl FileLabels for FileLabelBook {
    fn is_empty(&self) -> bool {
        self.known().places.is_empty()
    }

    fn of_content(&self, content: &Digest) -> Option<Label> {
        self.known().contents.get(content).cloned()
    }

    fn of_name(&self, path: &str) -> Option<Label> {
        self.known().names.get(path).cloned()
    }

    fn places_below(&self, directory: &str) -> Vec<(String, Label)> {
        let inside = format!("{}/", directory.trim_end_matches('/'));
        let known = self.known();
        let from = known.places.range(inside.clone()..);
        from.map_while(|(place, label)| Some((place.strip_prefix(&inside)?.to_owned(), label.clone()))).collect()
    }
}

impl Shared {
    /// Puts into the result of a finished call the labels of the files that it wrote.
    pub(super) fn label_written(&self, machine: &Machine, input: &mut Input) {
        let Input::ToolFinished { call_id, tool, result } = input else { return };
        if !result.changes.is_empty() {
            result.wrote = self.written(machine, call_id, tool, result).map(Box::new);
        }
    }

    fn written(&self, machine: &Machine, call_id: &str, tool: &str, result: &CallResult) -> Option<Written> {
        let files: Vec<WrittenFile<'_>> = result
            .changes
            .iter()
            .map(|change| WrittenFile { path: &change.path, before: change.before, after: change.after })
            .collect();
        let rewrite = if tool == WRITES_WHOLE_FILES { Rewrite::Whole } else { Rewrite::MayKeep };
        // A program writes what it was given and what it could read, and its result has the label of both.
        let given = machine.given_to(call_id).join(&result.label);
        Written::of(&machine.spec().workspace, given, &files, rewrite, |content| self.file_labels.of_content(content))
    }
}

/// What a result of a tool may hold besides what its label says: what the call was given, and what lies in the workspace. Blocks.
pub(super) fn revealable(given: &Label, tool: &ToolDeclaration, workspace: &Workspace) -> Option<Label> {
    // What a server's results are worth is what a person reviewed; a pure tool reads nothing.
    let is_told_apart = tool.labels_results || tool.server.is_some() || tool.scope == EffectScope::Pure;
    if is_told_apart {
        return None;
    }
    let given = is_worse_than_a_file(given).then(|| given.clone());
    given.into_iter().chain(workspace.labels_within()).reduce(|one, other| one.join(&other))
}

/// What somebody endorses: bytes that they looked at.
#[derive(Debug, Clone)]
pub struct Endorsement {
    /// The workspace in which they looked, absolute.
    pub workspace: String,
    /// The file.
    pub path: String,
    /// The digest of what they saw.
    pub digest: Digest,
    /// Who.
    pub by: String,
    /// With what.
    pub with: StartedWith,
    /// Where.
    pub via: Option<String>,
}

impl Engine {
    /// Takes a person's word for the content of a file: from now on it is as good as any file, wherever it lies.
    ///
    /// # Errors
    /// When a program asks for it, they may not work there, the file holds something else by now, or nothing speaks against it.
    pub async fn endorse_file(&self, endorsement: Endorsement) -> Result<LabelledFile, AgentError> {
        self.to_the_end(|engine| async move { engine.endorse(endorsement).await }).await
    }

    async fn endorse(&self, endorsement: Endorsement) -> Result<LabelledFile, AgentError> {
        let Endorsement { workspace, path, digest, by, with, via } = endorsement;
        // A program that steers runs could otherwise clear what it had them write.
        if with.program.is_some() {
            return Err(AgentError::EndorsementRefused { by });
        }
        let (shared, principal, given) = (Arc::clone(&self.shared), by.clone(), path.clone());
        let looking = move || {
            let opened = shared.open_workspace(&workspace, &principal, with.workspace)?;
            let (path, now) = opened.content_of(&given)?;
            Ok::<_, AgentError>((opened.root().display().to_string(), path.to_string(), now))
        };
        let (workspace, path, now) =
            tokio::task::spawn_blocking(looking).await.map_err(|error| AgentError::Internal(error.to_string()))??;
        if now != digest {
            return Err(AgentError::FileChanged { path, now });
        }
        let mut labelled = self.labelled_files().await?;
        labelled.retain(|file| file.digest == digest && file.label.integrity == Integrity::Untrusted);
        let Some(newest) = labelled.pop() else { return Err(AgentError::FileNotLabelled { path }) };
        let file = labelled
            .into_iter()
            .find(|file| file.workspace == workspace && file.path == path)
            .unwrap_or(LabelledFile { workspace: workspace.clone(), path: path.clone(), ..newest });
        let endorsed = FileEndorsed { workspace, path, digest, by, via };
        let payload = serde_json::to_vec(&endorsed).map_err(|error| AgentError::Internal(error.to_string()))?;
        let record = NewRecord::new(file_kind::ENDORSED, self.shared.options.clock.now(), payload);
        self.shared.options.journal.append(vec![record]).await?;
        self.open_file_labels().await?;
        Ok(file)
    }

    /// Reads what has a label from the journal.
    pub(super) async fn open_file_labels(&self) -> Result<(), AgentError> {
        let _reading = self.shared.file_labels.reading.lock().await;
        let files = self.labelled_files().await?;
        self.shared.file_labels.replace(files);
        Ok(())
    }

    /// Takes in what was labelled by the newest commits.
    pub(super) async fn note_file_labels(&self) -> Result<(), AgentError> {
        let _reading = self.shared.file_labels.reading.lock().await;
        let seq = self.shared.file_labels.known().seq;
        let files = self.query(move |reader| projections::labelled_files(reader.connection(), seq)).await?;
        self.shared.file_labels.add(files);
        Ok(())
    }

    /// Contents of files that have a label, oldest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn labelled_files(&self) -> Result<Vec<LabelledFile>, AgentError> {
        self.query(|reader| projections::labelled_files(reader.connection(), 0)).await
    }
}
