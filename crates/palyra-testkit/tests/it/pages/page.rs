//! A page of Markdown as a list of commands, each with what the page says that it prints.
//!
//! A fenced block `sh` holds commands. A fenced block `text` right after it holds their output, both streams together. In it `…` stands for any text within a
//! line, and a line with nothing but `…` for any number of lines; all else has to be there letter by letter.

use std::fs;
use std::path::{Path, PathBuf};

/// What stands for anything.
const ANYTHING: &str = "…";

pub(super) struct Page {
    path: PathBuf,
    lines: Vec<String>,
    pub(super) blocks: Vec<Block>,
}

/// One block of commands.
pub(super) struct Block {
    /// The line of the page that the block begins in, from 1.
    pub(super) line: usize,
    pub(super) commands: Vec<String>,
    pub(super) output: Option<Expected>,
}

/// The output that a page shows.
pub(super) struct Expected {
    /// The lines of the page that hold it, from 0, without the fences.
    place: std::ops::Range<usize>,
    lines: Vec<String>,
}

impl Page {
    /// A page of the repository, up to the heading `until` if one is given: what follows is reference and not a first step.
    pub(super) fn read(name: &str, until: Option<&str>) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let end = until.map_or(lines.len(), |heading| {
            lines.iter().position(|line| line == heading).unwrap_or_else(|| panic!("{name} has no `{heading}`"))
        });
        let blocks = blocks(&lines[..end]);
        assert!(!blocks.is_empty(), "{name} has no commands");
        Self { path, lines, blocks }
    }

    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// Writes these outputs, by block, into the page.
    pub(super) fn update(mut self, mut outputs: Vec<(usize, String)>) {
        // From the end, so that places before a change stay where they are.
        outputs.sort_by_key(|(block, _)| std::cmp::Reverse(*block));
        for (block, output) in outputs {
            let place = self.blocks[block].output.as_ref().unwrap().place.clone();
            self.lines.splice(place, output.lines().map(str::to_owned));
        }
        fs::write(&self.path, self.lines.join("\n") + "\n").unwrap();
    }
}

/// A fenced block: its language and the lines between its fences.
fn fences(lines: &[String]) -> Vec<(&str, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    for (number, line) in lines.iter().enumerate() {
        let Some(language) = line.strip_prefix("```") else { continue };
        open = match open {
            None => Some((language, number + 1)),
            Some((language, from)) => {
                found.push((language, from..number));
                None
            }
        };
    }
    assert!(open.is_none(), "a fence is not closed");
    found
}

fn blocks(lines: &[String]) -> Vec<Block> {
    let fences = fences(lines);
    let shell = fences.iter().enumerate().filter(|(_, (language, _))| *language == "sh");
    shell
        .map(|(number, (_, place))| {
            let output = fences.get(number + 1).filter(|(language, next)| {
                *language == "text" && lines[place.end + 1..next.start - 1].iter().all(|line| line.is_empty())
            });
            Block {
                line: place.start + 1,
                commands: commands(&lines[place.clone()]),
                output: output
                    .map(|(_, place)| Expected { place: place.clone(), lines: lines[place.clone()].to_vec() }),
            }
        })
        .collect()
}

/// The commands of a block; one that ends with a backslash goes on in the next line.
fn commands(lines: &[String]) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut unfinished = false;
    for line in lines {
        match commands.last_mut().filter(|_| unfinished) {
            Some(command) => *command += &format!("\n{line}"),
            None if line.trim().is_empty() || line.starts_with('#') => continue,
            None => commands.push(line.clone()),
        }
        unfinished = line.ends_with('\\');
    }
    commands
}

impl Expected {
    /// Whether a block printed what the page says.
    pub(super) fn matches(&self, output: &str) -> bool {
        let actual: Vec<&str> = output.lines().map(str::trim_end).collect();
        let expected: Vec<&str> = self.lines.iter().map(|line| line.trim_end()).collect();
        match_lines(&expected, &actual)
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

fn match_lines(expected: &[&str], actual: &[&str]) -> bool {
    match (expected, actual) {
        ([], actual) => actual.is_empty(),
        ([ANYTHING, rest @ ..], actual) => (0..=actual.len()).any(|skipped| match_lines(rest, &actual[skipped..])),
        ([line, rest @ ..], [found, left @ ..]) => match_line(line, found) && match_lines(rest, left),
        (_, []) => false,
    }
}

fn match_line(expected: &str, actual: &str) -> bool {
    match expected.split_once(ANYTHING) {
        None => expected == actual,
        Some((before, after)) => actual.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.into_iter().any(|at| match_line(after, &rest[at..]))
        }),
    }
}

/// An output with what differs from time to time hidden, as a beginning for whoever edits the page.
pub(super) fn masked(output: &str) -> String {
    let patterns = [
        r"\b[0-9A-HJKMNP-TV-Z]{26}\b",
        r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?",
        r"\b\d+(\.\d+)? (ms|s|min)\b",
        r"\bsha256:[0-9a-f]{64}\b",
        r"/\S*palyra-page-[^/\s]*",
    ];
    let mut text = output.to_owned();
    for pattern in patterns {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, ANYTHING).into_owned();
    }
    text
}

#[test]
fn a_page_is_cut_into_commands_and_outputs() {
    let text = "# T\n```sh\n# a remark\nfirst \\\n  more\nsecond   # why\n```\n\n```text\nout …\n```\nprose\n```text\nother\n```\n```sh\nthird\n```";
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let blocks = blocks(&lines);
    let commands: Vec<_> = blocks.iter().map(|block| block.commands.clone()).collect();
    assert_eq!(commands, [vec!["first \\\n  more", "second   # why"], vec!["third"]]);
    assert!(blocks[0].output.as_ref().unwrap().matches("out and about\n"));
    assert!(blocks[1].output.is_none());
}

#[test]
fn dots_stand_for_anything_and_all_else_for_itself() {
    let matches = |expected: &str, actual: &str| {
        match_lines(&expected.lines().collect::<Vec<_>>(), &actual.lines().collect::<Vec<_>>())
    };
    for (expected, actual) in
        [("a", "a"), ("a…c", "abc"), ("a …", "a "), ("…", ""), ("…\nb\n…", "a\nb"), ("…x…", "axb")]
    {
        assert!(matches(expected, actual), "{expected} {actual}");
    }
    for (expected, actual) in [("a", "b"), ("a", "a\nb"), ("a\nb", "a"), ("…\nb", "b\nc"), ("a…c", "abd")] {
        assert!(!matches(expected, actual), "{expected} {actual}");
    }
}
