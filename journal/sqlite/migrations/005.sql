-- The data of a batch may be compressed (compact.go). The tables are as they were; the number of the
-- format keeps programs away that do not know it.
SELECT 5;
