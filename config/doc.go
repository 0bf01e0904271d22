// Package config reads and checks fairlead.yaml, the configuration of a team.
//
// The file is parsed into a tree in which every value has a line and a column. Each key is a field
// of a struct: its tags say what is allowed, and its comment is what people read about it. One walk
// reads the tree into these structs; the JSON Schema for editors and doc/config.md are made from
// the same tags. Then the Config is checked for what concerns several keys: whether two agents
// share a folder, whether a channel names an unknown agent. In the result every default is filled
// in and every path is absolute.
//
//	cfg, err := config.Load(dir, os.LookupEnv)
//	var faults *config.Faults
//	if errors.As(err, &faults) { … } // each with line, column, path and text
//
// References (${NAME}) are resolved only in environments and in notify. Everywhere else a dollar
// sign is literal, so that a command may use its shell's variables. References are looked up when
// the file is read, to report missing variables, but only Resolve returns their values.
//
// A relative workspace must stay inside the repository after links are resolved, because a path
// that leaves it would mean another folder in every checkout. A folder outside the repository
// needs an absolute path. The folder need not exist yet. It is never inside .fairlead, .git or
// .claude, where no agent may write (SPEC X10).
//
// The one promise: all errors are reported at once, each with its place and a correction, and no
// message holds the value of a variable.
package config
