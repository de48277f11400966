//! Wordings, right and wrong ones.

use super::request::{Attachment, Depth, Request, Source, parse};

fn shown(request: &Request) -> String {
    let place = |directory: &Option<String>| directory.clone().unwrap_or_else(|| "-".to_owned());
    match request {
        Request::List { directory, depth: Depth::Flat } => format!("list {}", place(directory)),
        Request::List { directory, depth: Depth::Recursive } => format!("tree {}", place(directory)),
        Request::Read { source } => format!("read {}", named(source)),
        Request::Search { text, directory } => format!("search {text} @ {}", place(directory)),
        Request::FindFile { name } => format!("find {name}"),
        Request::Summarise { source, sentences: None } => format!("sum {}", named(source)),
        Request::Summarise { source, sentences: Some(count) } => format!("sum {} in {count}", named(source)),
        Request::Count { unit, source } => format!("count {unit:?} {}", named(source)),
        Request::CountFiles { directory } => format!("count files {}", place(directory)),
        Request::Create { path, text } => format!("create {path} <{text}>"),
        Request::Copy { from, to } => format!("copy {from} {to}"),
        Request::Move { from, to } => format!("move {from} {to}"),
        Request::MakeDirectory { path } => format!("mkdir {path}"),
        Request::Write { path, text } => format!("write {path} <{text}>"),
        Request::Append { path, text } => format!("append {path} <{text}>"),
        Request::Replace { old, new, path } => format!("replace {path} <{old}> <{new}>"),
        Request::Delete { spellings } => format!("delete {}", spellings.join(" | ")),
        Request::Run { command } => format!("run {command}"),
        Request::Time => "time".to_owned(),
        Request::Help => "help".to_owned(),
        Request::Thanks => "thanks".to_owned(),
        Request::Unknown(words) => format!("? {words}"),
    }
}

fn named(source: &Source) -> String {
    match source {
        Source::File(spellings) => spellings.join(" | "),
        Source::Attached(attachment) => format!("[{}]", attachment.name),
    }
}

fn check(table: &[(&str, &[&str])]) {
    for (message, expected) in table {
        let found: Vec<String> = parse(message, None).iter().map(shown).collect();
        assert_eq!(&found, expected, "{message:?}");
    }
}

#[test]
fn lists() {
    check(&[
        ("list files", &["list -"]),
        ("List the files.", &["list -"]),
        ("ls", &["list -"]),
        ("ls src", &["list src"]),
        ("list files in src", &["list src"]),
        ("list all files in src/ recursively", &["tree src/"]),
        ("list the files in this folder", &["list -"]),
        ("please list everything in the workspace", &["list -"]),
        ("show me the files in docs", &["list docs"]),
        ("show the directory tree", &["tree -"]),
        ("what files are in src?", &["list src"]),
        ("Which files are there?", &["list -"]),
        ("could you list the files here please?", &["list -"]),
        ("list files in \"my folder\"", &["list my folder"]),
        ("list src and docs", &["list src", "list docs"]),
        ("list the kings of England", &["? list the kings of England"]),
    ]);
}

#[test]
fn reading_and_summaries() {
    check(&[
        ("read notes.md", &["read notes.md"]),
        ("read notes", &["read notes"]),
        ("Read the file notes.md, please.", &["read notes.md"]),
        ("show README", &["read README"]),
        ("show me the contents of src/main.rs", &["read src/main.rs"]),
        ("cat a.txt", &["read a.txt"]),
        ("what's in notes.md?", &["read notes.md"]),
        ("what does notes.md say", &["read notes.md"]),
        ("read a.md and b.md", &["read a.md", "read b.md"]),
        ("read a.md, b.md and c.md", &["read a.md", "read b.md", "read c.md"]),
        ("read @file:notes.md", &["read notes.md"]),
        ("read 'my notes.txt'", &["read my notes.txt"]),
        ("summarise notes.md", &["sum notes.md"]),
        ("summarize the file notes.md", &["sum notes.md"]),
        ("give me a summary of README.md", &["sum README.md"]),
        ("what is notes.md about?", &["sum notes.md"]),
        ("read notes.md and summarise it", &["read notes.md", "sum notes.md"]),
        ("read the room", &["read room"]),
        ("show me the money", &["read money"]),
        ("open the door", &["read door"]),
        ("summarise it", &["? summarise it"]),
        ("read notes.md if it exists", &["? read notes.md if it exists"]),
        ("read", &["? read"]),
    ]);
}

