//! Opening workspaces: the one place where a path becomes a directory that a run may touch.

use std::sync::Arc;

use palyra_common::SessionId;
use palyra_tools::{Roots, Workspace};

use super::create::NewRun;
use super::instructions::{ProjectFile, project_files};
use super::{Engine, Shared};
use crate::error::AgentError;
use crate::started_with::WorkspaceAuthority;

/// Knows where somebody's workspaces may lie, at this moment.
pub trait WorkspaceRoots: Send + Sync {
    /// The roots of a principal whose credential has this authority.
    fn roots(&self, principal: &str, authority: WorkspaceAuthority) -> Roots;
}

impl Shared {
    /// Opens the workspace of a principal's run, if it is one at this moment; blocks.
    pub(super) fn open_workspace(
        &self,
        path: &str,
        principal: &str,
        authority: WorkspaceAuthority,
    ) -> Result<Arc<Workspace>, AgentError> {
        let roots = self.options.workspaces.roots(principal, authority);
        let workspace = Workspace::open(path, &roots, &self.options.protected)?;
        let labels = Arc::clone(&self.file_labels);
        Ok(Arc::new(workspace.with_labels(labels).with_trees(&self.trees)))
    }
}

impl Engine {
    /// Where a directory really is, if a principal may work there; nothing is begun by it.
    ///
    /// # Errors
    /// When it cannot be opened, or may not be.
    pub async fn check_workspace(
        &self,
        path: &str,
        principal: &str,
        authority: WorkspaceAuthority,
    ) -> Result<String, AgentError> {
        let (path, principal, shared) = (path.to_owned(), principal.to_owned(), Arc::clone(&self.shared));
        let opening = move || shared.open_workspace(&path, &principal, authority);
        let workspace =
            tokio::task::spawn_blocking(opening).await.map_err(|error| AgentError::Internal(error.to_string()))??;
        Ok(workspace.root().display().to_string())
    }

    /// The project files of a workspace that a principal may work in, as a run that began now would treat them, and why everything there is taken for somebody
    /// else's, if it is.
    ///
    /// # Errors
    /// When it cannot be opened, or may not be.
    pub async fn project_files(
        &self,
        path: &str,
        principal: &str,
        authority: WorkspaceAuthority,
    ) -> Result<(Vec<ProjectFile>, Option<String>), AgentError> {
        let (path, principal, shared) = (path.to_owned(), principal.to_owned(), Arc::clone(&self.shared));
        let looking = move || {
            let workspace = shared.open_workspace(&path, &principal, authority)?;
            let files = project_files(&workspace, &shared.file_labels, &shared.options.project_files);
            let foreign = workspace.foreign_root().map(|why| why.to_string());
            Ok((files.into_iter().map(|(file, _)| file).collect(), foreign))
        };
        tokio::task::spawn_blocking(looking).await.map_err(|error| AgentError::Internal(error.to_string()))?
    }

    /// The directory that a run would work in: the one it names, of its session or of its agent.
    ///
    /// # Errors
    /// When there is none, or the session or agent does not exist.
    pub async fn workspace_of_run(&self, new: &NewRun) -> Result<String, AgentError> {
        self.settled_workspace(new).await
    }

    /// The directory that an input to a session would have its run work in.
    ///
    /// # Errors
    /// When there is none, or no such session.
    pub async fn workspace_of_input(
        &self,
        session_id: SessionId,
        given: Option<&str>,
        agent: Option<&str>,
    ) -> Result<String, AgentError> {
        let row = self.session(session_id).await?;
        self.workspace_for(&row, given, agent).await
    }
}
