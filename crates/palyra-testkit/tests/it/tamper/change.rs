//! The ways in which a copy is changed: bytes and pages of the file, rows through SQL, whole files.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use palyra_common::Timestamp;
use palyra_journal::rusqlite::Connection;
use palyra_journal::{PublicKey, RestoredNote};
use palyra_testkit::{Random, copy_tree};

use super::subject::Subject;

/// SQLite's page size in these files.
const PAGE: u64 = 4096;

/// What was done to a copy.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// In words, for the report of a failure.
    pub(super) what: String,
    /// The one record that was changed, where there is one: its position must be named.
    pub(super) seq: Option<u64>,
    /// Whether it must be noticed even if no record is altered.
    pub(super) must_be_noticed: bool,
}

macro_rules! kinds {
    ($($kind:ident = $name:literal,)+) => {
        /// A way to change a journal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Kind { $($kind,)+ }
        /// All of them.
        pub(super) const KINDS: &[Kind] = &[$(Kind::$kind,)+];
        impl Kind {
            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }
        }
    };
}

kinds! {
    FlipByte = "flip a byte",
    FlipBytes = "flip several bytes",
    ZeroPage = "zero a page",
    SwapPages = "swap two pages",
    Truncate = "truncate the file",
    AppendGarbage = "append garbage",
    FlipInSegment = "flip a byte in a segment",
    TruncateSegment = "truncate a segment",
    RemoveSegment = "remove a segment",
    RemoveArtifact = "remove an artifact",
    FlipInArtifact = "flip a byte in an artifact",
    DeleteRow = "delete a row",
    DeleteTail = "delete the last rows",
    DeleteHead = "delete the first live rows",
    SwapRows = "swap two rows",
    SwapPayloads = "swap two payloads",
    DuplicateRow = "duplicate a row",
    ForgeRow = "append a forged row",
    EditPayload = "edit a payload",
    EditTime = "edit a time",
    EditType = "edit a kind",
    EditRun = "edit a run id",
    EditHash = "edit a hash",
    EditCheckpoint = "edit a checkpoint",
    EditProjection = "edit a projection",
    EditHeadRow = "edit the signed head",
    RemoveAnchor = "remove the anchor",
    Rollback = "roll back to an older copy",
    ReplaceForeign = "replace by another journal",
    ReplaceKeys = "replace the keys",
    ForgeRestore = "forge a restore with another key",
    LaunderByRestore = "forge a restore to begin the digests anew",
}

