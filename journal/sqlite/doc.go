// Package sqlite keeps the journal in one SQLite file: a bound ledger in a drawer.
//
// One hand writes: all appends of a process go through one connection, one after the other.
// The caller collects what shares a sync. Other hands read over connections of their own,
// which neither wait for the writer nor make it wait. Several processes may open the
// same file; SQLite's locks keep their batches apart, and a watcher in one sees what
// another appended within [watchEvery].
//
// The file is in WAL mode with synchronous=FULL. A batch is one row: its changes one after
// the other as short binary records, and the hash of the last of them (encode.go says how).
// Entity names and the words around a change are kept once, in tables of their own. So an append
// of hundreds costs little more than one of a single change, and a change takes its data and
// some 15 bytes. Read checks every change against the hash chain as it goes, so a bit that
// flipped on disk becomes an error that names the change, never a wrong fact. A stream is
// read by passing over everybody's changes: a microsecond each.
//
// Compact compresses old batches where they are, so that they take less of the file. Readers notice
// nothing of it.
//
// Nothing here opens or closes the file except SQLite itself while it is in use: a
// close beside its own would drop its locks. Its log has none, and gets zeros at its end
// before it is full, so that a sync does not have to store where new blocks are.
//
// The one promise: a change whose Append returned is there after any crash, and a file
// that is damaged is reported and left as it is.
package sqlite
