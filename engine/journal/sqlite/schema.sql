-- A change is a row. Time is nanoseconds since 1970 UTC; data is the JSON as it was appended, NULL for none.
CREATE TABLE change (
  seq        INTEGER PRIMARY KEY,
  version    INTEGER NOT NULL,
  time       INTEGER NOT NULL,
  entity     TEXT NOT NULL,
  machine    TEXT NOT NULL,
  row        TEXT NOT NULL,
  "from"     TEXT NOT NULL,
  "to"       TEXT NOT NULL,
  "trigger"  TEXT NOT NULL,
  actor_kind TEXT NOT NULL,
  actor_id   TEXT NOT NULL,
  cause      INTEGER NOT NULL,
  data       BLOB,
  hash       BLOB NOT NULL
) STRICT;

-- An entry carries the seq, so that a stream is read in order from any place.
CREATE INDEX change_of_entity ON change (entity);

-- The last version of each entity. It is stored a second time so that a damaged index cannot shorten a stream unnoticed.
CREATE TABLE stream (
  entity  TEXT PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER stream_ends AFTER INSERT ON change BEGIN
  INSERT INTO stream (entity, version) VALUES (NEW.entity, NEW.version) ON CONFLICT DO UPDATE SET version = NEW.version;
END;

-- The parts of the archive: changes that are in the file beside this one, and no longer here.
CREATE TABLE archive (
  first    INTEGER PRIMARY KEY,
  last     INTEGER NOT NULL,
  hash     BLOB NOT NULL,    -- of the change last
  place    INTEGER NOT NULL, -- of the first byte in the file
  size     INTEGER NOT NULL, -- in bytes
  sum      BLOB NOT NULL,    -- SHA-256 of these bytes
  entities TEXT NOT NULL     -- that have changes in it, each between two line ends
) STRICT;

CREATE TABLE snapshot (
  seq    INTEGER PRIMARY KEY,
  hash   BLOB NOT NULL,
  format TEXT NOT NULL,
  sum    BLOB NOT NULL, -- SHA-256 of data
  data   BLOB NOT NULL
) STRICT;
