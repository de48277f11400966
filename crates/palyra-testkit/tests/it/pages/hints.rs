//! Following nothing but `next:`: from the first command to a tool that answers.

use super::shell::Shell;

/// Types what the last command proposed, until nothing is proposed any more. Returns what was typed, with the output of the last command.
fn follow(shell: &mut Shell, first: &str) -> (Vec<String>, String) {
    let mut typed = Vec::new();
    let mut ahead = vec![first.to_owned()];
    let mut last = String::new();
    while !ahead.is_empty() {
        let command = ahead.remove(0);
        let done = shell.run(&command);
        assert_eq!(done.code, 0, "`{command}`, after {typed:#?}: {}", done.output);
        let mut proposed: Vec<String> =
            done.output.lines().filter_map(|line| line.strip_prefix("next: ")).map(str::to_owned).collect();
        proposed.append(&mut ahead);
        ahead = proposed;
        typed.push(command);
        last = done.output;
        assert!(typed.len() < 20, "hints lead in circles: {typed:#?}");
    }
    (typed, last)
}

#[test]
fn hints_lead_from_a_new_skill_to_its_first_answer() {
    for (language, kind, end) in [
        ("wat", "tool", "palyra skills call acme.first.echo '{\"text\":\"example\"}'"),
        ("c", "hook", "palyra skills hooks bind run:before_tool acme.first"),
    ] {
        let mut shell = Shell::start();
        let first = format!("palyra skills new acme.first --lang {language} --kind {kind}");
        let (typed, output) = follow(&mut shell, &first);
        let verbs: Vec<_> = typed.iter().filter_map(|command| command.split(' ').nth(2)).collect();
        assert!(
            ["build", "test", "keygen", "pack", "trust", "install"].iter().all(|verb| verbs.contains(verb)),
            "{typed:#?}"
        );
        assert_eq!(typed.last().map(String::as_str), Some(end), "{typed:#?}\n{output}");
    }
}

#[test]
fn a_path_that_a_shell_would_split_is_quoted() {
    let mut shell = Shell::start();
    let made = shell.run("mkdir 'my skills' && cd 'my skills'");
    assert_eq!(made.code, 0, "{}", made.output);
    follow(&mut shell, "palyra skills new acme.first --lang wat --folder 'my first'");
}
