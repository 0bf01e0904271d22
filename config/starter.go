package config

import (
	"bytes"
	_ "embed"
)

var (
	//go:embed starter/solo.yaml
	starterConfig []byte
	//go:embed starter/starter.script.yaml
	starterScript []byte
)

// StarterKind names one of the files that `fairlead init` writes.
type StarterKind string

// The files of a start. Each kind is the name under which it is written.
const (
	StarterConfig StarterKind = FileName
	StarterScript StarterKind = "starter.script.yaml"
)

// StarterKinds are all of them, in the order in which they are to be written: the
// configuration last, since it names the script.
func StarterKinds() []StarterKind { return []StarterKind{StarterScript, StarterConfig} }

// Starter is the commented file that `fairlead init` writes. Together they load
// without faults and give a team that works at once.
func Starter(kind StarterKind) []byte {
	switch kind {
	case StarterConfig:
		return bytes.Clone(starterConfig)
	case StarterScript:
		return bytes.Clone(starterScript)
	default:
		panic("config: there is no starter file " + string(kind))
	}
}
