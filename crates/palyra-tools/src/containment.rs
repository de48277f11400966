//! What a call can reach, as whoever carries it out answers for before anything is decided.
//!
//! A call is *contained* if nothing outside the workspace (and private, temporary places) is reached and undo takes back all that it changes. That is a fact about how a call will
//! be carried out and not about what it says. Whoever answers for it is asked again when the call begins: what was decided as contained then is contained, or does not happen.

use std::fmt;

/// What a call can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containment {
    /// The workspace and nothing else, and undo takes it back as a whole.
    Contained,
    /// More than that: all that speaks against it.
    Reaches(Vec<Reach>),
}

/// What speaks against a call's being contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Nothing confines what the tool does.
    Unconfined,
    /// The strongest sandbox is not there, or was not seen to hold.
    Isolation(String),
    /// It has network.
    Network,
    /// It is given something that may be a secret.
    Credentials(String),
    /// It can change something outside the workspace.
    Outside(String),
    /// Something that it may change could not be taken back.
    Undo(String),
}

impl Containment {
    /// Nothing speaks against it, or all of this does.
    #[must_use]
    pub fn of(reaches: Vec<Reach>) -> Self {
        if reaches.is_empty() { Self::Contained } else { Self::Reaches(reaches) }
    }

    /// What nobody answers for.
    #[must_use]
    pub fn unconfined() -> Self {
        Self::Reaches(vec![Reach::Unconfined])
    }

    /// Why a person is asked, for a tool that could be contained.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        let reaches = match self {
            Self::Contained => return None,
            Self::Reaches(reaches) => reaches.iter().filter(|reach| **reach != Reach::Unconfined),
        };
        let told: Vec<String> = reaches.map(ToString::to_string).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unconfined => f.write_str("nothing confines it"),
            Self::Isolation(why) => write!(f, "it would not be isolated: {why}"),
            Self::Network => f.write_str("it would have network"),
            Self::Credentials(which) => write!(f, "it would be given {which}"),
            Self::Outside(what) => write!(f, "it could change something outside the workspace: {what}"),
            Self::Undo(what) => write!(f, "undo could not restore all that it may change: {what}"),
        }
    }
}

/// What a call was decided as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DecidedAs {
    /// Contained: it is carried out so or not at all.
    Contained,
    /// Anything: a person, or a policy, let it happen as it is.
    #[default]
    Reaching,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_all_that_speaks_against_it_and_tools_that_nothing_confines_have_no_more_to_say() {
        assert_eq!(Containment::of(Vec::new()), Containment::Contained);
        assert_eq!(Containment::Contained.reason(), None);
        assert_eq!(Containment::unconfined().reason(), None);
        let reaches = vec![Reach::Network, Reach::Undo("`big` is not copied".to_owned())];
        let reason = Containment::of(reaches).reason().unwrap();
        assert!(reason.starts_with("it would have network; undo could not restore"), "{reason}");
    }
}
