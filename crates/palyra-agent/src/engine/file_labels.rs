//! Labels of what runs wrote: on the journal, and in memory for every file that is read.
//!
//! The record of a finished call carries the labels of its files; the projection keeps them, and [`FileLabelBook`] is what the projection says. It is read at the start, grows
//! with each commit that labels something, and is read again after an endorsement.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use palyra_common::{Confidentiality, DataOrigin, Digest, Integrity, Label};
use palyra_flow::{Rewrite, Written, WrittenFile, differs_from_a_file, is_worse_than_a_file};
use palyra_journal::NewRecord;
use palyra_tools::{EffectScope, FileLabels, ToolDeclaration, TreeBook, Workspace};

use super::{Engine, Shared};
use crate::error::AgentError;
use crate::machine::{CallResult, Input, Machine};
use crate::projections::{self, EndorsedFile, FileEndorsed, LabelledFile, file_kind};
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
    endorsed: Endorsed,
    /// Up to which record of the journal.
    seq: u64,
}

/// What people answer for.
#[derive(Debug, Default)]
struct Endorsed {
    contents: BTreeSet<Digest>,
    /// How large those are; nothing if one of them is of a size that nobody noted.
    sizes: Option<BTreeSet<u64>>,
    /// Where they lay, by absolute path.
    places: BTreeSet<String>,
}

impl Endorsed {
    fn of(files: Vec<EndorsedFile>) -> Self {
        Self {
            contents: files.iter().map(|file| file.digest).collect(),
            sizes: files.iter().map(|file| file.bytes).collect(),
            places: files.into_iter().map(|file| format!("{}/{}", file.workspace, file.path)).collect(),
        }
    }
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

    pub(super) fn add(&self, files: Vec<LabelledFile>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        files.into_iter().for_each(|file| known.add(file));
    }

    pub(super) fn replace(&self, files: Vec<LabelledFile>, endorsed: Vec<EndorsedFile>) {
        let mut known = Known { endorsed: Endorsed::of(endorsed), ..Known::default() };
        files.into_iter().for_each(|file| known.add(file));
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Whether a person endorsed some content of a file, by absolute path.
    pub(super) fn was_endorsed(&self, place: &str) -> bool {
        self.known().endorsed.places.contains(place)
    }
}

impl FileLabels for FileLabelBook {
    fn is_empty(&self) -> bool {
        self.known().places.is_empty()
    }

    fn of_content(&self, content: &Digest) -> Option<Label> {
        self.known().contents.get(content).cloned()
    }

    fn may_be_endorsed(&self, bytes: u64) -> bool {
        self.known().endorsed.sizes.as_ref().is_none_or(|sizes| sizes.contains(&bytes))
    }

