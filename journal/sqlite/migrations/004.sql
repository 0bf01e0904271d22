-- Which entities a stretch of batches is about, so that who reads one entity skips the
-- others. It follows from the batches; a stretch without a row, or with a damaged one, is
-- read as a whole. Older journals have none for what was appended before.
CREATE TABLE stretch (
  first INTEGER PRIMARY KEY, -- seq of the first change of its first batch
  last  INTEGER NOT NULL,    -- of the last change of its last batch
  sum   BLOB NOT NULL,       -- SHA-256 of first, last and data
  data  BLOB NOT NULL        -- ids of the entities, ascending, each as the distance from the one before
) STRICT;
