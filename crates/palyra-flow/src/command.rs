//! Whether a person wrote a command, as a whole.
//!
//! A piece of a command is another command: without its last argument `git push --dry-run` pushes, and `rm -rf build` is more than `rm -rf build/old`.
//! So the command has to stand in the text letter by letter, case included, and end where the person ended it: at a quote, the end of the line or
//! sentence, or before a word that plainly goes on with the sentence. When in doubt it was not written.

/// Words after which a sentence goes on and a command does not.
const GOES_ON: [&str; 22] = [
    "please", "and", "then", "in", "for", "to", "on", "with", "now", "again", "here", "there", "first", "next", "so",
    "but", "because", "when", "until", "before", "after", "twice",
];

/// Whether one of the texts holds the command.
pub(crate) fn holds<'a>(texts: impl IntoIterator<Item = &'a str>, command: &str) -> bool {
    let command = command.trim();
    !command.is_empty() && texts.into_iter().any(|text| stands_in(text, command))
}

fn stands_in(text: &str, command: &str) -> bool {
    text.match_indices(command).any(|(start, _)| {
        let line = text.get(..start).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        let before = line.chars().next_back();
        let after = text.get(start + command.len()..).unwrap_or_default();
        // Inside a quote that began earlier, this is the end of something longer.
        let inside = after
            .chars()
            .next()
            .is_some_and(|next| is_quote(next) && before != Some(next) && line.matches(next).count() % 2 == 1);
        begins(before) && ends(before, after) && !inside
    })
}

fn begins(before: Option<char>) -> bool {
    before.is_none_or(|letter| letter.is_whitespace() || is_quote(letter) || "(:".contains(letter))
}

fn ends(before: Option<char>, after: &str) -> bool {
    let mut letters = after.chars();
    let Some(next) = letters.next() else { return true };
    // What was opened with a quote ends with it.
    if let Some(quote) = before.filter(|letter| is_quote(*letter)) {
        return next == quote;
    }
    if next == '\n' || next == '\r' || is_quote(next) {
        return true;
    }
    if ".,;:!?)".contains(next) {
        return letters.next().is_none_or(char::is_whitespace);
    }
    if !next.is_whitespace() {
        return false;
    }
    let line = after.lines().next().unwrap_or_default();
    let word: String = line.trim_start().chars().take_while(|letter| letter.is_alphanumeric()).collect();
    let rest = line.trim_start().strip_prefix(word.as_str()).unwrap_or_default();
    let whole = rest.chars().next().is_none_or(|letter| letter.is_whitespace() || ".,;:!?".contains(letter));
    line.trim().is_empty() || (whole && GOES_ON.contains(&word.to_lowercase().as_str()))
}

fn is_quote(letter: char) -> bool {
    "`'\"“”‘’«»".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_where_the_person_ended_it() {
        let yes = [
            ("cargo test", "cargo test"),
            ("run cargo test", "cargo test"),
            ("run `cargo test --workspace` and fix what fails", "cargo test --workspace"),
            ("Please run cargo test, then tell me.", "cargo test"),
            ("cargo test in the crate", "cargo test"),
            ("do this:\ncargo test\nand then stop", "cargo test"),
            ("is there anything that \"git status\" shows?", "git status"),
        ];
        for (text, command) in yes {
            assert!(holds([text], command), "{command} in {text}");
        }
        let no = [
            ("git push --dry-run", "git push"),
            ("run `git push origin main`", "git push"),
            ("run `git push origin main`", "push origin main"),
            ("rm -rf build/old", "rm -rf build"),
            ("rm -rf ./old", "rm -rf ."),
            ("rm -rf old stuff", "rm -rf old"),
            ("make -R", "make -r"),
            ("ls | grep x", "ls"),
            ("echo a > b", "echo a"),
            ("nothing of the kind", "ls"),
            ("tools", "ls"),
            ("run it in-place", "run it"),
            ("", "ls"),
            ("anything", ""),
        ];
        for (text, command) in no {
            assert!(!holds([text], command), "{command} in {text}");
        }
    }
}
