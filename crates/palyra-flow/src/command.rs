//! Whether a person wrote a command, as a whole.
//!
//! A piece of a command is another command: without its last argument `git push --dry-run` pushes, and `rm -rf build` is more than `rm -rf build/old`.
//! So the words of the command have to stand in the text one after the other, case included, and end where the person ended them: at a quote, the end of
//! the line or sentence, or before a word that plainly goes on with the sentence. When in doubt it was not written.
//!
//! Words are read as a shell reads them: quotes, backslashes and the number of blanks do not matter, so `grep "Water" notes.md` and `grep Water notes.md` are
//! one command. Nothing is expanded. INVARIANT: what a shell would take for an operator or a comment is never part of a word, because as an argument it
//! would mean something else: `rm -rf build > log` must not become the removal of `log`.

/// Words after which a sentence goes on and a command does not.
const GOES_ON: [&str; 22] = [
    "please", "and", "then", "in", "for", "to", "on", "with", "now", "again", "here", "there", "first", "next", "so",
    "but", "because", "when", "until", "before", "after", "twice",
];

/// Whether one of the texts holds a command line with exactly these words.
pub(crate) fn holds<'a>(texts: impl IntoIterator<Item = &'a str>, words: &[&str]) -> bool {
    let named = words.first().is_some_and(|program| !program.trim().is_empty());
    named && texts.into_iter().any(|text| stands_in(text, |rest, close| after_words(rest, words, close)))
}

/// Whether one of the texts holds a script letter by letter.
pub(crate) fn holds_script<'a>(texts: impl IntoIterator<Item = &'a str>, script: &str) -> bool {
    let script = script.trim();
    !script.is_empty() && texts.into_iter().any(|text| stands_in(text, |rest, _| rest.strip_prefix(script)))
}

/// Whether something begins and ends in the text as a command does. `after` gives what follows it at a place, given the quote that would end it there.
fn stands_in<'t>(text: &'t str, after: impl Fn(&'t str, Option<char>) -> Option<&'t str>) -> bool {
    text.char_indices().any(|(start, first)| {
        if first.is_whitespace() {
            return false;
        }
        let earlier = text.get(..start).unwrap_or_default();
        let before = earlier.chars().next_back().filter(|letter| *letter != '\n');
        if !begins(before) {
            return false;
        }
        let Some(after) = text.get(start..).and_then(|rest| after(rest, before.and_then(closing))) else {
            return false;
        };
        let line = earlier.rsplit('\n').next().unwrap_or_default();
        // Inside a quote that began earlier, this is the end of something longer.
        let inside = after.chars().next().is_some_and(|next| {
            is_quote(next) && before.and_then(closing) != Some(next) && line.matches(next).count() % 2 == 1
        });
        ends(before, after) && !inside
    })
}

/// What follows the words, if the text begins with them.
fn after_words<'t>(text: &'t str, words: &[&str], close: Option<char>) -> Option<&'t str> {
    let mut rest = text;
    for (position, word) in words.iter().enumerate() {
        if position > 0 {
            rest = after_blanks(rest)?;
        }
        rest = after_word(rest, word, close)?;
    }
    Some(rest)
}

/// What follows one or more blanks; a line that a backslash continues is one line.
fn after_blanks(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let next = rest.trim_start_matches([' ', '\t']);
        let next = next.strip_prefix("\\\n").unwrap_or(next);
        if next.len() == rest.len() {
            return (rest.len() < text.len()).then_some(rest);
        }
        rest = next;
    }
}

/// What follows a word as a shell reads it. `close` is the quote that the whole command stands in.
fn after_word<'t>(text: &'t str, wanted: &str, close: Option<char>) -> Option<&'t str> {
    let mut rest = text;
    let mut left = wanted;
    let mut begun = false;
    // The letter before, if it stood outside of quotes.
    let mut previous: Option<char> = None;
    loop {
        if begun && left.is_empty() {
            return Some(rest);
        }
        let letter = rest.chars().next().filter(|letter| Some(*letter) != close)?;
        let tail = rest.get(letter.len_utf8()..)?;
        (left, rest) = match letter {
            // After a letter this is an apostrophe: `user's build, don't touch src` quotes nothing.
            '\'' | '"' if previous.is_some_and(char::is_alphanumeric) => return None,
            '\'' => {
                let (inside, after) = tail.split_once('\'')?;
                (left.strip_prefix(inside)?, after)
            }
            '"' => after_double_quoted(tail, left)?,
            '\\' => {
                let escaped = tail.chars().next()?;
                (left.strip_prefix(escaped)?, tail.get(escaped.len_utf8()..)?)
            }
            '#' if !begun => return None,
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '`' => return None,
            blank if blank.is_whitespace() => return None,
            plain => (left.strip_prefix(plain)?, tail),
        };
        begun = true;
        previous = (!matches!(letter, '\'' | '"' | '\\')).then_some(letter);
    }
}

/// What is left of the wanted word, and of the text, after the inside of double quotes.
fn after_double_quoted<'t, 'w>(text: &'t str, wanted: &'w str) -> Option<(&'w str, &'t str)> {
    let (mut rest, mut left) = (text, wanted);
    loop {
        let letter = rest.chars().next()?;
        let tail = rest.get(letter.len_utf8()..)?;
        let escaped = tail.chars().next().filter(|next| letter == '\\' && "$`\"\\".contains(*next));
        (left, rest) = match (letter, escaped) {
            ('"', _) => return Some((left, tail)),
            (_, Some(escaped)) => (left.strip_prefix(escaped)?, tail.get(escaped.len_utf8()..)?),
            (plain, None) => (left.strip_prefix(plain)?, tail),
        };
    }
}

