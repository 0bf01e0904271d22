-- The ledger. A change is a row; what repeats (entities, and the words around a
-- change) is kept once and named by number. Time is nanoseconds since 1970 UTC.
-- version is where the entity's stream ends. It is there twice, here and in the last
-- change, so that a damaged index cannot shorten a stream unnoticed.
CREATE TABLE entity (
  id      INTEGER PRIMARY KEY,
  version INTEGER NOT NULL DEFAULT 0,
  name    TEXT NOT NULL UNIQUE
) STRICT;

-- A phrase is everything about a change that comes again and again. It is a
-- compression only: the same phrase may stand here twice.
CREATE TABLE phrase (
  id         INTEGER PRIMARY KEY,
  machine    TEXT NOT NULL,
  rule       TEXT NOT NULL,
  was        TEXT NOT NULL,
  became     TEXT NOT NULL,
  cue        TEXT NOT NULL,
  actor_kind TEXT NOT NULL,
  actor_id   TEXT NOT NULL
) STRICT;

CREATE TABLE change (
  seq     INTEGER PRIMARY KEY,
  entity  INTEGER NOT NULL,
  version INTEGER NOT NULL,
  time    INTEGER NOT NULL,
  phrase  INTEGER NOT NULL,
  cause   INTEGER NOT NULL,
  hash    BLOB NOT NULL,
  data    BLOB
) STRICT;

-- An index entry carries the seq, so a stream is read in order from any place.
CREATE INDEX change_by_entity ON change (entity);

CREATE TRIGGER stream_ends AFTER INSERT ON change BEGIN
  UPDATE entity SET version = NEW.version WHERE id = NEW.entity;
END;

CREATE TABLE snapshot (
  seq    INTEGER PRIMARY KEY,
  hash   BLOB NOT NULL,
  format TEXT NOT NULL,
  sum    BLOB NOT NULL, -- SHA-256 of data
  data   BLOB NOT NULL
) STRICT;

-- For people with a database browser; nothing of ours reads it.
CREATE VIEW history AS
  SELECT c.seq, strftime('%Y-%m-%dT%H:%M:%fZ', c.time / 1000000000.0, 'unixepoch') AS time,
         p.machine, e.name AS entity, c.version, p.rule AS row, p.was AS "from", p.became AS "to",
         p.cue AS "trigger", p.actor_kind, p.actor_id, c.cause, CAST(c.data AS TEXT) AS data, lower(hex(c.hash)) AS hash
  FROM change c JOIN entity e ON e.id = c.entity JOIN phrase p ON p.id = c.phrase
  ORDER BY c.seq;
