//! The remotes in a git configuration, read without git: a repository must not have anything run to say where it came from.

use super::remote::Remote;

/// The addresses of all remotes; `None` if the text cannot be understood, so that nobody knows.
pub(super) fn remotes(text: &str) -> Option<Vec<Remote>> {
    let mut found = Vec::new();
    let mut in_remote = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let mut rest = line;
        if let Some(header) = line.strip_prefix('[') {
            let (section, after) = header_end(header)?;
            let name = section.split([' ', '\t', '"', '.']).next().unwrap_or_default().to_ascii_lowercase();
            in_remote = name == "remote";
            // What is included may say anything.
            if name == "include" || name == "includeif" {
                return None;
            }
            rest = after.trim();
        }
        if !in_remote || rest.is_empty() {
            continue;
        }
        let (key, value) = rest.split_once('=').map_or((rest, ""), |(key, value)| (key.trim(), value.trim()));
        if key.eq_ignore_ascii_case("url") || key.eq_ignore_ascii_case("pushurl") {
            // A value that goes on in the next line is nothing that git or a person writes for an address.
            if value.ends_with('\\') || value.is_empty() {
                return None;
            }
            found.push(Remote::of_git(&unquoted(value)));
        }
    }
    Some(found)
}

/// Splits what follows `[` at the `]` that ends the header.
fn header_end(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some((text.get(..at)?, text.get(at + 1..)?)),
            _ => {}
        }
    }
    None
}

/// A value without quotes, and without a comment behind it.
fn unquoted(value: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for letter in value.chars() {
        match letter {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            other => out.push(other),
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<Vec<String>> {
        Some(remotes(text)?.iter().map(Remote::to_string).collect())
    }

    #[test]
    fn the_addresses_of_remotes_are_found() {
        let text = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@github.com:me/x.git\n\tfetch = +refs/heads/*\n\
                    [Remote \"a]b\"] URL = \"https://evil.example/y\" ; note\n[branch \"main\"]\n\turl = nothing\n";
        assert_eq!(shown(text).unwrap(), ["github.com/me/x", "evil.example/y"]);
        assert_eq!(shown("[core]\n\tx = y\n").unwrap(), [""; 0]);
        assert_eq!(shown("[remote.old]\nurl=https://a.example/b\n").unwrap(), ["a.example/b"]);
    }

    #[test]
    fn what_cannot_be_understood_says_nothing() {
        for text in
            ["[remote \"x", "[include]\n\tpath = other", "[remote \"x\"]\nurl = https://\\\n", "[remote \"x\"]\nurl"]
        {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
