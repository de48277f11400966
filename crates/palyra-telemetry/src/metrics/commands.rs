//! Counts per command. The daemon says once which commands there are; any other name, whoever sent it, counts as `other`.

use std::time::Duration;

use super::cells::{Counter, Histogram, QUICK};
use super::family::{Cell as _, Grid, Labels, Value};
use super::labels::{CommandOutcome, Transport};

/// The name of whatever is no command.
const OTHER: &str = "other";

#[derive(Debug)]
struct PerCommand {
    name: &'static str,
    ended: Grid<Transport, CommandOutcome, Counter>,
    duration: Histogram,
}

impl PerCommand {
    fn new(name: &'static str) -> Self {
        Self { name, ended: Grid::new(("transport", "outcome"), Counter::default), duration: Histogram::new(QUICK) }
    }
}

/// All commands, sorted by name, and one for everything else.
#[derive(Debug)]
pub(crate) struct Commands {
    known: Box<[PerCommand]>,
    other: PerCommand,
}

impl Commands {
    pub(crate) fn new(names: &[&'static str]) -> Self {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.dedup();
        Self { known: names.into_iter().map(PerCommand::new).collect(), other: PerCommand::new(OTHER) }
    }

    fn of(&self, name: &str) -> &PerCommand {
        let place = self.known.binary_search_by(|command| command.name.cmp(name));
        place.ok().and_then(|place| self.known.get(place)).unwrap_or(&self.other)
    }

    /// Counts, and gives back the name under which it counted.
    pub(crate) fn ended(
        &self,
        name: &str,
        transport: Transport,
        outcome: CommandOutcome,
        duration: Duration,
    ) -> &'static str {
        let command = self.of(name);
        command.ended.with(transport, outcome, |count| count.add(1));
        command.duration.observe(duration);
        command.name
    }

    fn all(&self) -> impl Iterator<Item = &PerCommand> {
        self.known.iter().chain(std::iter::once(&self.other))
    }

    pub(crate) fn counts(&self) -> Vec<(Labels, Value)> {
        self.all()
            .flat_map(|command| {
                command.ended.samples().into_iter().map(|(mut labels, value)| {
                    labels.insert(0, ("command", command.name));
                    (labels, value)
                })
            })
            .collect()
    }

    pub(crate) fn durations(&self) -> Vec<(Labels, Value)> {
        self.all()
            .map(|command| (vec![("command", command.name)], command.duration.value()))
            .filter(|(_, value)| !value.is_untouched())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_make_no_series() {
        let commands = Commands::new(&["session.list", "run.create", "run.create"]);
        assert_eq!(commands.known.len(), 2);
        for name in ["run.create", "RUN.CREATE", "'; drop", ""] {
            commands.ended(name, Transport::Http, CommandOutcome::Ok, Duration::ZERO);
        }
        let counts = commands.counts();
        assert_eq!(counts.len(), 2);
        let of =
            |name| counts.iter().find(|(labels, _)| labels[0] == ("command", name)).map(|(_, value)| value.clone());
        assert_eq!(of("run.create"), Some(Value::Counter(1)));
        assert_eq!(of("other"), Some(Value::Counter(3)));
    }
}
