-- The log itself and what proves it. Every table below is either the log or can be derived from it.

-- Facts about this journal: `journal_id` (16 random bytes from which the hash of record 0 is derived).
CREATE TABLE meta (
    name  TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per record. `payload` is null when the payload lies in the artifact store under the digest in `artifact`.
CREATE TABLE records (
    seq        INTEGER PRIMARY KEY NOT NULL,
    at         INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    session_id BLOB,
    run_id     BLOB,
    run_seq    INTEGER,
    payload    BLOB,
    artifact   BLOB,
    prev_hash  BLOB NOT NULL,
    hash       BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX records_by_run ON records (run_id, run_seq) WHERE run_seq IS NOT NULL;

-- The signed head, one row, replaced in the transaction that moves it.
CREATE TABLE head (
    slot        INTEGER PRIMARY KEY NOT NULL CHECK (slot = 1),
    count       INTEGER NOT NULL,
    head        BLOB NOT NULL,
    merkle_root BLOB NOT NULL,
    at          INTEGER NOT NULL,
    key_id      BLOB NOT NULL,
    signature   BLOB NOT NULL
) STRICT;

-- Signed heads that are kept for ever: one every so many records, and one at each orderly stop.
CREATE TABLE checkpoints (
    count       INTEGER PRIMARY KEY NOT NULL,
    head        BLOB NOT NULL,
    merkle_root BLOB NOT NULL,
    at          INTEGER NOT NULL,
    key_id      BLOB NOT NULL,
    signature   BLOB NOT NULL
) STRICT;

-- Roots of the aligned subtrees of 1024 leaves, and the peaks of the whole tree after each of them.
CREATE TABLE merkle_chunks (
    chunk INTEGER PRIMARY KEY NOT NULL,
    root  BLOB NOT NULL,
    peaks BLOB NOT NULL
) STRICT;

-- Which projections this database holds, in which version, and the tables each of them owns (a JSON array).
CREATE TABLE projections (
    name    TEXT PRIMARY KEY NOT NULL,
    version INTEGER NOT NULL,
    tables  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
