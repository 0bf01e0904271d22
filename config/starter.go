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

// The files that init writes. Each kind is its file's name.
const (
	StarterConfig StarterKind = FileName
	StarterScript StarterKind = "starter.script.yaml"
)

// StarterKinds returns all kinds in the order in which to write them: the configuration last, because it
// names the script.
func StarterKinds() []StarterKind { return []StarterKind{StarterScript, StarterConfig} }

// Starter returns the commented file that `fairlead init` writes. Together the files load without faults and
// give a working team.
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
