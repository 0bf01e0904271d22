package runfile

import (
	"fmt"
	"slices"
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
	r, fields, err := openReport(name, b, gateBytesMax)
	if err != nil {
		return nil, err
	}
	if len(fields) > gatesMax {
		return nil, &ReportFault{File: name, Line: 1, Text: fmt.Sprintf("has %d names, %d at most", len(fields), gatesMax)}
	}
	for _, f := range fields {
		switch string(f.Raw) {
		case "true":
			open = append(open, f.Name)
		case "false", "null":
		default:
			r.Wrong(f, "", "is neither true nor false; write it without quotes")
		}
	}
	if r.Fault != nil {
		return nil, r.reportFault()
	}
	slices.Sort(open)
	return open, nil
}
