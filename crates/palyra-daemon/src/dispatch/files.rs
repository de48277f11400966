//! Commands about files whose content is not trusted.

use palyra_agent::{EndorsedFile, Endorsement, LabelledFile, ProjectFile};
use palyra_client::api::{
    EndorseFileParams, EndorsedFileView, FileLabelView, InstructionFileView, ListFileLabelsParams,
    ListFileLabelsResponse,
};
use palyra_common::AcpCommand;

use super::caller::Caller;
use super::refusal::{Refusal, Result};
use super::workspaces;
use crate::app::App;

pub(super) async fn labels(app: &App, caller: &Caller, params: ListFileLabelsParams) -> Result<ListFileLabelsResponse> {
    let mut files = app.engine.labelled_files().await?;
    let (mut instructions, mut foreign) = (Vec::new(), None);
    if let Some(below) = params.workspace {
        super::runs::check_workspace(&below)?;
        // A directory that is gone, or that they may not work in, may still be asked about what runs wrote there.
        let authority = caller.started_with(app).workspace;
        if let Ok((found, why)) = app.engine.project_files(&below, caller.id(), authority).await {
            instructions.extend(found.into_iter().map(instruction));
            foreign = why;
        }
        let below = below.trim_end_matches('/').to_owned();
        let is_below = |file: &LabelledFile| {
            format!("{}/{}", file.workspace, file.path).strip_prefix(&below).is_some_and(|rest| rest.starts_with('/'))
        };
        files.retain(is_below);
    }
    Ok(ListFileLabelsResponse { files: files.into_iter().map(view).collect(), instructions, foreign })
}

/// Records that a person answers for the content of a file. As with approvals, what a program holds does not speak for a person.
pub(super) async fn endorse(app: &App, caller: &Caller, params: EndorseFileParams) -> Result<EndorsedFileView> {
    let EndorseFileParams { workspace, path, digest } = params;
    let workspace = workspaces::permit(app, caller, AcpCommand::FileEndorse, &workspace).await?;
    let (by, with) = (caller.id().to_owned(), caller.started_with(app));
    let endorsement = Endorsement { workspace, path, digest, by, with, via: Some(caller.via()) };
    app.engine.endorse_file(endorsement).await.map(endorsed).map_err(Refusal::from)
}

/// What was endorsed by a record of the journal, if that is what it tells of.
pub(super) async fn endorsed_at(app: &App, seq: u64) -> Result<Option<EndorsedFileView>> {
    Ok(app.engine.endorsed_at(seq).await?.map(endorsed))
}

fn endorsed(file: EndorsedFile) -> EndorsedFileView {
    let EndorsedFile { workspace, path, digest, by, at, .. } = file;
    EndorsedFileView { workspace, path, digest, by, at }
}

fn instruction(file: ProjectFile) -> InstructionFileView {
    let ProjectFile { path, digest, withheld } = file;
    InstructionFileView { path, digest, withheld }
}

fn view(file: LabelledFile) -> FileLabelView {
    let LabelledFile { workspace, path, digest, label, run_id, call_id, at, seq, .. } = file;
    FileLabelView {
        workspace,
        path,
        digest,
        integrity: label.integrity,
        confidentiality: label.confidentiality,
        sources: label.sources.into_iter().collect(),
        run_id,
        call_id,
        at,
        record: seq,
    }
}