fn begins(before: Option<char>) -> bool {
    before.is_none_or(|letter| letter.is_whitespace() || is_quote(letter) || "(:".contains(letter))
}

fn ends(before: Option<char>, after: &str) -> bool {
    let mut letters = after.chars();
    let Some(next) = letters.next() else { return true };
    // What was opened with a quote ends with it.
    if let Some(close) = before.and_then(closing) {
        return next == close;
    }
    // To a shell these would go on with the last word.
    if next == '"' || next == '\'' {
        return false;
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

/// The quote that ends what this one opened.
fn closing(quote: char) -> Option<char> {
    match quote {
        '“' => Some('”'),
        '‘' => Some('’'),
        '«' => Some('»'),
        other => is_quote(other).then_some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        line.split(' ').filter(|word| !word.is_empty()).collect()
    }

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
            ("run “git status” for me", "git status"),
        ];
        for (text, command) in yes {
            assert!(holds([text], &words(command)), "{command} in {text}");
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
            assert!(!holds([text], &words(command)), "{command} in {text}");
        }
    }

    #[test]
    fn quotes_and_blanks_are_read_as_a_shell_reads_them() {
        let yes: &[(&str, &[&str])] = &[
            ("run grep \"Water\" notes.md", &["grep", "Water", "notes.md"]),
            ("run grep  Water   notes.md", &["grep", "Water", "notes.md"]),
            ("run grep 'still water' notes.md", &["grep", "still water", "notes.md"]),
            ("run grep still\\ water notes.md", &["grep", "still water", "notes.md"]),
            ("run grep \"a \\\"b\\\" $c\" x", &["grep", "a \"b\" $c", "x"]),
            ("run `grep \"Water\" notes.md`", &["grep", "Water", "notes.md"]),
            ("run 'grep \"Water\" notes.md'", &["grep", "Water", "notes.md"]),
            ("run printf '%s|%s' a ''", &["printf", "%s|%s", "a", ""]),
            ("run ls *.md", &["ls", "*.md"]),
            ("run cargo \\\n  test", &["cargo", "test"]),
            ("run echo \"a\"'b'c", &["echo", "abc"]),
        ];
        for (text, argv) in yes {
            assert!(holds([*text], argv), "{argv:?} in {text}");
        }
        let no: &[(&str, &[&str])] = &[
            ("run grep \"Water\" notes.md", &["grep", "water", "notes.md"]),
            ("run grep \"Water\" notes.md", &["grep", "Water"]),
            ("run grep \"Water notes.md\"", &["grep", "Water", "notes.md"]),
            ("run grep Water notes.md", &["grep", "Water notes.md"]),
            ("run rm a\nb", &["rm", "a", "b"]),
            // What a shell would not hand to the program.
            ("run rm -rf build > log", &["rm", "-rf", "build", ">", "log"]),
            ("run rm -rf build >log", &["rm", "-rf", "build", ">log"]),
            ("run rm -rf build; ls src", &["rm", "-rf", "build;", "ls", "src"]),
            ("run rm -rf build;ls src", &["rm", "-rf", "build;ls", "src"]),
            ("run rm -rf build && echo done", &["rm", "-rf", "build", "&&", "echo", "done"]),
            ("run rm -rf build # not src", &["rm", "-rf", "build", "#", "not", "src"]),
            ("run echo $(cat x)", &["echo", "$(cat", "x)"]),
            // The end of something longer.
            ("run sh -c \"git status; rm -rf x\"", &["rm", "-rf", "x"]),
            ("run sh -c \"git status; rm -rf x\"", &["git", "status"]),
            ("run echo x\"y\"", &["echo", "x"]),
            // Apostrophes are no quotes.
            ("run rm -rf user's build, don't touch src", &["rm", "-rf", "users build, dont", "touch", "src"]),
            ("run echo 'x", &["echo", "x"]),
            ("run", &[""]),
        ];
        for (text, argv) in no {
            assert!(!holds([*text], argv), "{argv:?} in {text}");
        }
    }

    #[test]
    fn a_script_has_to_stand_there_letter_by_letter() {
        for text in ["run cat a | wc -l", "run `cat a | wc -l` please", "cat a | wc -l"] {
            assert!(holds_script([text], "cat a | wc -l"), "{text}");
        }
        for text in ["run cat a  | wc -l", "run cat a | wc -l -c", "run xcat a | wc -l", "cat a"] {
            assert!(!holds_script([text], "cat a | wc -l"), "{text}");
        }
    }

    proptest::proptest! {
        /// Whatever is taken for the person's own is what a shell would make of the line.
        #[test]
        fn only_what_a_shell_would_run_is_the_persons_own(text in "[ab'\"\\\\ |;>#$]{0,16}", cut in 0_usize..6) {
            let parsed = shlex::split(&text).unwrap_or_default();
            let argv: Vec<&str> = parsed.iter().map(String::as_str).take(cut).collect();
            if holds([text.as_str()], &argv) {
                // Some stretch of the text, read by a shell, gives exactly these words.
                let stretches = text.char_indices().flat_map(|(start, _)| {
                    let text = &text;
                    (start + 1..=text.len()).filter_map(move |end| text.get(start..end))
                });
                let mut read = stretches.filter_map(shlex::split);
                proptest::prop_assert!(read.any(|words| words == argv), "{argv:?} in {text:?}");
            }
        }
    }
}
