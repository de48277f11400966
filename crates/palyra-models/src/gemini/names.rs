//! Tool names that begin as Gemini wants them: with a letter or an underscore.

use crate::wire::ToolNames;

/// Stands before a name that begins with anything else.
const LEAD: &str = "n_";

/// The name as the API accepts it.
pub(super) fn to_wire(names: &ToolNames, name: &str) -> String {
    acceptable(names.to_wire(name))
}

/// A name of the wire with a beginning that the API accepts.
pub(super) fn acceptable(wire: String) -> String {
    if begins_well(&wire) { wire } else { format!("{LEAD}{wire}") }
}

/// The name as Palyra knows it.
pub(super) fn known_as(names: &ToolNames, wire: &str) -> String {
    let led = wire.strip_prefix(LEAD).filter(|rest| !begins_well(rest));
    names.known_as(led.unwrap_or(wire))
}

fn begins_well(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let names = ToolNames::default();
        for (name, wire) in [("palyra.fs.read", "palyra__fs__read"), ("7zip.list", "n_7zip__list"), ("n_x", "n_x")] {
            assert_eq!(to_wire(&names, name), wire);
            assert_eq!(known_as(&names, wire), name);
        }
    }
}
