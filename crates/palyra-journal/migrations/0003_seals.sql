-- The last record of each batch carries a keyed hash over journal, number and record hash, made with the journal's own key. It stands for the
-- signature until the next signed head: a signature takes twenty times as long, and a head of its own one more page per commit.
ALTER TABLE records ADD COLUMN seal BLOB;
