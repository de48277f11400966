//! Git configuration: whether a change of it can have git execute something, or send something elsewhere.
//!
//! The file is read as git reads it. Variables that are known to do neither are listed; every other one counts, and so does a file that cannot be read. A remote is a place that a
//! person's next push goes to, so a new one counts, too. [`named`] says which files of the workspace a configuration makes git execute or read.

use std::collections::{BTreeMap, BTreeSet};

use super::Held;

/// One variable: section and name in small letters, subsection as it is written, and the value.
type Variable = (String, Option<String>, String, String);

/// Sections all of whose variables are harmless.
const HARMLESS_SECTIONS: [&str; 14] = [
    "advice",
    "author",
    "color",
    "column",
    "committer",
    "feature",
    "index",
    "log",
    "notes",
    "pack",
    "stash",
    "status",
    "tag",
    "user",
];

/// Single variables that are harmless, as section and name.
const HARMLESS: [(&str, &str); 40] = [
    ("branch", "description"),
    ("branch", "merge"),
    ("branch", "rebase"),
    ("branch", "vscode-merge-base"),
    ("commit", "gpgsign"),
    ("commit", "status"),
    ("commit", "verbose"),
    ("core", "abbrev"),
    ("core", "autocrlf"),
    ("core", "bare"),
    ("core", "bigfilethreshold"),
    ("core", "commentchar"),
    ("core", "eol"),
    ("core", "filemode"),
    ("core", "ignorecase"),
    ("core", "logallrefupdates"),
    ("core", "precomposeunicode"),
    ("core", "quotepath"),
    ("core", "repositoryformatversion"),
    ("core", "safecrlf"),
    ("core", "sparsecheckout"),
    ("core", "symlinks"),
    ("core", "untrackedcache"),
    ("core", "whitespace"),
    ("extensions", "objectformat"),
    ("extensions", "refstorage"),
    ("fetch", "prune"),
    ("format", "pretty"),
    ("gc", "auto"),
    ("init", "defaultbranch"),
    ("merge", "conflictstyle"),
    ("merge", "ff"),
    ("pull", "ff"),
    ("pull", "rebase"),
    ("push", "autosetupremote"),
    ("rebase", "autosquash"),
    ("rebase", "autostash"),
    ("remote", "fetch"),
    ("remote", "prune"),
    ("rerere", "enabled"),
];

/// Variables whose values name no program, no directory of programs and no other configuration, beside the harmless ones.
const NAMES_NOTHING: [&str; 10] =
    ["branch", "extensions", "http", "lfs", "mailmap", "remote", "safe", "submodule", "url", "blame"];

/// Whether git may do something else after the change that it could not be made to before.
pub(super) fn takes_effect(before: Held<'_>, after: Held<'_>) -> bool {
    let old = match before {
        Held::Nothing => Vec::new(),
        // What was there and cannot be read says nothing about what is new.
        Held::File(bytes) => parse(bytes).unwrap_or_default(),
        Held::Unknown => Vec::new(),
    };
    let Held::File(bytes) = after else { return after == Held::Unknown };
    let Some(new) = parse(bytes) else { return true };
    let remotes: BTreeSet<&str> = old
        .iter()
        .filter(|(section, _, name, _)| section == "remote" && name == "url")
        .filter_map(subsection)
        .collect();
    let (old, new) = (by_name(&old), by_name(&new));
    let is_new = new.iter().any(|(name, values)| {
        let had = old.get(name).map(Vec::as_slice).unwrap_or_default();
        had != values.as_slice() && values.iter().any(|value| counts(*name, value, &remotes))
    });
    is_new || old.keys().any(|name| !new.contains_key(name) && counts_when_gone(*name))
}

/// Section, subsection and name of a variable.
type Name<'a> = (&'a str, Option<&'a str>, &'a str);

fn subsection((_, subsection, _, _): &Variable) -> Option<&str> {
    subsection.as_deref()
}

