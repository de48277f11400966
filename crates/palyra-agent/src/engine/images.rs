//! Images that a task refers to.
//!
//! A model that sees gets them as they are: the run's specification names them by digest, their bytes are kept as artifacts, and they go with the person's own
//! message. For a model that does not see, a vision task looks at them when the run is accepted, and what it saw becomes the attachment. An image that
//! nobody can look at refuses the run, like any other file that cannot be read.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use palyra_common::{
    AuxiliaryTaskId, AuxiliaryTaskKind, Digest, Integrity, Label, RunId, SessionId, ToStableError as _,
};
use palyra_journal::ArtifactStore;
use palyra_models::{Message, Part};

use super::Engine;
use super::auxiliary::{Keep, Task, carry_out};
use super::files::{Attachment, FoundImage};
use crate::auxiliary::{AuxiliaryError, AuxiliaryInput, AuxiliaryOutput, VisionInput, VisualObservation, image_part};
use crate::context;
use crate::error::AgentError;
use crate::spec::{ContextItem, ImageRef, RunSpec};

/// How long looking at the images of a task may take: whoever asks for the run waits for it.
const LOOK: Duration = Duration::from_secs(45);
/// Most bytes of the task that a vision task is told.
const MAX_TASK: usize = 4 << 10;

/// The images of a run, ready to be sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Images(Arc<Vec<Part>>);

impl Images {
    /// Reads the images that a specification names; blocks. One that is gone is left out: its name is still in the text.
    pub(super) fn load(artifacts: &ArtifactStore, spec: &RunSpec) -> Self {
        let found = spec.attachments.iter().filter_map(|item| {
            let image = item.image.as_ref()?;
            let part = artifacts.get(&image.digest).ok().and_then(|bytes| image_part(&item.source, &bytes));
            if part.is_none() {
                tracing::warn!(run_id = %spec.run_id, digest = %image.digest, "an image of the run is gone");
            }
            part
        });
        Self(Arc::new(found.collect()))
    }

    /// Puts the images into the person's own message.
    pub(super) fn attach(&self, spec: &RunSpec, messages: &mut [Message]) {
        if !self.0.is_empty()
            && let Some(task) = messages.get_mut(context::task_message(spec))
        {
            task.parts.extend(self.0.iter().cloned());
        }
    }
}

/// What was seen on images before a run is accepted. Whoever finds other bytes at acceptance looks again.
#[derive(Debug)]
pub(super) struct Looked {
    /// The session that the run begins, if it begins one.
    pub(super) session_id: SessionId,
    seen: Vec<(String, Digest, ContextItem)>,
}

impl Default for Looked {
    fn default() -> Self {
        Self { session_id: SessionId::generate(), seen: Vec::new() }
    }
}

impl Looked {
    fn at(&self, image: &FoundImage) -> Option<ContextItem> {
        let digest = Digest::of(&image.bytes);
        let same = |(source, seen, _): &&(String, Digest, ContextItem)| *source == image.source && *seen == digest;
        self.seen.iter().find(same).map(|(_, _, item)| item.clone())
    }
}

/// For whom images are looked at.
pub(super) struct Onlooker<'a> {
    pub(super) run_id: RunId,
    pub(super) session_id: SessionId,
    pub(super) owner: &'a str,
    pub(super) agent: &'a str,
    /// The model that plans the run.
    pub(super) model: &'a str,
    pub(super) prompt: &'a str,
}

impl Engine {
    /// Attachments as the model of the run can take them.
    pub(super) async fn take_in(
        &self,
        found: Vec<Attachment>,
        onlooker: &Onlooker<'_>,
        looked: &Looked,
    ) -> Result<(Vec<ContextItem>, Images), AgentError> {
        let sees = self.shared.options.provider.sees_images(onlooker.agent, onlooker.model);
        let taken = found.into_iter().map(|attachment| async move {
            match attachment {
                Attachment::Text(item) => Ok((item, None)),
                // A model that sees reads what is written in it, and there is no frame around an image.
                Attachment::Image(image) if sees && image.label.integrity == Integrity::Untrusted => Err(refused(
                    &image.source,
                    "its content is not trusted; `palyra files endorse` shows it".to_owned(),
                )),
                Attachment::Image(image) if sees => self.keep(image).await.map(|(item, part)| (item, Some(part))),
                Attachment::Image(image) => match looked.at(&image) {
                    Some(item) => Ok((item, None)),
                    None => self.look_at(image, onlooker).await.map(|item| (item, None)),
                },
            }
        });
        let (items, parts): (Vec<ContextItem>, Vec<Option<Part>>) = try_join_all(taken).await?.into_iter().unzip();
        Ok((items, Images(Arc::new(parts.into_iter().flatten().collect()))))
    }

