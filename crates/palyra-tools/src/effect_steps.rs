//! The single steps of an effect: what comes and goes, in which order, and by which means.
//!
//! Files come and go beside links, directories and trees. The order lets each take the place of any other.

use palyra_common::Digest;

use crate::place::{Place, Standing};
use crate::plan_file::PlannedEdit;
use crate::{EntryKind, FileChange, ToolError, Workspace};

/// The order in which the edits of a plan happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A file, a link or the like goes.
    Goes,
    /// A directory goes, if nothing is in it.
    DirectoryGoes,
    /// A directory comes, or gets another mode.
    Directory,
    /// A file or a link comes.
    Comes,
    /// A file gets another name.
    Name,
    /// A directory goes with all that is in it.
    TreeGoes,
}

impl Step {
    pub(crate) const IN_ORDER: [Self; 6] =
        [Self::Goes, Self::DirectoryGoes, Self::Directory, Self::Comes, Self::Name, Self::TreeGoes];

    pub(crate) fn of(edit: &PlannedEdit<'_>) -> Self {
        let entry = &edit.change.entry;
        match (edit.content, if edit.content.is_some() { entry.after } else { entry.before }) {
            (Some(_), EntryKind::Directory | EntryKind::Tree) => Self::Directory,
            (Some(_), EntryKind::File | EntryKind::Link | EntryKind::Other) if edit.linked_to().is_some() => Self::Name,
            (Some(_), EntryKind::File | EntryKind::Link | EntryKind::Other) => Self::Comes,
            (None, EntryKind::Directory) => Self::DirectoryGoes,
            (None, EntryKind::Tree) => Self::TreeGoes,
            (None, EntryKind::File | EntryKind::Link | EntryKind::Other) => Self::Goes,
        }
    }
}

/// What is to stand at a place.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) kind: EntryKind,
    pub(crate) bytes: &'a [u8],
    pub(crate) mode: Option<u32>,
    /// Another name of the file, if it is to be one.
    pub(crate) name_of: Option<&'a str>,
}

/// Puts something there, in the place of whatever is.
pub(crate) fn put(
    workspace: &Workspace,
    place: &Place<'_>,
    now: Option<Standing>,
    wanted: Wanted<'_>,
    temporary: &str,
) -> Result<(), ToolError> {
    let is_directory = wanted.kind == EntryKind::Directory;
    let in_the_way = now.filter(|now| (now.kind == EntryKind::Directory) != is_directory);
    if let Some(now) = in_the_way {
        take_away(place, Some(now), now.kind)?;
    }
    let expected = if in_the_way.is_some() { None } else { now };
    match wanted.kind {
        EntryKind::Directory => place.make_directory(),
        EntryKind::Link => place.put_link(wanted.bytes, temporary),
        EntryKind::File => {
            let replace = || place.replace(wanted.bytes, wanted.mode, temporary, expected);
            let Some(name) = wanted.name_of else { return replace() };
            let path = workspace.path(name)?;
            let other = Place::find(workspace, &path)?;
            let found = other.as_ref().map(Place::standing).transpose()?.flatten();
            match (other, found) {
                (Some(_), Some(found)) if now.is_some_and(|now| now.inode == found.inode) => Ok(()),
                (Some(other), Some(found)) if found.is(EntryKind::File, Some(Digest::of(wanted.bytes))) => {
                    place.put_name(&other, temporary)
                }
                // Somebody changed the other name since: the content is what counts.
                _ => replace(),
            }
        }
        // Neither is ever wanted: what they held is nowhere.
        EntryKind::Tree | EntryKind::Other => Ok(()),
    }
}

/// Removes what is there; `kind` says whether a directory goes with all that is in it.
pub(crate) fn take_away(place: &Place<'_>, now: Option<Standing>, kind: EntryKind) -> Result<(), ToolError> {
    match (now.map(|now| now.kind), kind) {
        (None, _) => Ok(()),
        (Some(EntryKind::Directory), EntryKind::Tree) => place.remove_tree(),
        (Some(EntryKind::Directory | EntryKind::Tree), _) => place.remove_directory(),
        (Some(EntryKind::File | EntryKind::Link | EntryKind::Other), _) => place.remove(),
    }
}

/// Lets us look into and write to a directory that is to get its mode back, if it is there.
pub(crate) fn open_up(workspace: &Workspace, change: &FileChange) -> Result<(), ToolError> {
    /// Its owner may do everything.
    const OWNER: u32 = 0o700;
    let path = workspace.path(&change.path)?;
    let Ok(Some(place)) = Place::find(workspace, &path) else { return Ok(()) };
    match place.standing()? {
        Some(now) if now.kind == EntryKind::Directory && now.mode & OWNER != OWNER => {
            place.set_directory_mode(now.mode | OWNER)
        }
        _ => Ok(()),
    }
}
