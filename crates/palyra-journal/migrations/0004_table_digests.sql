-- A keyed digest of the rows of each table, changed in the transaction that changes the rows, and one keyed hash (`#log`) over all of them and the end of the log. Start compares
-- them with the tables and builds again from the log what differs.
CREATE TABLE table_digests (
    name   TEXT PRIMARY KEY NOT NULL,
    digest BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- There are none yet; goes when all derived tables have been built with their digests.
INSERT INTO table_digests (name, digest) VALUES ('#unbuilt', x'');

-- Records that a projection would not take when it was built from the log. They stay in the log; the projection goes on without them.
CREATE TABLE quarantined (
    projection TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    reason     TEXT NOT NULL,
    PRIMARY KEY (projection, seq)
) STRICT, WITHOUT ROWID;
