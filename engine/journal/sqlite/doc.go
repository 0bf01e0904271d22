// Package sqlite keeps the journal in one SQLite file, one row for each change, and its archived part in a second file.
//
// # The file
//
// The tables are in schema.sql. A row of change has the fields of a [journal.Change], each in a column of its own, and can be read
// with any program for databases. The number of the format is in the header (user_version); this program reads no other.
//
// All appends of a process go through one connection, one after the other. The caller collects what shares a sync. Readers have
// connections of their own, which neither wait for the writer nor make it wait. Several processes may open the same
// file; SQLite's locks keep their batches apart, and a watcher in one sees what another appended within [watchEvery].
//
// The file is in WAL mode with synchronous=FULL: a batch is one transaction and one sync. Every change that is read is checked against
// the hash of the change before it, so a bit that flipped on disk becomes an error that names the change. Who reads one
// entity goes by the index, and compares the versions and the end of its stream.
//
// # The archive
//
// [Compact] moves old changes into a file beside the journal, whose name ends with -archive. It has parts of some
// thousand changes, one behind the other. A part is a gzip file of lines, each a change as a [journal.Line]; zcat prints all of
// them. The table archive says where each part is, which changes and entities it has, its checksum, and the hash of its last
// change. A part is written and synced first, and then one transaction adds its row and removes its changes from the table.
// What an interrupted Compact has written behind the last part is overwritten.
//
// The one promise: a change whose Append returned is there after any crash, and a file that is damaged is reported and left as it is.
package sqlite
