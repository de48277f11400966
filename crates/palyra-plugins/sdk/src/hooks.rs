//! Plugins that answer events.

use serde::de::DeserializeOwned;

use crate::bindings::hook::exports::palyra::plugin::hook as wit;

/// What a hook says, from weakest to strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to say.
    Proceed,
    /// Add a note.
    Annotate,
    /// Propose another text; only before delivery.
    TransformPreview,
    /// Ask a person; only before an effect.
    RequestApproval,
    /// Refuse this step; only before an effect.
    Block,
    /// End the run.
    FailRun,
}

/// Something that happens or is about to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Such as `run:before_tool`.
    pub name: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The run it belongs to.
    pub run_id: Option<String>,
    /// What there is to know, as a JSON text.
    pub payload: String,
}

impl Event {
    /// The payload as a type of the plugin.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_str(&self.payload).map_err(|error| format!("the payload of {}: {error}", self.name))
    }
}

/// The answer to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// Why, or the note, in one line for people.
    pub reason: String,
    /// The proposed text of [`Verdict::TransformPreview`].
    pub text: Option<String>,
}

impl Decision {
    /// Nothing to say.
    #[must_use]
    pub fn proceed() -> Self {
        Self { verdict: Verdict::Proceed, reason: String::new(), text: None }
    }

    /// Adds a note.
    pub fn annotate(note: impl Into<String>) -> Self {
        Self { verdict: Verdict::Annotate, reason: note.into(), text: None }
    }

    /// Proposes another text.
    pub fn transform_preview(reason: impl Into<String>, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::TransformPreview, reason: reason.into(), text: Some(text.into()) }
    }

    /// Has a person asked.
    pub fn request_approval(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::RequestApproval, reason: reason.into(), text: None }
    }

    /// Refuses the step.
    pub fn block(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Block, reason: reason.into(), text: None }
    }

    /// Ends the run.
    pub fn fail_run(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::FailRun, reason: reason.into(), text: None }
    }
}

/// A plugin of hooks. Most are written with [`hook_plugin!`](crate::hook_plugin).
pub trait Hooks {
    /// Answers one event; an error counts as a failing hook.
    fn handle(event: Event) -> Result<Decision, String>;
}

impl From<Verdict> for wit::Verdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Proceed => Self::Proceed,
            Verdict::Annotate => Self::Annotate,
            Verdict::TransformPreview => Self::TransformPreview,
            Verdict::RequestApproval => Self::RequestApproval,
            Verdict::Block => Self::Block,
            Verdict::FailRun => Self::FailRun,
        }
    }
}

impl<T: Hooks> wit::Guest for T {
    fn handle(event: wit::Event) -> Result<wit::Decision, String> {
        let event = Event { name: event.name, at: event.at, run_id: event.run_id, payload: event.payload };
        let decision = <T as Hooks>::handle(event)?;
        Ok(wit::Decision { verdict: decision.verdict.into(), reason: decision.reason, text: decision.text })
    }
}

/// Makes a type that implements [`Hooks`](crate::Hooks) what the component exports.
#[macro_export]
macro_rules! export_hooks {
    ($plugin:ident) => {
        $crate::bindings::hook::export_hook_plugin!($plugin with_types_in $crate::bindings::hook);
    };
}

/// A plugin of hooks in one line: the function that takes an [`Event`](crate::Event) and returns `Result<Decision, String>`.
#[macro_export]
macro_rules! hook_plugin {
    ($handler:path) => {
        struct PalyraHooks;

        impl $crate::Hooks for PalyraHooks {
            fn handle(event: $crate::Event) -> ::core::result::Result<$crate::Decision, ::std::string::String> {
                $handler(event)
            }
        }

        $crate::export_hooks!(PalyraHooks);
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Refusing;

    impl Hooks for Refusing {
        fn handle(event: Event) -> Result<Decision, String> {
            let tool: String = event.read()?;
            Ok(if tool == "rm" { Decision::block("no") } else { Decision::proceed() })
        }
    }

    fn handle(payload: &str) -> Result<wit::Decision, String> {
        <Refusing as wit::Guest>::handle(wit::Event {
            name: "run:before_tool".to_owned(),
            at: 0,
            run_id: None,
            payload: payload.to_owned(),
        })
    }

    #[test]
    fn a_decision_reaches_the_host_with_its_verdict() {
        assert!(matches!(handle("\"rm\"").unwrap().verdict, wit::Verdict::Block));
        assert!(matches!(handle("\"ls\"").unwrap().verdict, wit::Verdict::Proceed));
        assert!(handle("{").unwrap_err().contains("run:before_tool"));
    }
}