/// The values of each variable in order: of several, git takes the last or all of them.
fn by_name(variables: &[Variable]) -> BTreeMap<Name<'_>, Vec<&str>> {
    let mut names: BTreeMap<Name<'_>, Vec<&str>> = BTreeMap::new();
    for (section, subsection, name, value) in variables {
        names.entry((section, subsection.as_deref(), name)).or_default().push(value);
    }
    names
}

fn is_harmless(section: &str, name: &str) -> bool {
    HARMLESS_SECTIONS.contains(&section) || HARMLESS.contains(&(section, name))
}

/// Whether a value that is new may have git execute something or send something elsewhere; `remotes` are those that there were.
fn counts((section, _, name): Name<'_>, value: &str, remotes: &BTreeSet<&str>) -> bool {
    match (section, name) {
        // Where there is one remote, git pushes there without being told. Of several, this chooses one.
        ("branch", "remote") => value != "." && !(remotes.len() == 1 && remotes.contains(value)),
        (section, name) => !is_harmless(section, name),
    }
}

/// Whether git may do something else because a variable is gone: what replaced an address, or a directory of hooks, does so no more.
fn counts_when_gone((section, _, name): Name<'_>) -> bool {
    match (section, name) {
        ("branch" | "alias" | "submodule", _) => false,
        ("remote", name) => name == "pushurl",
        (section, name) => !is_harmless(section, name),
    }
}

/// What a configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    /// Another configuration.
    Configuration(String),
    /// A directory of programs that git executes.
    Hooks(String),
    /// A command that git has a shell carry out.
    Command(String),
    /// Where the working tree is.
    WorkingTree(String),
}

/// All that a configuration names; nothing if git would not read it.
pub(super) fn named(bytes: &[u8]) -> Vec<Named> {
    let named = |(section, _, name, value): Variable| match (section.as_str(), name.as_str()) {
        ("include" | "includeif", "path") => Some(Named::Configuration(value)),
        ("core", "hookspath") | ("init", "templatedir") => Some(Named::Hooks(value)),
        ("core", "worktree") => Some(Named::WorkingTree(value)),
        ("core", "excludesfile") | ("commit", "template") => None,
        // Another word for one of git's own commands.
        ("alias", _) if !value.starts_with('!') => None,
        (section, name) if is_harmless(section, name) || NAMES_NOTHING.contains(&section) => None,
        _ => Some(Named::Command(value)),
    };
    parse(bytes).unwrap_or_default().into_iter().filter_map(named).collect()
}

/// Reads a configuration file; `None` if git would not.
fn parse(bytes: &[u8]) -> Option<Vec<Variable>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut letters = Letters { rest: text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable() };
    let mut variables = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    loop {
        letters.skip(char::is_whitespace);
        match letters.rest.peek().copied() {
            None => return Some(variables),
            Some('#' | ';') => letters.skip(|letter| letter != '\n'),
            Some('[') => {
                letters.rest.next();
                section = Some(letters.section()?);
            }
            Some(letter) if letter.is_ascii_alphabetic() => {
                let (section, subsection) = section.clone()?;
                let (name, value) = letters.variable()?;
                variables.push((section, subsection, name, value));
            }
            Some(_) => return None,
        }
    }
}

