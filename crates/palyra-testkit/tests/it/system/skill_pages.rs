//! What the README of a new skill tells its author to type, typed as it stands. The pages of docs/ are in `pages`.

use palyra_testkit::{Run, TestContext};
use serde_json::json;

use super::skills::context;

/// The command lines of a page, as words: what is set in by four columns and begins as a command does.
fn lines(page: &str) -> Vec<Vec<String>> {
    let indented = page.lines().filter_map(|line| line.strip_prefix("    "));
    indented.filter(|line| line.starts_with("palyra ") || line.starts_with("cd ")).map(words).collect()
}

/// Words as a shell takes them, without what follows `#`.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.split("  #").next().unwrap_or_default().chars() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => quote = Some(letter),
            (' ', None) => words.push(std::mem::take(&mut word)),
            (letter, _) => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Types all of it, in this language; `None` if its compiler is not there. Returns what each command said.
fn typed(context: &TestContext, from: &str, page: &str, language: &str) -> Option<Vec<(String, Run)>> {
    let mut here = context.workspace().join(from);
    let mut said = Vec::new();
    for mut words in lines(page) {
        if let Some(named) = words.iter().position(|word| word == "--lang") {
            language.clone_into(&mut words[named + 1]);
        }
        let line = words.join(" ");
        if words[0] == "cd" {
            here.push(&words[1]);
            continue;
        }
        let run = context.run_in(&here, &words[1..]).unwrap();
        if run.stderr.contains("is not installed") {
            eprintln!("{language} was not tried: {}", run.stderr.trim());
            return None;
        }
        assert_eq!(run.code, 0, "{line}: {run}");
        said.push((line, run));
    }
    Some(said)
}

#[test]
fn the_readme_of_a_new_skill_works_as_it_stands() {
    for (language, kind) in [("wat", "tool"), ("c", "tool"), ("rust", "hook")] {
        let context = context("palyra.time.now", json!({}));
        let begun = context.run(["skills", "new", "acme.first", "--lang", language, "--kind", kind]).unwrap();
        assert_eq!(begun.code, 0, "{begun}");
        let readme = std::fs::read_to_string(context.workspace().join("acme.first/README.md")).unwrap();
        assert!(lines(&readme).len() >= 7 && !readme.contains('@'), "{readme}");
        let Some(said) = typed(&context, "acme.first", &readme, language) else { continue };
        let (line, last) = said.last().unwrap();
        assert!(
            last.stdout.contains(if kind == "hook" { "Bound hook" } else { "Ada" }) || language == "wat",
            "{line}: {last}"
        );
    }
}
