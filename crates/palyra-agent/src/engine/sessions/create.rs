//! Beginning sessions, and finding them by key.

use palyra_common::{RunMode, SessionId};

use super::{MAX_KEY, MAX_TITLE, check_name};
use crate::engine::Engine;
use crate::error::AgentError;
use crate::projections::{self, SessionRow};
use crate::session::{Fork, SessionCreated, SessionSettings, kind};

/// A session to begin.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// Its id, if the caller chose one; the same id with the same content gives the same session.
    pub session_id: Option<SessionId>,
    /// The owner's own name for it.
    pub key: Option<String>,
    /// What lists call it; the key, or a word for a new session, if nobody says.
    pub title: Option<String>,
    /// Who creates it.
    pub owner: String,
    /// How its runs treat untrusted results, if not as configured.
    pub mode: Option<RunMode>,
    /// What its runs take where they are told nothing else.
    pub settings: SessionSettings,
}

/// Whether a session was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    /// It was.
    Found,
    /// It was created just now.
    Created,
}

impl NewSession {
    fn into_record(self, session_id: SessionId, fork: Option<Fork>) -> Result<SessionCreated, AgentError> {
        let title = self.title.or_else(|| self.key.clone()).unwrap_or_else(|| "New session".to_owned());
        check_name("title", &title, MAX_TITLE)?;
        if let Some(key) = &self.key {
            check_name("key", key, MAX_KEY)?;
        }
        Ok(SessionCreated {
            session_id,
            key: self.key,
            title,
            owner: self.owner,
            mode: self.mode,
            settings: self.settings,
            fork,
        })
    }
}

impl Engine {
    /// Begins a session.
    ///
    /// # Errors
    /// When a field is wrong, the key is in use, or the id belongs to a session with another content.
    pub async fn create_session(&self, new: NewSession) -> Result<SessionRow, AgentError> {
        self.to_the_end(|engine| async move { engine.create_session_now(new).await }).await
    }

    async fn create_session_now(&self, new: NewSession) -> Result<SessionRow, AgentError> {
        let locks = &self.shared.locks;
        let _key = match &new.key {
            Some(key) => Some(locks.key(&new.owner, key).await),
            None => None,
        };
        let session_id = new.session_id.unwrap_or_else(SessionId::generate);
        let _session = locks.session(session_id).await;
        let created = new.into_record(session_id, None)?;
        if let Some(row) = self.same_session(&created).await? {
            return Ok(row);
        }
        if let Some(key) = created.key.clone() {
            let owner = created.owner.clone();
            let taken =
                self.query(move |reader| projections::session_by_key(reader.connection(), &owner, &key)).await?;
            if let Some(taken) = taken {
                return Err(AgentError::SessionKeyTaken(taken.row.key.unwrap_or_default()));
            }
        }
        self.append_session(created).await
    }

    /// The session of this name, or a new one.
    ///
    /// # Errors
    /// When the key or the title is wrong.
    pub async fn resolve_session(
        &self,
        owner: &str,
        key: &str,
        title: Option<String>,
    ) -> Result<(SessionRow, Resolved), AgentError> {
        let new = NewSession { key: Some(key.to_owned()), title, owner: owner.to_owned(), ..NewSession::default() };
        self.to_the_end(|engine| async move { engine.resolve_session_now(new).await }).await
    }

    async fn resolve_session_now(&self, new: NewSession) -> Result<(SessionRow, Resolved), AgentError> {
        let key = new.key.clone().unwrap_or_default();
        check_name("key", &key, MAX_KEY)?;
        let _key = self.shared.locks.key(&new.owner, &key).await;
        let owner = new.owner.clone();
        let found = self.query(move |reader| projections::session_by_key(reader.connection(), &owner, &key)).await?;
        if let Some(found) = found {
            return Ok((found.row, Resolved::Found));
        }
        let created = new.into_record(SessionId::generate(), None)?;
        Ok((self.append_session(created).await?, Resolved::Created))
    }

    /// A fork with what it takes along, once it is known.
    pub(super) async fn create_fork(
        &self,
        new: NewSession,
        session_id: SessionId,
        fork: Fork,
    ) -> Result<SessionRow, AgentError> {
        self.append_session(new.into_record(session_id, Some(fork))?).await
    }

    async fn append_session(&self, created: SessionCreated) -> Result<SessionRow, AgentError> {
        if self.shared.stopping.is_cancelled() {
            return Err(AgentError::Stopping);
        }
        self.shared.options.journal.admission()?;
        let record = self.session_record(kind::CREATED, created.session_id, &created)?;
        self.shared.options.journal.append(vec![record]).await?;
        self.session(created.session_id).await
    }

    /// The session of this id, if it was created by the very same request.
    async fn same_session(&self, wanted: &SessionCreated) -> Result<Option<SessionRow>, AgentError> {
        let id = wanted.session_id;
        match (self.created_record(id).await?, self.session(id).await) {
            (Some(created), Ok(row)) if created == *wanted => Ok(Some(row)),
            (Some(_), _) => Err(AgentError::SessionExists(id)),
            (None, _) => Ok(None),
        }
    }

    /// The record that a session began with.
    pub(super) async fn created_record(&self, id: SessionId) -> Result<Option<SessionCreated>, AgentError> {
        let first = self
            .shared
            .options
            .journal
            .read(move |reader| {
                let state = projections::session(reader.connection(), id)?;
                state.map(|state| reader.record(state.created_seq)).transpose()
            })
            .await?;
        let Some(first) = first else { return Ok(None) };
        first.parse().map(Some).map_err(|error| AgentError::Internal(format!("record {}: {error}", first.seq)))
    }
}
