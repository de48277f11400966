//! What to do and where: reading the task, what was given with it and the workspace, and refusing early what cannot work.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use palyra_common::{Environment, command_line};

use super::attach;
use crate::console::{Console, StandardInput};
use crate::error::CliError;

/// Longest task. Larger material belongs into files, which a task can name.
const LARGEST_TASK: u64 = 1024 * 1024;
/// Silence on standard input after which a person is told what is waited for.
const SILENCE: Duration = Duration::from_secs(2);

/// A task and what was given with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) prompt: String,
    /// What was on standard input beside the task.
    pub(super) beside: Option<Vec<u8>>,
}

/// Where a task and what goes with it come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The arguments are the task.
    Arguments,
    /// The arguments are the task, and standard input goes with it.
    ArgumentsAndInput,
    /// Standard input is the task.
    Input,
}

/// The task from the arguments, with what was piped in beside it; or from standard input, when that is asked for or is the only
/// place it can be.
pub(super) async fn read(arguments: &[String], console: &Console) -> Result<Task, CliError> {
    let task = match source(arguments, console.input()) {
        Source::Arguments => Task { prompt: joined(arguments), beside: None },
        Source::ArgumentsAndInput => {
            let refuse = |reason| CliError::Attachment { path: "standard input".into(), reason };
            let bytes = read_input(console, attach::LARGEST).await.map_err(|error| refuse(error.to_string()))?;
            Task { prompt: joined(arguments), beside: Some(bytes).filter(|bytes| !bytes.is_empty()) }
        }
        Source::Input => {
            let refuse = |reason| CliError::TaskUnreadable { reason };
            let bytes = read_input(console, LARGEST_TASK).await.map_err(|error| refuse(error.to_string()))?;
            Task { prompt: text(bytes)?, beside: None }
        }
    };
    let prompt = task.prompt.trim();
    if prompt.is_empty() { Err(CliError::TaskEmpty) } else { Ok(Task { prompt: prompt.to_owned(), ..task }) }
}

/// The arguments as one task. An argument that a shell took as one word stays one: where it has blanks it is quoted, and in a command line also where
/// it has anything else that a shell would interpret.
fn joined(arguments: &[String]) -> String {
    let [first, rest @ ..] = arguments else { return String::new() };
    if arguments.iter().all(|word| word.trim().is_empty()) {
        return String::new();
    }
    if rest.is_empty() {
        return first.clone();
    }
    let is_command = rest.len() > 1 && ["run", "execute", "exec"].contains(&first.as_str());
    let words = rest.iter().map(|word| {
        if is_command {
            command_line([word.as_str()])
        } else if !word.contains(char::is_whitespace) {
            word.clone()
        } else if !word.contains('"') {
            format!("\"{word}\"")
        } else if !word.contains('\'') {
            format!("'{word}'")
        } else {
            command_line([word.as_str()])
        }
    });
    std::iter::once(first.clone()).chain(words).collect::<Vec<_>>().join(" ")
}

fn source(arguments: &[String], input: StandardInput) -> Source {
    match (arguments, input) {
        ([only], _) if only == "-" => Source::Input,
        ([], StandardInput::Data | StandardInput::Nothing) => Source::Input,
        ([], StandardInput::Terminal) => Source::Arguments,
        ([_, ..], StandardInput::Data) => Source::ArgumentsAndInput,
        ([_, ..], StandardInput::Terminal | StandardInput::Nothing) => Source::Arguments,
    }
}

/// Everything on standard input and one byte more than allowed, so that the excess is noticed. A pipe that nobody closes is waited for,
/// and after a while that is said.
async fn read_input(console: &Console, largest: u64) -> std::io::Result<Vec<u8>> {
    let mut reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(largest + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let read = match tokio::time::timeout(SILENCE, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            if console.is_text() {
                console.remark("reading standard input until it ends (to run without it: < /dev/null)");
            }
            reading.await
        }
    };
    read.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

fn text(bytes: Vec<u8>) -> Result<String, CliError> {
    let refuse = |reason: String| CliError::TaskUnreadable { reason };
    if bytes.len() as u64 > LARGEST_TASK {
        return Err(refuse("it is larger than 1 MiB".to_owned()));
    }
    String::from_utf8(bytes)
        .map_err(|error| refuse(format!("it is not UTF-8 at byte {}", error.utf8_error().valid_up_to())))
}

/// The workspace as an absolute path without links, which must be a directory.
pub(super) fn workspace(wanted: Option<&Path>, environment: &Environment) -> Result<String, CliError> {
    let path = environment.absolute(wanted.unwrap_or(Path::new(".")));
    let refuse = |reason: String| CliError::Workspace { path: wanted.unwrap_or(&path).to_owned(), reason };
    let real = path.canonicalize().map_err(|error| {
        refuse(match error.kind() {
            std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
            _ => error.to_string(),
        })
    })?;
    if !real.is_dir() {
        return Err(refuse("it is not a directory".to_owned()));
    }
    real.into_os_string().into_string().map_err(|_| refuse("its name is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn standard_input_is_the_task_or_goes_with_it() {
        use StandardInput::{Data, Nothing, Terminal};
        let (none, dash, task) = (words(&[]), words(&["-"]), words(&["list", "the", "files"]));
        for input in [Data, Nothing, Terminal] {
            assert_eq!(source(&dash, input), Source::Input);
        }
        assert_eq!((source(&none, Data), source(&none, Terminal)), (Source::Input, Source::Arguments));
        assert_eq!(source(&task, Data), Source::ArgumentsAndInput);
        assert_eq!((source(&task, Nothing), source(&task, Terminal)), (Source::Arguments, Source::Arguments));
    }

    #[test]
    fn what_a_shell_took_as_one_word_stays_one() {
        for (given, expected) in [
            (&["list the files"][..], "list the files"),
            (&["list", "the", "files?"], "list the files?"),
            (&["read", "my notes.txt"], "read \"my notes.txt\""),
            (&["write", "say \"hi\" now", "to", "a.txt"], "write 'say \"hi\" now' to a.txt"),
            (&["run", "grep", "x  y", "f"], "run grep 'x  y' f"),
            (&["run", "grep", "a|b", "it's"], "run grep 'a|b' 'it'\\''s'"),
            (&["run", "ls | wc -l"], "run \"ls | wc -l\""),
            (&["hello there", "friend"], "hello there friend"),
        ] {
            assert_eq!(joined(&words(given)), expected);
        }
        assert_eq!(joined(&[]), "");
    }

    #[test]
    fn a_task_must_be_text_of_reasonable_size() {
        assert_eq!(text("täsk\n".as_bytes().to_vec()).unwrap(), "täsk\n");
        let reason = |bytes: &[u8]| text(bytes.to_vec()).unwrap_err().to_string();
        assert!(reason(b"ab\xff").ends_with("it is not UTF-8 at byte 2"));
        assert!(reason(&vec![b'a'; 1024 * 1024 + 1]).ends_with("larger than 1 MiB"));
        assert_eq!(text(vec![b'a'; 1024 * 1024]).unwrap().len(), 1024 * 1024);
    }

    #[test]
    fn a_workspace_is_an_existing_directory() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let environment = Environment::default().in_directory(&root);
        assert_eq!(workspace(None, &environment).unwrap(), root.to_str().unwrap());
        let reason = |path: &str| workspace(Some(Path::new(path)), &environment).unwrap_err().to_string();
        assert_eq!(reason("nope"), "cannot use the workspace `nope`: it does not exist");
        assert_eq!(reason("file"), "cannot use the workspace `file`: it is not a directory");
    }
}
