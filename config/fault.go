package config

import (
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// Fault is one error in a file, with its place.
type Fault = file.Fault

// Faults holds every error in a file, in file order.
type Faults struct {
	List []Fault
}

func (f *Faults) Error() string { return file.FaultLines(f.List) }

// findings collects faults and notes while a file is checked.
type findings struct {
	file   string
	faults []Fault
	notes  []Fault
}

// add reports a fault at a place that is not a value.
func (f *findings) add(at file.Place, path, format string, args ...any) {
	f.faults = append(f.faults, at.Fault(f.file, path, fmt.Sprintf(format, args...)))
}

// fault reports what is wrong with a value.
func (f *findings) fault(n *file.YAMLNode, format string, args ...any) {
	f.add(n.Place, n.Path, format, args...)
}

// keyFault reports what is wrong with a key.
func (f *findings) keyFault(key *file.YAMLField, format string, args ...any) {
	f.add(key.Place, key.Value.Path, format, args...)
}

func (f *findings) note(n *file.YAMLNode, format string, args ...any) {
	f.notes = append(f.notes, n.Place.Fault(f.file, n.Path, fmt.Sprintf(format, args...)))
}

// err returns the faults, sorted, or nil.
func (f *findings) err() error {
	if len(f.faults) == 0 {
		return nil
	}
	return &Faults{List: file.SortFaults(f.faults)}
}

// didYouMean returns " (did you mean exec?)", or nothing if no known word is close.
func didYouMean(word string, known []string) string {
	if best := file.Nearest(word, known, len(word)/3+2); best != "" {
		return " (did you mean " + best + "?)"
	}
	return ""
}

// shown formats a scalar for a message. Environments and addresses never get here.
func shown(n *file.YAMLNode) string {
	switch n.Kind {
	case file.YAMLText:
		return quoteShort(n.Text)
	case file.YAMLNumber, file.YAMLBool:
		return strings.Trim(quoteShort(n.Text), `"`)
	default:
		return file.YAMLKindWords[n.Kind]
	}
}