    /// Has all images looked at, for a model that does not see.
    pub(super) async fn look(
        &self,
        found: Vec<Attachment>,
        onlooker: &Onlooker<'_>,
        mut looked: Looked,
    ) -> Result<Looked, AgentError> {
        let images = found.into_iter().filter_map(|attachment| match attachment {
            Attachment::Image(image) => Some(image),
            Attachment::Text(_) => None,
        });
        let seen = images.map(|image| async move {
            let (source, digest) = (image.source.clone(), Digest::of(&image.bytes));
            Ok::<_, AgentError>((source, digest, self.look_at(image, onlooker).await?))
        });
        looked.seen = try_join_all(seen).await?;
        Ok(looked)
    }

    /// Keeps an image that the model sees itself.
    async fn keep(&self, image: FoundImage) -> Result<(ContextItem, Part), AgentError> {
        let artifacts = self.shared.options.journal.artifacts().clone();
        let bytes = image.bytes;
        let (digest, size) =
            tokio::task::spawn_blocking(move || artifacts.put(&bytes).map(|digest| (digest, bytes.len())))
                .await
                .map_err(|error| AgentError::Internal(error.to_string()))??;
        let text = format!("(an image that is attached: {}, {size} bytes, {digest})", image.part.media_type);
        let item = ContextItem { source: image.source, text, label: image.label, image: Some(ImageRef { digest }) };
        Ok((item, image.part))
    }

    /// Has an image looked at for a model that does not see.
    async fn look_at(&self, image: FoundImage, onlooker: &Onlooker<'_>) -> Result<ContextItem, AgentError> {
        let FoundImage { source, bytes, part, label } = image;
        let digest = Digest::of(&bytes);
        let prompt = context::shortened(onlooker.prompt, MAX_TASK, "here");
        let question = format!("What does the image show that matters for this task? The task:\n{prompt}");
        let task = Task {
            id: AuxiliaryTaskId::generate(),
            session_id: onlooker.session_id,
            run_id: Some(onlooker.run_id),
            turn: 1,
            owner: onlooker.owner.to_owned(),
            agent: onlooker.agent.to_owned(),
            // The run's own model does not see, so the provider chooses.
            model: String::new(),
            input: AuxiliaryInput::Vision(VisionInput { image: part, question }),
            label: label.join(&Label::user()),
            keep: Keep::Digest,
        };
        let cancelled = AuxiliaryError::Cancelled(task.id);
        let looked = tokio::time::timeout(LOOK, carry_out(&self.shared, task)).await;
        match looked.unwrap_or_else(|_| Err(cancelled.into())) {
            Ok(done) => match done.output {
                AuxiliaryOutput::Vision(seen) => {
                    Ok(ContextItem { source, text: told(&seen, &digest), label: done.label, image: None })
                }
                _ => Err(AgentError::Internal("a vision task gave something else".to_owned())),
            },
            // Of these, another try without the image would fail as well.
            Err(error @ (AgentError::Journal(_) | AgentError::Stopping)) => Err(error),
            Err(error) => Err(AgentError::BadReference { path: source, source: error.to_stable().into() }),
        }
    }
}

fn told(seen: &VisualObservation, digest: &Digest) -> String {
    let mut text =
        format!("(an image, {digest}; another model looked at it and says, confidence {:.2}:)\n", seen.confidence);
    for observation in &seen.observations {
        text.push_str(&format!("- {observation}\n"));
    }
    text.push_str(&seen.answer);
    text
}

/// An image that cannot be taken.
pub(super) fn refused(path: &str, why: String) -> AgentError {
    let error = AuxiliaryError::input(AuxiliaryTaskKind::Vision, "image", why);
    AgentError::BadReference { path: path.to_owned(), source: error.to_stable().into() }
}
