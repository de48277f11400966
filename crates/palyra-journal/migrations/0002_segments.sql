-- Sealed segments: consecutive ranges of records that were moved out of `records` into files of their own.
CREATE TABLE segments (
    first_seq       INTEGER PRIMARY KEY NOT NULL,
    last_seq        INTEGER NOT NULL,
    file            TEXT NOT NULL,
    bytes           INTEGER NOT NULL,
    file_digest     BLOB NOT NULL,
    first_prev_hash BLOB NOT NULL,
    last_hash       BLOB NOT NULL,
    sealed_at       INTEGER NOT NULL
) STRICT;