    fn is_endorsed(&self, content: &Digest) -> bool {
        self.known().endorsed.contents.contains(content)
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
    pub(super) fn label_written(&self, machine: &Machine, workspace: &Workspace, input: &mut Input) {
        let Input::ToolFinished { call_id, tool, result } = input else { return };
        if !result.changes.is_empty() {
            result.wrote = self.written(machine, workspace, call_id, tool, result).map(Box::new);
        }
    }

    fn written(
        &self,
        machine: &Machine,
        workspace: &Workspace,
        call_id: &str,
        tool: &str,
        result: &CallResult,
    ) -> Option<Written> {
        // A program writes what it was given and what it could read, and its result has the label of both.
        let given = machine.label_of_work(call_id).join(&result.label);
        let paths = result.changes.iter().filter(|change| change.before.is_some()).map(|change| change.path.as_str());
        // What is untrusted anyway need not be looked up.
        let foreign =
            if given.integrity == Integrity::Untrusted { BTreeMap::new() } else { workspace.labels_of_places(paths) };
        let files: Vec<WrittenFile<'_>> = result
            .changes
            .iter()
            .map(|change| WrittenFile {
                path: &change.path,
                before: change.before,
                after: change.after,
                place: foreign
                    .get(&change.path)
                    .filter(|_| !change.before.is_some_and(|before| self.file_labels.is_endorsed(&before))),
            })
            .collect();
        let rewrite = if tool == WRITES_WHOLE_FILES { Rewrite::Whole } else { Rewrite::MayKeep };
        Written::of(&machine.spec().workspace, given, &files, rewrite, |content| self.file_labels.of_content(content))
    }
}

/// What a result of a tool may hold besides what its label says: what the call was given, and what lies in the workspace and wherever else programs read. Blocks.
pub(super) fn revealable(
    given: &Label,
    tool: &ToolDeclaration,
    workspace: &Workspace,
    trees: &TreeBook,
    programs_read: &[PathBuf],
) -> Option<Label> {
    // What a server's results are worth is what a person reviewed; a pure tool reads nothing.
    let is_told_apart = tool.labels_results || tool.server.is_some() || tool.scope == EffectScope::Pure;
    if is_told_apart {
        return None;
    }
    let given = differs_from_a_file(given).then(|| given.clone());
    let foreign = trees.foreign_among(programs_read).map(|directory| {
        Label::new(Integrity::Untrusted, Confidentiality::Private)
            .from_source(format!("directory:{}", directory.display()))
            .of_origin(DataOrigin::Workspace)
    });
    let within = workspace.labels_within();
    given.into_iter().chain(within).chain(foreign).reduce(|one, other| one.join(&other))
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
    /// Takes a person's word for the content of a file: from now on it is as good as any file of theirs, wherever it lies, and its instructions are followed.
    ///
    /// # Errors
    /// When a program asks for it, they may not work there, the file holds something else by now, or it was endorsed already and nothing speaks against it.
    pub async fn endorse_file(&self, endorsement: Endorsement) -> Result<EndorsedFile, AgentError> {
        self.to_the_end(|engine| async move { engine.endorse(endorsement).await }).await
    }

    async fn endorse(&self, endorsement: Endorsement) -> Result<EndorsedFile, AgentError> {
        let Endorsement { workspace, path, digest, by, with, via } = endorsement;
        // A program that steers runs could otherwise clear what it had them write.
        if with.program.is_some() {
            return Err(AgentError::EndorsementRefused { by });
        }
        let (shared, principal, given) = (Arc::clone(&self.shared), by.clone(), path.clone());
        let looking = move || {
            let opened = shared.open_workspace(&workspace, &principal, with.workspace)?;
            let (path, now, bytes) = opened.content_of(&given)?;
            Ok::<_, AgentError>((opened.root().display().to_string(), path.to_string(), now, bytes))
        };
        let (workspace, path, now, bytes) =
            tokio::task::spawn_blocking(looking).await.map_err(|error| AgentError::Internal(error.to_string()))??;
        if now != digest {
            return Err(AgentError::FileChanged { path, now });
        }
        // Raised already, and no run has written it from anything untrusted since.
        if self.shared.file_labels.is_endorsed(&digest) {
            return Err(AgentError::FileNotLabelled { path });
        }
        let at = self.shared.options.clock.now();
        let file = EndorsedFile { workspace, path, digest, bytes: Some(bytes), by, at };
        let EndorsedFile { workspace, path, by, .. } = file.clone();
        let endorsed = FileEndorsed { workspace, path, digest, bytes: Some(bytes), by, via };
        let payload = serde_json::to_vec(&endorsed).map_err(|error| AgentError::Internal(error.to_string()))?;
        self.shared.options.journal.append(vec![NewRecord::new(file_kind::ENDORSED, at, payload)]).await?;
        self.read_patiently(|| self.open_file_labels()).await?;
        Ok(file)
    }

    /// What a record of the journal says was endorsed; nothing if it is of another kind.
    ///
    /// # Errors
    /// When there is no such record, or it cannot be read.
    pub async fn endorsed_at(&self, seq: u64) -> Result<Option<EndorsedFile>, AgentError> {
        let record = self.shared.options.journal.read(move |reader| reader.record(seq)).await?;
        projections::endorsed_by(&record).map_err(|error| AgentError::Internal(error.to_string()))
    }

    /// Reads what has a label from the journal.
    pub(super) async fn open_file_labels(&self) -> Result<(), AgentError> {
        let _reading = self.shared.file_labels.reading.lock().await;
        let (files, endorsed) = self
            .query(|reader| {
                let connection = reader.connection();
                Ok((projections::labelled_files(connection, 0)?, projections::endorsed_files(connection)?))
            })
            .await?;
        self.shared.file_labels.replace(files, endorsed);
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
        let mut files = self.query(|reader| projections::labelled_files(reader.connection(), 0)).await?;
        // Which place's data a file holds is nothing that a person could endorse.
        files.retain(|file| is_worse_than_a_file(&file.label));
        Ok(files)
    }
}
