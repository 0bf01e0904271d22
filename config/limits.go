package config

import (
	"cmp"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// The words of on_output.
const (
	OutputWaits = "wait"
	OutputEnds  = "end"
)

// The least limits. Below them no program of an agent does any work, so the number has a mistake in its unit.
const (
	memoryMin = 64e6 // a program in Node needs this much to start
	diskMin   = 16e6 // its caches, before its first answer
	outputMin = 1e6  // one long answer
)

// limits fills in what an agent has from the team, and reports sizes that are too small. n may be nil.
func (c *checker) limits(n *file.YAMLNode, l *Limits, team Limits) {
	l.OnOutput = cmp.Or(l.OnOutput, team.OnOutput)
	if n.Get("output") == nil {
		l.OutputBytes = team.OutputBytes
	}
	for _, size := range []struct {
		key   string
		is    int64
		least int64
	}{{"memory", l.MemoryBytes, memoryMin}, {"disk", l.DiskBytes, diskMin}, {"output", l.OutputBytes, outputMin}} {
		if node := n.Get(size.key); node != nil && size.is > 0 && size.is < size.least {
			c.fault(node, "%s is too small for a session; write %dM or more, or 0", shown(node), size.least/1e6)
		}
	}
}
