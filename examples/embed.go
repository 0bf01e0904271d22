package examples

import "embed"

// Files are the examples that the program has with it, a folder each. `fairlead demo` joins crew, review, tasks and trio with the
// configuration in demo; `fairlead demo --hosts` begins with hosts.
//
//go:embed all:crew all:demo all:hosts all:review all:tasks all:trio all:workflows
var Files embed.FS
