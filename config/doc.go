// Package config reads fairlead.yaml, the one file in which people say what
// their team is.
//
// The file is read as a tree in which every value knows its line and column. The
// tree is compared with a JSON Schema, which says what may stand where and which
// editors read too; then it is asked what no schema can ask: whether the files
// that it names exist, whether two agents would share a folder, whether a channel
// names somebody who is not there. What comes out is a Config in which every
// default is filled in and every path is absolute.
//
//	cfg, err := config.Load(dir, os.LookupEnv)
//	var faults *config.Faults
//	if errors.As(err, &faults) { … } // each with line, column, path and words
//
// References (${NAME}) stand in environments and in notify alone; everywhere else
// a dollar is a dollar, so that a command may hold its shell's own. They are looked
// up when the file is read, to say what is missing, and kept as references: a
// value exists only in the answer of Resolve.
//
// Where an agent works: a relative workspace stays within the repository, links
// followed, since a path that climbs out of it means another folder in every
// checkout. Outside of the repository a folder is named absolutely. It need not
// exist yet. It is never inside .fairlead, .git or .claude, where no agent may
// write (SPEC X10).
//
// The one promise: all that is wrong is told at once, each fault with its place
// and a way out, and no message ever holds the value of a variable.
package config
