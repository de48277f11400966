//! What a model can be asked for, by its name.
//!
//! The Messages API is one, but the models behind it differ in how they are told to think and whether they take a schema for
//! their answer. Names carry the version (`claude-sonnet-4-5-20250929`, `claude-3-7-sonnet-latest`). A name without one is taken for the
//! newest; a name that is no Claude at all belongs to another server that speaks this wire, of which the least is assumed. Where the guess is
//! wrong the server says so, and `dialect` learns it.

use super::dialect::Refused;
use crate::request::ReasoningEffort;

/// Smallest budget for thinking that the API takes.
const LEAST_BUDGET: u32 = 1024;

/// Which model it is, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Generation {
    /// No Claude.
    Foreign,
    /// A Claude of this version.
    Claude(u32, u32),
}

impl Generation {
    /// Reads a model's name.
    pub(super) fn of(model: &str) -> Self {
        let name = model.to_ascii_lowercase();
        let Some((_, after)) = name.split_once("claude") else { return Self::Foreign };
        let mut numbers = after
            .split(|c: char| !c.is_ascii_alphanumeric())
            // Longer numbers are dates.
            .skip_while(|word| word.len() > 2 || word.parse::<u32>().is_err())
            .map_while(|word| (word.len() <= 2).then(|| word.parse::<u32>().ok()).flatten());
        match numbers.next() {
            Some(major) => Self::Claude(major, numbers.next().unwrap_or_default()),
            None => Self::Claude(u32::MAX, 0),
        }
    }

    /// Whether the API takes a schema for the answer.
    pub(super) fn takes_format(self) -> bool {
        self >= Self::Claude(4, 5)
    }

    /// Most tokens of an answer when nobody said, without those for thinking. The field is required, and what is above a
    /// model's own bound is refused.
    pub(super) fn usual_answer(self) -> u32 {
        match self {
            Self::Foreign => 8192,
            Self::Claude(..) if self < Self::Claude(3, 5) => 4096,
            Self::Claude(..) if self < Self::Claude(3, 7) => 8192,
            Self::Claude(..) => 16_384,
        }
    }

    fn thinks(self) -> Form {
        match self {
            Self::Foreign => Form::Budget,
            Self::Claude(..) if self < Self::Claude(3, 7) => Form::None,
            Self::Claude(..) if self < Self::Claude(4, 6) => Form::Budget,
            Self::Claude(..) => Form::Adaptive,
        }
    }
}

/// How a model is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    None,
    Budget,
    Adaptive,
}

/// What is said about thinking in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// Nothing.
    Unsaid,
    /// At most so many tokens.
    Budget(u32),
    /// As much as the model sees fit at this effort.
    Adaptive(&'static str),
    /// Nothing but the effort.
    Effort(&'static str),
}

impl Thinking {
    /// What to say for a model at an effort, within a bound of the whole answer.
    pub(super) fn plan(
        generation: Generation,
        effort: Option<ReasoningEffort>,
        bound: Option<u32>,
        refused: Refused,
    ) -> Self {
        let Some(effort) = effort else { return Self::Unsaid };
        let form = match generation.thinks() {
            Form::Budget | Form::Adaptive if refused.budget && refused.adaptive => Form::None,
            Form::Budget if refused.budget => Form::Adaptive,
            Form::Adaptive if refused.adaptive => Form::Budget,
            form => form,
        };
        match (form, effort) {
            (Form::None, _) | (Form::Budget, ReasoningEffort::Minimal) => Self::Unsaid,
            (Form::Adaptive, ReasoningEffort::Minimal) => Self::Effort("low"),
            (Form::Adaptive, ReasoningEffort::Low) => Self::Adaptive("low"),
            (Form::Adaptive, ReasoningEffort::Medium) => Self::Adaptive("medium"),
            (Form::Adaptive, ReasoningEffort::High) => Self::Adaptive("high"),
            (Form::Budget, _) => {
                // Thinking counts as answer: at least half of a given bound stays for the words.
                let budget = bound.map_or(u32::MAX, |bound| bound / 2).min(budget(effort));
                if budget < LEAST_BUDGET { Self::Unsaid } else { Self::Budget(budget) }
            }
        }
    }

    /// Tokens for thinking on top of an answer whose bound nobody gave.
    pub(super) fn extra_tokens(self, effort: Option<ReasoningEffort>) -> u32 {
        match self {
            Self::Budget(tokens) => tokens,
            Self::Adaptive(_) => effort.map_or(0, budget),
            Self::Unsaid | Self::Effort(_) => 0,
        }
    }
}

/// About how many tokens an effort is worth.
fn budget(effort: ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::Minimal => 0,
        ReasoningEffort::Low => 2048,
        ReasoningEffort::Medium => 8192,
        ReasoningEffort::High => 16_384,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_version() {
        let table = [
            ("claude-3-haiku-20240307", Generation::Claude(3, 0)),
            ("claude-3-5-sonnet-20241022", Generation::Claude(3, 5)),
            ("claude-3-7-sonnet-latest", Generation::Claude(3, 7)),
            ("claude-opus-4-20250514", Generation::Claude(4, 0)),
            ("claude-sonnet-4-5@20250929", Generation::Claude(4, 5)),
            ("anthropic/claude-opus-4.6", Generation::Claude(4, 6)),
            ("Claude-Opus-5-5", Generation::Claude(5, 5)),
            ("claude-instant-1.2", Generation::Claude(1, 2)),
            ("claude-mythos-preview", Generation::Claude(u32::MAX, 0)),
            ("tiny-llm", Generation::Foreign),
            ("", Generation::Foreign),
        ];
        for (name, generation) in table {
            assert_eq!(Generation::of(name), generation, "{name}");
        }
    }

    #[test]
    fn each_generation_is_told_to_think_in_its_own_way() {
        let nothing = Refused::default();
        let plan = |model: &str, effort, bound| Thinking::plan(Generation::of(model), Some(effort), bound, nothing);
        assert_eq!(plan("claude-3-5-sonnet", ReasoningEffort::High, None), Thinking::Unsaid);
        assert_eq!(plan("claude-sonnet-4-5", ReasoningEffort::Medium, None), Thinking::Budget(8192));
        assert_eq!(plan("claude-sonnet-4-5", ReasoningEffort::High, Some(6000)), Thinking::Budget(3000));
        assert_eq!(plan("claude-sonnet-4-5", ReasoningEffort::High, Some(1200)), Thinking::Unsaid);
        assert_eq!(plan("claude-sonnet-4-5", ReasoningEffort::Minimal, None), Thinking::Unsaid);
        assert_eq!(plan("claude-opus-5-5", ReasoningEffort::High, Some(100)), Thinking::Adaptive("high"));
        assert_eq!(plan("claude-opus-5-5", ReasoningEffort::Minimal, None), Thinking::Effort("low"));
        assert_eq!(Thinking::plan(Generation::Foreign, None, None, nothing), Thinking::Unsaid);
        let both = Refused { budget: true, adaptive: true, ..nothing };
        let plan = Thinking::plan(Generation::Foreign, Some(ReasoningEffort::High), None, both);
        assert_eq!(plan, Thinking::Unsaid);
    }
}
