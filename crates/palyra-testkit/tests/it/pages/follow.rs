//! Follows a page: types its commands in order, compares what they print, and then types every command that the programs themselves proposed.

use std::collections::BTreeMap;

use super::page::{Page, masked};
use super::shell::{Shell, Typed};

/// Set to write what the programs print into the pages, instead of failing where they differ.
const UPDATE: &str = "PALYRA_UPDATE_PAGES";
/// Where a daemon listens unless it is told otherwise; the daemon of a test has a free port.
const USUAL_ADDRESS: &str = "127.0.0.1:7142";

/// What happens before a command of the page, such as starting a server that the reader would have.
type Preparation = Box<dyn FnOnce(&mut Shell)>;

/// What one command proposed, and where it was typed.
struct Hints {
    place: String,
    commands: Vec<String>,
}

pub(super) struct Follow {
    page: Page,
    shell: Shell,
    left_out: BTreeMap<&'static str, &'static str>,
    preparations: BTreeMap<&'static str, Preparation>,
}

impl Follow {
    pub(super) fn new(page: Page) -> Self {
        Self { page, shell: Shell::start(), left_out: BTreeMap::new(), preparations: BTreeMap::new() }
    }

    /// A command that is not typed, and why. Both are said in the test's output.
    pub(super) fn leave_out(mut self, command: &'static str, why: &'static str) -> Self {
        self.left_out.insert(command, why);
        self
    }

    /// Does something right before a command is typed.
    pub(super) fn before(mut self, command: &'static str, prepare: impl FnOnce(&mut Shell) + 'static) -> Self {
        self.preparations.insert(command, Box::new(prepare));
        self
    }

    /// Types all of it, and then the hints.
    pub(super) fn follow(mut self) {
        let mut mistakes = Vec::new();
        let mut differing = Vec::new();
        let mut hints = Vec::new();
        let mut typed = Vec::new();
        let blocks: Vec<_> = self.page.blocks.iter().map(|block| (block.line, block.commands.clone())).collect();
        for (number, (line, commands)) in blocks.into_iter().enumerate() {
            let mut output = String::new();
            for command in commands {
                let known = bare(&command);
                if let Some(why) = self.left_out.remove(known) {
                    println!("left out: `{known}`: {why}");
                    continue;
                }
                if let Some(prepare) = self.preparations.remove(known) {
                    prepare(&mut self.shell);
                }
                let done = self.type_in(&command);
                if done.code != 0 {
                    let place = format!("{}:{line}", self.page.name());
                    mistakes.push(format!("{place}: `{known}` ended with {}:\n{}", done.code, done.output));
                }
                let proposed = proposed(&done.output);
                if !proposed.is_empty() {
                    let place = self.shell.run("pwd").output.trim().to_owned();
                    hints.push(Hints { place, commands: proposed });
                }
                typed.push(known.to_owned());
                output += &done.output;
            }
            let Some(expected) = &self.page.blocks[number].output else { continue };
            if !expected.matches(&output) {
                let place = format!("{}:{line}", self.page.name());
                mistakes.push(format!(
                    "{place} prints something else.\n--- the page\n{expected}--- the programs\n{output}"
                ));
                differing.push((number, masked(&output)));
            }
        }
        let forgotten = self.left_out.keys().chain(self.preparations.keys());
        mistakes.extend(forgotten.map(|command| format!("the page has no `{command}`")));
        mistakes.extend(self.follow_hints(hints, &typed));
        if std::env::var_os(UPDATE).is_some() && !differing.is_empty() {
            let name = self.page.name();
            self.page.update(differing);
            panic!("{name} was written; look at the difference");
        }
        assert!(mistakes.is_empty(), "{}\nto take the output over: {UPDATE}=1", mistakes.join("\n\n"));
    }

    fn type_in(&mut self, command: &str) -> Typed {
        if command.contains(USUAL_ADDRESS) {
            let address = self.shell.daemon_address();
            return self.shell.run(&command.replace(USUAL_ADDRESS, &address));
        }
        self.shell.run(command)
    }

    /// Types what was proposed and not typed yet, where it was proposed, the newest output first, so that what builds on something is undone before it. Each
    /// has to work as it was printed.
    fn follow_hints(&mut self, hints: Vec<Hints>, typed: &[String]) -> Vec<String> {
        let mut done: Vec<String> = typed.to_vec();
        let mut mistakes = Vec::new();
        let newest_first = hints.into_iter().rev();
        for (place, hint) in newest_first
            .flat_map(|Hints { place, commands }| commands.into_iter().map(move |hint| (place.clone(), hint)))
        {
            if done.contains(&hint) {
                continue;
            }
            self.shell.run(&format!("cd '{place}'"));
            let tried = self.shell.run(&hint);
            // What the page itself has undone cannot be undone again, and says so.
            let undone = hint.starts_with("palyra runs undo ") && tried.output.contains("[cannot_undo]");
            if tried.code != 0 && !undone {
                mistakes.push(format!("the hint `{hint}` ended with {}:\n{}", tried.code, tried.output));
            }
            done.push(hint);
        }
        println!("hints followed: {}", done.len() - typed.len());
        mistakes
    }
}

/// A command without its remark.
fn bare(command: &str) -> &str {
    command.split("  #").next().unwrap_or(command).trim()
}

/// What stands before a command that the reader is to type.
const LEAD_INS: [&str; 4] = ["next: ", "then: ", "to try it: ", "type: "];

/// The commands that an output tells its reader to type: at the end of a line, or in a list, with a remark after two spaces.
fn proposed(output: &str) -> Vec<String> {
    let command = |line: &str| {
        let led_in = LEAD_INS.iter().find_map(|words| Some(line.split_once(words)?.1));
        let said = led_in.or_else(|| line.strip_prefix("  ")).filter(|said| said.starts_with("palyra "))?;
        Some(said.split("  ").next().unwrap_or(said).trim().to_owned())
    };
    output.lines().filter_map(command).collect()
}

#[test]
fn hints_are_read_out_of_an_output() {
    let output = "done\nnext: palyra skills build hello\nwhere to look next:\n  palyra runs show 01  the answer\n  palyra journal verify     check\n\
                  note: it is used from now on; to try it: palyra models test\nnext: the rest\n";
    let hints = ["palyra skills build hello", "palyra runs show 01", "palyra journal verify", "palyra models test"];
    assert_eq!(proposed(output), hints);
}