/// Changes the copy at `root`.
pub(super) fn apply(kind: Kind, subject: &Subject, root: &Path, random: &mut Random) -> Result<Change> {
    let database = root.join("journal/journal.db");
    match kind {
        Kind::FlipByte => flip(&database, 1, random),
        Kind::FlipBytes => {
            let count = 2 + random.below(7);
            flip(&database, count, random)
        }
        Kind::ZeroPage => {
            let page = random.below(length(&database)? / PAGE);
            write_at(&database, &vec![0; PAGE as usize], page * PAGE)?;
            said(format!("page {page} zeroed"))
        }
        Kind::SwapPages => swap_pages(&database, random),
        Kind::Truncate => {
            let to = random.below(length(&database)?);
            OpenOptions::new().write(true).open(&database)?.set_len(to)?;
            said(format!("cut to {to} bytes"))
        }
        Kind::AppendGarbage => {
            let garbage: Vec<u8> = (0..=random.below(2 * PAGE)).map(|_| random.next_u64() as u8).collect();
            write_at(&database, &garbage, length(&database)?)?;
            said(format!("{} bytes appended", garbage.len()))
        }
        Kind::FlipInSegment => flip(&some_file(&root.join("journal/segments"), random)?, 1, random),
        Kind::TruncateSegment => {
            let file = some_file(&root.join("journal/segments"), random)?;
            let to = random.below(length(&file)?);
            OpenOptions::new().write(true).open(&file)?.set_len(to)?;
            noticed(format!("{} cut to {to} bytes", file.display()))
        }
        Kind::RemoveSegment => remove(&some_file(&root.join("journal/segments"), random)?),
        Kind::RemoveArtifact => remove(&payload_artifact(root, random)?),
        Kind::FlipInArtifact => flip(&payload_artifact(root, random)?, 1, random),
        Kind::EditCheckpoint => edit_checkpoint(&database, random),
        Kind::EditProjection => edit_projection(&database, random),
        Kind::EditHeadRow => {
            let column = *random.pick(&["count", "head", "merkle_root", "signature"]).context("a column")?;
            let new = if column == "count" { "count + 1" } else { "randomblob(length(head))" };
            execute(&database, &format!("UPDATE head SET {column} = {new}"))?;
            noticed(format!("{column} of the head edited"))
        }
        Kind::RemoveAnchor => remove(&root.join("journal/anchor")),
        Kind::Rollback => {
            fs::remove_dir_all(root.join("journal/segments"))?;
            copy_tree(&subject.older.join("journal/segments"), &root.join("journal/segments"))?;
            fs::copy(subject.older.join("journal/journal.db"), &database)?;
            noticed("the database of an earlier day put back".to_owned())
        }
        Kind::ReplaceForeign => {
            fs::remove_dir_all(root.join("journal/segments"))?;
            copy_tree(&subject.foreign.join("journal/segments"), &root.join("journal/segments"))?;
            fs::copy(subject.foreign.join("journal/journal.db"), &database)?;
            noticed("another journal put in its place".to_owned())
        }
        Kind::ReplaceKeys => {
            for name in ["keys/journal.key", "keys/journal.pub"] {
                fs::copy(subject.foreign.join(name), root.join(name))?;
            }
            noticed("the keys of another journal put in their place".to_owned())
        }
        Kind::ForgeRestore => {
            fs::copy(subject.foreign.join("keys/journal.key"), root.join("keys/journal.key"))?;
            forge_restore(root, &subject.foreign)?;
            said("the key of another journal put in place with a note of a restore".to_owned())
        }
        Kind::LaunderByRestore => {
            execute(&database, "DELETE FROM checkpoints")?;
            forge_restore(root, root)?;
            said("the checkpoints deleted, with a note of a restore".to_owned())
        }
        rows => change_rows(rows, &database, random),
    }
}

/// Writes the note of a restore after which the key of `signer` signs, as whoever can write to the state root could.
fn forge_restore(root: &Path, signer: &Path) -> Result<()> {
    let keys = fs::read_to_string(signer.join("keys/journal.pub"))?;
    let key: PublicKey = keys.lines().next().context("a public key")?.parse().map_err(anyhow::Error::msg)?;
    let note = RestoredNote { at: Timestamp(1), records: 1, key_id: key.id(), started: false, accepted: true };
    Ok(fs::write(root.join("restored.json"), serde_json::to_vec(&note)?)?)
}

