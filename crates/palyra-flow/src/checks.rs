//! The single checks of the rule, each with a name, so that a program can take one away and see whether anybody notices.
//!
//! In what is shipped every check holds and asking costs nothing. Under the feature `testing` one of them can be removed for the whole process: decisions are
//! made on several threads.

use palyra_common::runtime_contract_enum;

runtime_contract_enum! {
    /// One check, named by what holds because of it.
    pub enum Check("flow_check") {
        /// Keys of objects in arguments are judged like values.
        KeysAreValues = "keys_are_values",
        /// A call with more parts than are looked at is refused.
        EveryPartIsJudged = "every_part_is_judged",
        /// A handle counts for the server that issued it alone.
        HandlesOfTheirServer = "handles_of_their_server",
        /// An address is never a handle.
        HandlesAreNoAddresses = "handles_are_no_addresses",
        /// A handle is spelled as its server spelled it.
        HandlesAreExact = "handles_are_exact",
        /// Only short values count as assigned, and only plain names as identifiers.
        HandlesArePlain = "handles_are_plain",
        /// Only what stands in a place that the user named is pointed at.
        PointedInNamedPlaces = "pointed_in_named_places",
        /// Only what a record of an attested author holds is pointed at.
        PointedByAuthors = "pointed_by_authors",
        /// Addresses inside content are destinations.
        LinksInContent = "links_in_content",
        /// So are those in arguments that nobody classified.
        LinksInUnclassified = "links_in_unclassified",
        /// So is what has the shape of a host, where the planner that wrote it has read untrusted text.
        HostsOfTaintedPlanners = "hosts_of_tainted_planners",
        /// So are disguised ones that untrusted text has.
        CarriedAddresses = "carried_addresses",
        /// A handle is no command and no credential.
        HandlesOpenNothing = "handles_open_nothing",
        /// A command is compared as a whole.
        WholeCommands = "whole_commands",
        /// A path outside the workspace is compared as a whole.
        WholePaths = "whole_paths",
        /// A trusted word is a word that stands alone.
        WholeValues = "whole_values",
        /// After untrusted text no mandate is taken from the planner.
        MandatesBeforeReading = "mandates_before_reading",
        /// A mandate binds what the user wrote.
        MandatesBindUsersWords = "mandates_bind_users_words",
        /// A mandate is for as many uses as the user wrote.
        TimesAreWritten = "times_are_written",
        /// An amount is left to the records of a server only where the user wrote none.
        WrittenAmountsBind = "written_amounts_bind",
        /// A mandate is for the tool that it names.
        MandatesNameTheirTool = "mandates_name_their_tool",
        /// A mandate is used up.
        UsesAreCounted = "uses_are_counted",
        /// A target is what the mandate binds.
        TargetsAreBound = "targets_are_bound",
        /// Destinations bind one target; which of two is which is said by name.
        DestinationsAreReached = "destinations_are_reached",
        /// A member of a listing is one that was listed.
        MembersAreListed = "members_are_listed",
        /// A member that is an address is that of its record's author.
        MembersAreAuthors = "members_are_authors",
        /// A limit is no more than the mandate says.
        LimitsAreCaps = "limits_are_caps",
        /// Content that was dictated is what was dictated.
        DictatedWords = "dictated_words",
        /// What a mandate binds is in the call.
        BoundArgumentsAreThere = "bound_arguments_are_there",
        /// After untrusted text a mandate that binds nothing covers nothing.
        SomethingIsBound = "something_is_bound",
        /// A target that a mandate leaves open is the user's word or the server's handle.
        OpenTargetsAreKnown = "open_targets_are_known",
        /// A target that a mandate leaves open is chosen before untrusted text.
        OpenTargetsBeforeReading = "open_targets_before_reading",
        /// So is a limit.
        OpenLimitsBeforeReading = "open_limits_before_reading",
        /// A plain word is a target only where it names something.
        WordsNameSomething = "words_name_something",
        /// Data of a place goes to another only where a mandate says so.
        Clearance = "clearance",
        /// A few choices among what may be sent are just that; many can spell something.
        FewChoices = "few_choices",
        /// The user's words are the user's as they spelled them; another spelling can spell something.
        PlainSpelling = "plain_spelling",
        /// What a mandate dictates is what it says, not what else it covers.
        DictatedIsTheSame = "dictated_is_the_same",
        /// A choice that a mandate leaves open is made before untrusted text.
        OpenChoicesBeforeReading = "open_choices_before_reading",
        /// A listing is what an untainted planner asked for.
        ListingsBeforeReading = "listings_before_reading",
        /// An amount that a mandate leaves open is one that the user wrote.
        OpenLimitsAreWritten = "open_limits_are_written",
        /// What is taken by reference keeps its label.
        ReferencesKeepLabels = "references_keep_labels",
        /// What the planner words itself has the label of all that it has seen.
        OwnWordsAreWhatWasSeen = "own_words_are_what_was_seen",
        /// Which of the user's words are sent to a place that the user did not name tells what was seen.
        ChoosingTells = "choosing_tells",
    }
}

/// Whether a check is made.
#[cfg(not(feature = "testing"))]
#[must_use]
pub const fn holds(_: Check) -> bool {
    true
}

#[cfg(feature = "testing")]
pub use removal::{holds, remove};

#[cfg(feature = "testing")]
mod removal {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Check;

    /// The position of the check that is removed, from 1.
    static REMOVED: AtomicUsize = AtomicUsize::new(0);

    fn number(check: Check) -> usize {
        check as usize + 1
    }

    /// Takes one check away, until another or none is.
    pub fn remove(check: Option<Check>) {
        REMOVED.store(check.map_or(0, number), Ordering::SeqCst);
    }

    /// Whether a check is made.
    #[must_use]
    pub fn holds(check: Check) -> bool {
        REMOVED.load(Ordering::Relaxed) != number(check)
    }
}
