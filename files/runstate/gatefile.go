package runstate

import (
	"fmt"
	"slices"

	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	gateBytesMax = 1 << 20 // of the file: 1,000 names need a tenth
	gatesMax     = 10_000  // names; a plan may wait for 1,000
)

// ReadGates reads a gate-state file (--gate-state-file) and returns the names that are true, sorted. Links
// are followed, because the user named the file. The error is a *ReportFault, or wraps fs.ErrNotExist.
func ReadGates(path string) (open []string, err error) {
	b, err := readPlain(path, gateBytesMax)
	if err != nil {
		return nil, fmt.Errorf("read the gate-state file %s: %w", path, err)
	}
	return ParseGates(path, b)
}

// ParseGates parses a gate-state file: a JSON object of names to true or false. The error is a *ReportFault.
func ParseGates(name string, b []byte) (open []string, err error) {
	var gates map[string]*bool // null: not open
	content := file.Content{File: name, Text: file.Unmarked(b)}
	if err := content.Decode(gateBytesMax, &gates); err != nil {
		return nil, reportFault(err)
	}
	if len(gates) > gatesMax {
		return nil, &ReportFault{File: name, Line: 1, Text: fmt.Sprintf("has %d names, %d at most", len(gates), gatesMax)}
	}
	for name, is := range gates {
		if is != nil && *is {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	return open, nil
}