/// Changes rows of the live table.
fn change_rows(kind: Kind, database: &Path, random: &mut Random) -> Result<Change> {
    let (first, last) = live_range(database)?;
    // Not the first, so that there is always a record before it.
    let seq = first + 1 + random.below(last - first - 1);
    let one = |what: String, sql: String| {
        let changed = execute(database, &sql)?;
        ensure!(changed > 0, "nothing changed: {sql}");
        Ok(Change { what, seq: Some(seq), must_be_noticed: true })
    };
    match kind {
        Kind::DeleteRow => one(format!("record {seq} deleted"), format!("DELETE FROM records WHERE seq = {seq}")),
        Kind::DeleteTail => {
            let count = 1 + random.below(20).min(last - first - 1);
            execute(database, &format!("DELETE FROM records WHERE seq > {}", last - count))?;
            noticed(format!("the last {count} records deleted"))
        }
        Kind::DeleteHead => {
            let count = 1 + random.below(20).min(last - first - 1);
            execute(database, &format!("DELETE FROM records WHERE seq < {}", first + count))?;
            noticed(format!("the first {count} live records deleted"))
        }
        Kind::SwapRows => {
            let other = first + random.below(seq - first);
            let sql = format!(
                "UPDATE records SET seq = -1 WHERE seq = {seq}; UPDATE records SET seq = {seq} WHERE seq = {other};
                 UPDATE records SET seq = {other} WHERE seq = -1"
            );
            one(format!("records {other} and {seq} swapped"), sql)
        }
        Kind::SwapPayloads => {
            let (kind, other) = unlike(database, seq, first)?;
            let sql = format!(
                "CREATE TEMP TABLE kept AS SELECT kind, payload, artifact FROM records WHERE seq = {seq};
                 UPDATE records SET (kind, payload, artifact) = (SELECT kind, payload, artifact FROM records WHERE seq = {other}) WHERE seq = {seq};
                 UPDATE records SET (kind, payload, artifact) = (SELECT kind, payload, artifact FROM kept) WHERE seq = {other}"
            );
            one(format!("the contents of {other} and {seq} ({kind}) swapped"), sql)
        }
        Kind::DuplicateRow | Kind::ForgeRow => {
            let hash = if kind == Kind::ForgeRow { "randomblob(32)" } else { "hash" };
            let sql = format!(
                "INSERT INTO records SELECT {last} + 1, at, kind, session_id, NULL, NULL, payload, artifact,
                   (SELECT hash FROM records WHERE seq = {last}), {hash}, seal FROM records WHERE seq = {seq}"
            );
            execute(database, &sql)?;
            Ok(Change { what: format!("a copy of {seq} appended"), seq: Some(last + 1), must_be_noticed: true })
        }
        Kind::EditPayload => {
            let sql = format!(
                "UPDATE records SET payload = CAST(coalesce(payload, x'') || x'20' AS BLOB), artifact = NULL WHERE seq = {seq}"
            );
            one(format!("the payload of {seq} edited"), sql)
        }
        Kind::EditTime => {
            one(format!("the time of {seq} edited"), format!("UPDATE records SET at = at + 1 WHERE seq = {seq}"))
        }
        Kind::EditType => {
            one(format!("the kind of {seq} edited"), format!("UPDATE records SET kind = kind || 'x' WHERE seq = {seq}"))
        }
        Kind::EditRun => {
            let sql = format!("UPDATE records SET run_id = randomblob(16) WHERE seq = {seq}");
            one(format!("the run of {seq} edited"), sql)
        }
        Kind::EditHash => {
            let column = *random.pick(&["hash", "prev_hash"]).context("a column")?;
            one(
                format!("{column} of {seq} edited"),
                format!("UPDATE records SET {column} = randomblob(32) WHERE seq = {seq}"),
            )
        }
        other => anyhow::bail!("{other:?} does not change rows"),
    }
}

