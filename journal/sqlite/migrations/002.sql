-- A batch is a row: what was appended at once is stored, hashed and read at once, and a
-- batch of a hundred changes costs little more than one of a single change. The records in
-- data are described in encode.go.
CREATE TABLE batch (
  first INTEGER PRIMARY KEY, -- seq of its first change; the next batch's is one more than last
  last  INTEGER NOT NULL,
  hash  BLOB NOT NULL,       -- of its last change
  data  BLOB NOT NULL
) STRICT;

-- Where the streams end, as of some seq, so that a start need not read everything for it:
-- pairs of entity and version. It follows from the batches, and is made again from them
-- where it is missing or damaged.
CREATE TABLE ends (
  seq  INTEGER PRIMARY KEY, -- last change that is counted
  sum  BLOB NOT NULL,       -- SHA-256 of data
  data BLOB NOT NULL
) STRICT;
