//! Notes in a storage space. A note and the number of notes are changed together or not at all.

use palyra_plugins_sdk::storage::{Batch, Outcome, Space};
use palyra_plugins_sdk::{Failure, tool_plugin};
use serde::{Deserialize, Serialize};

mod tools;

tool_plugin! {
    tools::TOOLS;
    "add" => add,
    "read" => read,
    "list" => list,
    "remove" => remove,
}

/// How often a batch that met another change is tried again.
const ATTEMPTS: u32 = 3;

#[derive(Deserialize)]
struct Note {
    title: String,
    text: String,
}

#[derive(Deserialize)]
struct Title {
    title: String,
}

#[derive(Deserialize)]
struct Nothing {}

#[derive(Serialize)]
struct Count {
    notes: u64,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

#[derive(Serialize)]
struct Titles {
    titles: Vec<String>,
}

#[derive(Serialize)]
struct Removed {
    removed: bool,
}

fn space() -> Result<Space, Failure> {
    Ok(Space::named("notes")?)
}

fn key(title: &str) -> String {
    format!("note/{title}")
}

/// The number of notes with the version of that number.
fn count(space: Space) -> Result<(u64, Option<u64>), Failure> {
    let Some(entry) = space.get("count")? else { return Ok((0, None)) };
    let number = String::from_utf8_lossy(&entry.value).parse().map_err(Failure::failed)?;
    Ok((number, Some(entry.version)))
}

/// A batch that holds only while the number of notes is as it was.
fn while_count_is(version: Option<u64>) -> Batch {
    match version {
        Some(version) => Batch::new().expect("count", version),
        None => Batch::new().expect_absent("count"),
    }
}

fn add(note: Note) -> Result<Count, Failure> {
    let space = space()?;
    let key = key(&note.title);
    for _ in 0..ATTEMPTS {
        let (notes, version) = count(space)?;
        let batch = while_count_is(version)
            .expect_absent(&key)
            .set(&key, note.text.as_bytes())
            .set("count", (notes + 1).to_string());
        match space.apply(&batch)? {
            Outcome::Committed(_) => return Ok(Count { notes: notes + 1 }),
            Outcome::Conflict(which) if which == key => {
                return Err(Failure::invalid_input(format!("there is a note `{}` already", note.title)));
            }
            Outcome::Conflict(_) => {}
        }
    }
    Err(Failure::failed("others kept changing the notes"))
}

fn read(title: Title) -> Result<Text, Failure> {
    let entry = space()?.get(&key(&title.title))?;
    let entry = entry.ok_or_else(|| Failure::invalid_input(format!("there is no note `{}`", title.title)))?;
    Ok(Text { text: String::from_utf8_lossy(&entry.value).into_owned() })
}

fn list(_: Nothing) -> Result<Titles, Failure> {
    let space = space()?;
    let mut titles: Vec<String> = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let keys = space.keys("note/", after.as_deref(), 100)?;
        let Some(last) = keys.last() else { break };
        after = Some(last.clone());
        titles.extend(keys.iter().map(|key| key.trim_start_matches("note/").to_owned()));
    }
    Ok(Titles { titles })
}

fn remove(title: Title) -> Result<Removed, Failure> {
    let space = space()?;
    let key = key(&title.title);
    for _ in 0..ATTEMPTS {
        let Some(entry) = space.get(&key)? else { return Ok(Removed { removed: false }) };
        let (notes, version) = count(space)?;
        let batch = while_count_is(version)
            .expect(&key, entry.version)
            .delete(&key)
            .set("count", notes.saturating_sub(1).to_string());
        if let Outcome::Committed(_) = space.apply(&batch)? {
            return Ok(Removed { removed: true });
        }
    }
    Err(Failure::failed("others kept changing the notes"))
}