/// A live record before `seq` whose content differs, so that swapping is a change.
fn unlike(database: &Path, seq: u64, first: u64) -> Result<(String, u64)> {
    let connection = Connection::open(database)?;
    let sql = "SELECT a.kind, b.seq FROM records a JOIN records b ON b.seq < a.seq AND b.seq >= ?2
               WHERE a.seq = ?1 AND (a.kind <> b.kind OR a.payload IS NOT b.payload) ORDER BY b.seq DESC LIMIT 1";
    let (kind, other): (String, i64) =
        connection
            .query_row(sql, [i64::try_from(seq)?, i64::try_from(first)?], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((kind, u64::try_from(other)?))
}

fn edit_checkpoint(database: &Path, random: &mut Random) -> Result<Change> {
    let column = *random.pick(&["head", "merkle_root", "signature", "at"]).context("a column")?;
    let new = if column == "at" { "at + 1".to_owned() } else { format!("randomblob(length({column}))") };
    let sql = format!(
        "UPDATE checkpoints SET {column} = {new} WHERE count = (SELECT count FROM checkpoints ORDER BY random() LIMIT 1)"
    );
    ensure!(execute(database, &sql)? == 1, "there is no checkpoint to edit");
    noticed(format!("{column} of a checkpoint edited"))
}

/// Edits a value in one of the tables that are derived from the log.
fn edit_projection(database: &Path, random: &mut Random) -> Result<Change> {
    let connection = Connection::open(database)?;
    // Columns of text beside a key of one column.
    let mut statement = connection.prepare(
        "SELECT t.value, c.name, k.name
         FROM projections p, json_each(p.tables) t, pragma_table_info(t.value) c, pragma_table_info(t.value) k
         WHERE c.type = 'TEXT' AND c.pk = 0 AND k.pk = 1 ORDER BY 1, 2",
    )?;
    let columns: Vec<[String; 3]> =
        statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?.collect::<Result<_, _>>()?;
    let filled: Vec<&[String; 3]> = columns
        .iter()
        .filter(|[table, column, _]| {
            let sql = format!("SELECT count(*) FROM \"{table}\" WHERE \"{column}\" IS NOT NULL");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap_or_default() > 0
        })
        .collect();
    let [table, column, key] = random.pick(&filled).context("no projection has text")?;
    let sql = format!(
        "UPDATE \"{table}\" SET \"{column}\" = \"{column}\" || 'x' WHERE \"{key}\" =
           (SELECT \"{key}\" FROM \"{table}\" WHERE \"{column}\" IS NOT NULL ORDER BY random() LIMIT 1)"
    );
    ensure!(execute(database, &sql)? > 0, "nothing changed: {sql}");
    noticed(format!("{column} of a row of {table} edited"))
}

fn flip(file: &Path, count: u64, random: &mut Random) -> Result<Change> {
    let mut bytes = fs::read(file)?;
    let mut places = Vec::new();
    for _ in 0..count {
        let place = random.below(bytes.len() as u64);
        bytes[usize::try_from(place)?] ^= 1 << random.below(8);
        places.push(place);
    }
    fs::write(file, bytes)?;
    said(format!("bits flipped at {places:?} of {}", file.display()))
}

fn swap_pages(file: &Path, random: &mut Random) -> Result<Change> {
    let pages = length(file)? / PAGE;
    let (one, other) = (random.below(pages), random.below(pages));
    let mut bytes = fs::read(file)?;
    for offset in 0..PAGE {
        bytes.swap(usize::try_from(one * PAGE + offset)?, usize::try_from(other * PAGE + offset)?);
    }
    fs::write(file, bytes)?;
    said(format!("pages {one} and {other} swapped"))
}

fn remove(file: &Path) -> Result<Change> {
    fs::remove_file(file).with_context(|| file.display().to_string())?;
    noticed(format!("{} removed", file.display()))
}

fn said(what: String) -> Result<Change> {
    Ok(Change { what, ..Change::default() })
}

fn noticed(what: String) -> Result<Change> {
    Ok(Change { what, seq: None, must_be_noticed: true })
}

fn length(file: &Path) -> Result<u64> {
    Ok(fs::metadata(file).with_context(|| file.display().to_string())?.len())
}

fn write_at(file: &Path, bytes: &[u8], offset: u64) -> Result<()> {
    Ok(OpenOptions::new().write(true).open(file)?.write_all_at(bytes, offset)?)
}

fn some_file(directory: &Path, random: &mut Random) -> Result<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "db"));
    files.sort();
    random.pick(&files).cloned().with_context(|| format!("{} holds no database", directory.display()))
}

/// An artifact that holds the payload of a live record.
fn payload_artifact(root: &Path, random: &mut Random) -> Result<PathBuf> {
    let connection = Connection::open(root.join("journal/journal.db"))?;
    let mut statement =
        connection.prepare("SELECT lower(hex(artifact)) FROM records WHERE artifact IS NOT NULL ORDER BY seq")?;
    let digests: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let digest = random.pick(&digests).context("no record has an artifact")?;
    Ok(root.join("artifacts").join(digest.get(..2).context("a digest has two bytes")?).join(digest))
}

fn live_range(database: &Path) -> Result<(u64, u64)> {
    let connection = Connection::open(database)?;
    let sql = "SELECT min(seq), max(seq) FROM records";
    let (first, last): (i64, i64) = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((u64::try_from(first)?, u64::try_from(last)?))
}

/// Runs statements as somebody with the SQLite shell would; returns the rows that the last one changed.
fn execute(database: &Path, sql: &str) -> Result<u64> {
    let connection = Connection::open(database)?;
    // Copies are thrown away; waiting for the disk would only make the trials slow.
    connection.execute_batch("PRAGMA synchronous = OFF")?;
    connection.execute_batch(sql)?;
    let changed = connection.changes();
    // Everything into the one file, so that later changes of bytes hit it.
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(changed)
}
