//! What to do and where: reading the task and the workspace, and refusing early what cannot work.

use std::io::Read;
use std::path::Path;

use palyra_common::Environment;

use crate::console::Input;
use crate::error::CliError;

/// Longest task. Larger material belongs into files, which a task can name.
const LARGEST_TASK: u64 = 1024 * 1024;

/// The task from the arguments, or from standard input when that is asked for or is the only place it can be.
pub(super) fn read(arguments: &[String], input: Input) -> Result<String, CliError> {
    let from_input = match arguments {
        [only] => only == "-",
        [] => input == Input::Piped,
        _ => false,
    };
    let task = if from_input { read_all(std::io::stdin().lock())? } else { arguments.join(" ") };
    let task = task.trim();
    if task.is_empty() { Err(CliError::TaskEmpty) } else { Ok(task.to_owned()) }
}

fn read_all(input: impl Read) -> Result<String, CliError> {
    let refuse = |reason: String| CliError::TaskUnreadable { reason };
    let mut bytes = Vec::new();
    input.take(LARGEST_TASK + 1).read_to_end(&mut bytes).map_err(|error| refuse(error.to_string()))?;
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
    fn words_become_one_task() {
        assert_eq!(read(&words(&["list", "the", "files"]), Input::Terminal).unwrap(), "list the files");
        assert_eq!(read(&words(&[" a task "]), Input::Piped).unwrap(), "a task");
        assert!(matches!(read(&[], Input::Terminal), Err(CliError::TaskEmpty)));
        assert!(matches!(read(&words(&["", " "]), Input::Terminal), Err(CliError::TaskEmpty)));
    }

    #[test]
    fn standard_input_must_be_text_of_reasonable_size() {
        assert_eq!(read_all("täsk\n".as_bytes()).unwrap(), "täsk\n");
        let reason = |bytes: &[u8]| read_all(bytes).unwrap_err().to_string();
        assert!(reason(b"ab\xff").ends_with("it is not UTF-8 at byte 2"));
        assert!(reason(&vec![b'a'; 1024 * 1024 + 1]).ends_with("larger than 1 MiB"));
        assert_eq!(read_all(&vec![b'a'; 1024 * 1024][..]).unwrap().len(), 1024 * 1024);
    }

    #[test]
    fn a_workspace_is_an_existing_directory() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let environment = Environment::default().in_directory(&root);
        assert_eq!(workspace(None, &environment).unwrap(), root.to_str().unwrap());
        let reason = |path: &str| workspace(Some(Path::new(path)), &environment).unwrap_err().to_string();
        assert_eq!(reason("nope"), "the workspace `nope` cannot be used: it does not exist");
        assert_eq!(reason("file"), "the workspace `file` cannot be used: it is not a directory");
    }
}