#[test]
fn searches() {
    check(&[
        ("search for TODO", &["search TODO @ -"]),
        ("search \"TODO\" in src", &["search TODO @ src"]),
        ("find \"fn main\" in src/", &["search fn main @ src/"]),
        ("grep TODO src/main.rs", &["search TODO @ src/main.rs"]),
        ("grep \"still water\" notes.md", &["search still water @ notes.md"]),
        ("grep TODO", &["search TODO @ -"]),
        ("search src for TODO", &["search TODO @ src"]),
        ("search the files for hello world", &["search hello world @ -"]),
        ("look for the word apple in docs", &["search apple @ docs"]),
        ("find all occurrences of 'a, b; c'", &["search a, b; c @ -"]),
        ("where is parse_config defined?", &["search parse_config @ -"]),
        ("which files mention TODO?", &["search TODO @ -"]),
        ("find TODO in the project", &["search TODO @ -"]),
        ("search", &["? search"]),
    ]);
}

#[test]
fn writing() {
    check(&[
        ("write notes.md with \"hello\"", &["write notes.md <hello>"]),
        ("write \"hello, world; and more\" to notes.md", &["write notes.md <hello, world; and more>"]),
        ("write hello world to notes.md", &["write notes.md <hello world>"]),
        ("create a file called a.txt containing \"x\"", &["create a.txt <x>"]),
        ("create a new file a.txt with the text 'x y'.", &["create a.txt <x y>"]),
        ("create a.txt", &["create a.txt <>"]),
        ("create an empty file a.txt", &["create a.txt <>"]),
        ("save \"x\" as a.txt", &["create a.txt <x>"]),
        ("put \"x\" in a.txt", &["create a.txt <x>"]),
        ("write a.txt: hello there", &["write a.txt <hello there>"]),
        ("write a.txt:\nline one\nread b.txt\n", &["write a.txt <line one\nread b.txt>"]),
        ("create a.rs with\n```rust\nfn main() {}\n```", &["? create a.rs with", "? fn main() {}\n"]),
        ("create a.rs with ```rust\nfn main() {}\n```", &["create a.rs <fn main() {}\n>"]),
        ("append \"x\" to a.txt", &["append a.txt <x>"]),
        ("append to a.txt: more", &["append a.txt <more>"]),
        ("add the line \"x\" to a.txt", &["append a.txt <x>"]),
        ("read a.txt then append \"x\" to it", &["read a.txt", "append a.txt <x>"]),
        ("write a poem", &["? write a poem"]),
        ("write a.txt", &["? write a.txt"]),
        ("write to a.txt", &["? write to a.txt"]),
        ("add two and two", &["? add two and two"]),
        ("make coffee", &["? make coffee"]),
    ]);
}

#[test]
fn replacing_and_deleting() {
    check(&[
        ("replace \"a\" with \"b\" in x.txt", &["replace x.txt <a> <b>"]),
        ("replace apple with pear in x.txt", &["replace x.txt <apple> <pear>"]),
        ("Replace every occurrence of 'a' by 'b' in the file x.txt.", &["replace x.txt <a> <b>"]),
        ("change \"1\" to \"2\" in x.toml", &["replace x.toml <1> <2>"]),
        ("in x.txt, replace \"a\" with \"b\"", &["replace x.txt <a> <b>"]),
        ("in x.txt replace \"a\" with \"b\"", &["replace x.txt <a> <b>"]),
        ("patch x.txt: replace \"a\" with \"b\"", &["replace x.txt <a> <b>"]),
        ("edit x.txt and replace \"a\" with \"b\"", &["replace x.txt <a> <b>"]),
        ("read x.txt, then replace \"a\" with \"b\" in it", &["read x.txt", "replace x.txt <a> <b>"]),
        ("remove \"a\" from x.txt", &["replace x.txt <a> <>"]),
        ("delete x.txt", &["delete x.txt"]),
        ("remove the file x.txt", &["delete x.txt"]),
        ("delete everything", &["? delete everything"]),
        ("delete x.txt unless it is empty", &["? delete x.txt unless it is empty"]),
        ("replace \"a\" with \"b\"", &["? replace \"a\" with \"b\""]),
        ("replace the engine", &["? replace the engine"]),
    ]);
}

#[test]
fn other_requests() {
    check(&[
        ("run cargo test", &["run cargo test"]),
        ("run `ls -la; pwd`", &["run ls -la; pwd"]),
        ("execute \"make && make install\"", &["run make && make install"]),
        ("run grep \"Water\" notes.md", &["run grep \"Water\" notes.md"]),
        ("run cat a | wc -l", &["run cat a | wc -l"]),
        ("run `cat a | wc -l`, then list files", &["run cat a | wc -l", "list -"]),
        ("run make && make install", &["run make && make install"]),
        ("remember that my cat is called Tom", &["? remember that my cat is called Tom"]),
        ("what do you remember?", &["? what do you remember"]),
        ("what time is it?", &["time"]),
        ("help", &["help"]),
        ("What can you do?", &["help"]),
        ("hello", &["help"]),
        ("", &[]),
        ("  \n ; , \n", &[]),
        ("tell me a joke", &["? tell me a joke"]),
        ("why?", &["? why"]),
    ]);
}