struct Letters<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Letters<'_> {
    fn skip(&mut self, is: impl Fn(char) -> bool) {
        while self.rest.next_if(|letter| is(*letter)).is_some() {}
    }

    /// What follows `[`: a name, or a name with a subsection in quotes, or the old form with a dot.
    fn section(&mut self) -> Option<(String, Option<String>)> {
        let mut name = String::new();
        loop {
            match self.rest.next()? {
                ']' => {
                    let name = name.to_ascii_lowercase();
                    return Some(match name.split_once('.') {
                        Some((section, subsection)) => (section.to_owned(), Some(subsection.to_owned())),
                        None => (name, None),
                    });
                }
                letter if letter.is_ascii_alphanumeric() || letter == '-' || letter == '.' => name.push(letter),
                ' ' | '\t' if !name.is_empty() => {
                    self.skip(|letter| letter == ' ' || letter == '\t');
                    let subsection = self.quoted()?;
                    return (self.rest.next()? == ']').then(|| (name.to_ascii_lowercase(), Some(subsection)));
                }
                _ => return None,
            }
        }
    }

    fn quoted(&mut self) -> Option<String> {
        if self.rest.next()? != '"' {
            return None;
        }
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                '"' => return Some(text),
                '\\' => text.push(self.rest.next()?),
                '\n' => return None,
                letter => text.push(letter),
            }
        }
    }

    fn variable(&mut self) -> Option<(String, String)> {
        let mut name = String::new();
        while let Some(letter) = self.rest.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '-') {
            name.push(letter.to_ascii_lowercase());
        }
        self.skip(|letter| letter == ' ' || letter == '\t' || letter == '\r');
        match self.rest.peek().copied() {
            // No value is `true`.
            None | Some('\n' | '#' | ';') => Some((name, "true".to_owned())),
            Some('=') => {
                self.rest.next();
                Some((name, self.value()?))
            }
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        self.skip(|letter| letter == ' ' || letter == '\t');
        let (mut value, mut in_quotes, mut blanks) = (String::new(), false, String::new());
        loop {
            let Some(letter) = self.rest.next() else { return (!in_quotes).then_some(value) };
            match letter {
                '\n' if in_quotes => return None,
                '\n' => return Some(value),
                '#' | ';' if !in_quotes => {
                    self.skip(|letter| letter != '\n');
                    return Some(value);
                }
                '"' => {
                    value.push_str(&std::mem::take(&mut blanks));
                    in_quotes = !in_quotes;
                }
                ' ' | '\t' | '\r' if !in_quotes => blanks.push(letter),
                '\\' => {
                    value.push_str(&std::mem::take(&mut blanks));
                    match self.rest.next()? {
                        '\n' => {}
                        '\r' => drop(self.rest.next_if_eq(&'\n')),
                        'n' => value.push('\n'),
                        't' => value.push('\t'),
                        'b' => drop(value.pop()),
                        letter @ ('"' | '\\') => value.push(letter),
                        _ => return None,
                    }
                }
                letter => {
                    value.push_str(&std::mem::take(&mut blanks));
                    value.push(letter);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str =
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

    fn effect(before: &str, after: &str) -> bool {
        takes_effect(Held::File(before.as_bytes()), Held::File(after.as_bytes()))
    }

    #[test]
    fn it_is_read_as_git_reads_it() {
        let text = "; comment\n[Core]\n\tEditor = \"vi # not a comment\" # one\n[remote \"a \\\"b\\\"\"] url = x\\\n  y\n[alias]co\n[branch.Main]\nmerge = a  b  ;c\n";
        let expected = [
            ("core", None, "editor", "vi # not a comment"),
            ("remote", Some("a \"b\""), "url", "x  y"),
            ("alias", None, "co", "true"),
            ("branch", Some("main"), "merge", "a  b"),
        ];
        let expected = expected.map(|(section, sub, name, value)| {
            (section.to_owned(), sub.map(str::to_owned), name.to_owned(), value.to_owned())
        });
        assert_eq!(parse(text.as_bytes()).unwrap(), expected);
        for broken in
            ["[core", "x = y", "[core]\n\t= x", "[core]\na = \"x\n", "[core]\na = \\q", "[core]\n?", "[a \"b]"]
        {
            assert_eq!(parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn what_git_executes_counts_and_what_it_only_keeps_does_not() {
        assert!(!takes_effect(Held::Nothing, Held::File(NEW.as_bytes())), "a repository that was made");
        for harmless in [
            "[user]\n\tname = Ada\n",
            "[branch \"main\"]\n\tremote = .\n\tmerge = refs/heads/main\n",
            "[commit]\n\tgpgsign = false\n",
        ] {
            assert!(!effect(NEW, &format!("{NEW}{harmless}")), "{harmless}");
        }
        for executes in [
            "[core]\n\thooksPath = /tmp/x\n",
            "[CORE]\n\tfsmonitor = evil\n",
            "[core] sshCommand = evil\n",
            "[alias]\n\tst = !evil\n",
            "[filter \"x\"]\n\tclean = evil\n",
            "[diff]\n\texternal = evil\n",
            "[include]\n\tpath = ../evil\n",
            "[includeIf \"gitdir:/\"]\n\tpath = evil\n",
            "[credential]\n\thelper = !evil\n",
            "[url \"https://evil.example/\"]\n\tinsteadOf = https://example.org/\n",
            "[remote \"origin\"]\n\turl = ext::sh -c evil\n",
            "[remote \"backup\"]\n\turl = https://evil.example/a.git\n\tfetch = +refs/heads/*:refs/remotes/backup/*\n",
            "[branch \"main\"]\n\tremote = https://evil.example/a.git\n",
            "[branch \"main\"]\n\tremote = backup\n",
            "[branch \"main\"]\n\tpushRemote = backup\n",
            "[remote]\n\tpushDefault = backup\n",
            "[push]\n\tdefault = matching\n",
            "[credential \"https://example.org\"]\n\thelper = store\n",
            "[url \"https://evil.example/\"]\n\tpushInsteadOf = https://example.org/\n",
            "[format]\n\tto = eve@evil.example\n",
            "[remote \"origin\"]\n\tpushurl = https://evil.example/\n",
            "[a-section-nobody-knows]\n\tx = y\n",
            "[core\n",
        ] {
            assert!(effect(NEW, &format!("{NEW}{executes}")), "{executes}");
        }
        let with = format!("{NEW}[core]\n\tpager = less\n[remote \"o\"]\n\turl = a\n");
        assert!(!effect(&with, &with), "what was there before is not this run's");
        assert!(effect(&with, &with.replace("url = a", "url = b")), "what was meant for one place goes to another");
        assert!(takes_effect(Held::Nothing, Held::Unknown));
    }

    #[test]
    fn a_push_goes_where_it_went_before() {
        let one = format!("{NEW}[remote \"origin\"]\n\turl = https://example.org/a\n");
        let two = format!("{one}[remote \"public\"]\n\turl = https://example.org/b\n");
        let tracks = |remote: &str| format!("[branch \"x\"]\n\tremote = {remote}\n\tmerge = refs/heads/x\n");
        assert!(!effect(&one, &format!("{one}{}", tracks("origin"))), "the only remote there is");
        assert!(effect(&two, &format!("{two}{}", tracks("public"))), "one of several");
        assert!(effect(&one, &format!("{two}{}", tracks("origin"))), "a new remote");
        assert!(effect(&one, &one.replace("example.org", "evil.example")));
        let tracking = format!("{one}{}", tracks("origin"));
        assert!(!effect(&tracking, &one), "a branch that is gone");
        let rewritten = format!("{one}[url \"https://mirror.example/\"]\n\tinsteadOf = https://example.org/\n");
        assert!(effect(&rewritten, &one), "an address that is replaced no more");
    }

    #[test]
    fn what_a_configuration_names_is_found() {
        let text = "[core]\n\thooksPath = tools/my hooks\n\teditor = vi\n\tworktree = ../x\n[include]\n\tpath = ../more\n[filter \"x\"]\n\tclean = tools/clean.sh %f\n[alias]\n\tl = log --oneline\n\
                    [remote \"o\"]\n\turl = ./other\n[user]\n\tname = docs\n";
        let expected = [
            Named::Hooks("tools/my hooks".to_owned()),
            Named::Command("vi".to_owned()),
            Named::WorkingTree("../x".to_owned()),
            Named::Configuration("../more".to_owned()),
            Named::Command("tools/clean.sh %f".to_owned()),
        ];
        assert_eq!(named(text.as_bytes()), expected);
    }
}