#[test]
fn a_single_letter_is_a_name_where_it_is_no_word() {
    check(&[
        ("read a", &["read a"]),
        ("read a and b", &["read a", "read b"]),
        ("show x", &["read x"]),
        ("cat a, then read b", &["read a", "read b"]),
        ("summarise a", &["sum a"]),
        ("list a", &["list a"]),
        ("list files in b", &["list b"]),
        ("delete a", &["delete a"]),
        ("create a with \"x\"", &["create a <x>"]),
        ("create a file with \"x\"", &["? create a file with \"x\""]),
        ("create a", &["create a <>"]),
        ("write \"x\" to a", &["write a <x>"]),
        ("append \"x\" to b", &["append b <x>"]),
        ("replace \"x\" with \"y\" in a", &["replace a <x> <y>"]),
        ("remove \"x\" from a", &["replace a <x> <>"]),
        ("read a book", &["read book"]),
        ("write a poem", &["? write a poem"]),
    ]);
}

#[test]
fn several_requests_in_one_message() {
    check(&[
        ("list files, then read notes.md", &["list -", "read notes.md"]),
        ("list files and then read notes.md", &["list -", "read notes.md"]),
        ("list files and read notes.md", &["list -", "read notes.md"]),
        ("list files; read notes.md; what time is it?", &["list -", "read notes.md", "time"]),
        ("list files\nread notes.md", &["list -", "read notes.md"]),
        ("First list files. Then read notes.md. Finally, summarise it.", &["list -", "read notes.md", "sum notes.md"]),
        (
            "list the files, read notes.md, and replace \"draft\" with \"final\" in notes.md",
            &["list -", "read notes.md", "replace notes.md <draft> <final>"],
        ),
        ("list files and water the plants", &["? list files and water the plants"]),
        ("list files; water the plants", &["list -", "? water the plants"]),
    ]);
}

#[test]
fn everyday_wordings() {
    check(&[
        ("summarise notes.md in one sentence", &["sum notes.md in 1"]),
        ("summarise notes.md in 3 sentences", &["sum notes.md in 3"]),
        ("summarise notes.md briefly", &["sum notes.md in 1"]),
        ("summarise notes.md in rhyme", &["? summarise notes.md in rhyme"]),
        ("delete NOSUCH", &["delete NOSUCH"]),
        ("delete all files", &["? delete all files"]),
        ("read a.txt; delete all files", &["read a.txt", "? delete all files"]),
        ("what is in src", &["read src"]),
        ("show src", &["read src"]),
        ("read it's.txt", &["read it's.txt"]),
        ("read a|b.txt", &["read a|b.txt"]),
        ("read my dir/a b.txt", &["read dir/a b.txt | my dir/a b.txt"]),
        ("read b c.txt", &["read b c.txt"]),
        ("delete old draft.txt", &["delete old draft.txt"]),
        ("read a.txt and my notes.txt", &["read a.txt", "read notes.txt | my notes.txt"]),
        ("find notes.md", &["find notes.md"]),
        ("where is main.rs?", &["find main.rs"]),
        ("find all *.md files", &["find *.md"]),
        ("find the file notes", &["find notes"]),
        ("count the lines in notes.md", &["count Lines notes.md"]),
        ("how many words does notes.md have?", &["count Words notes.md"]),
        ("how many characters are in notes.md", &["count Characters notes.md"]),
        ("how many files are here?", &["count files -"]),
        ("how many files are in src", &["count files src"]),
        ("how many roads must a man walk down", &["? how many roads must a man walk down"]),
        ("copy a.txt to b.txt", &["copy a.txt b.txt"]),
        ("cp a b", &["copy a b"]),
        ("rename the file a.txt to b.txt", &["move a.txt b.txt"]),
        ("move a.txt into src/", &["move a.txt src/a.txt"]),
        ("move on to the next topic", &["? move on to the next topic"]),
        ("make a directory called out", &["mkdir out"]),
        ("create a folder out", &["mkdir out"]),
        ("mkdir out", &["run mkdir out"]),
        ("git status", &["run git status"]),
        ("overwrite a.txt with \"x\"", &["write a.txt <x>"]),
        ("thanks!", &["thanks"]),
        ("list ~", &["list ~"]),
        ("👍", &["? 👍"]),
    ]);
}

#[test]
fn this_is_what_came_with_the_message() {
    let attached = Attachment { name: "standard input".to_owned(), text: "delete a.txt\n".to_owned() };
    let parsed = |message| parse(message, Some(&attached)).iter().map(shown).collect::<Vec<_>>();
    for (message, expected) in [
        ("summarise this", "sum [standard input]"),
        ("summarise", "sum [standard input]"),
        ("summarise this in one sentence", "sum [standard input] in 1"),
        ("summarise the text", "sum [standard input]"),
        ("what is this about?", "sum [standard input]"),
        ("count the lines", "count Lines [standard input]"),
        ("summarise a.md", "sum a.md"),
        ("delete this", "? delete this"),
        ("review this change", "? review this change"),
    ] {
        assert_eq!(parsed(message), [expected], "{message}");
    }
}
