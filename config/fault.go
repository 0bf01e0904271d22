package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// faultsMax is how many faults are listed; longer lists repeat the same mistake.
const faultsMax = 1000

// Fault is one error in a file, with its place.
type Fault struct {
	File   string `json:"file"`
	Line   int    `json:"line"`   // from 1; 0 if it concerns the whole file
	Column int    `json:"column"` // from 1, in characters
	Path   string `json:"path"`   // agents.coder.driver; empty for the whole file
	Text   string `json:"text"`   // what is wrong and how to correct it
}

func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	b.WriteString(": ")
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Text)
	return b.String()
}

// Faults holds every error in a file, in file order.
type Faults struct {
	List []Fault
}

func (f *Faults) Error() string {
	lines := make([]string, len(f.List))
	for i, one := range f.List {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// findings collects faults and notes while a file is checked.
type findings struct {
	file   string
	faults []Fault
	notes  []Fault
}

// add reports a fault at a place that is not a value.
func (f *findings) add(at file.Place, path, format string, args ...any) {
	f.faults = append(f.faults, Fault{f.file, at.Line, at.Column, path, fmt.Sprintf(format, args...)})
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
	f.notes = append(f.notes, Fault{f.file, n.Line, n.Column, n.Path, fmt.Sprintf(format, args...)})
}

// err returns the faults, sorted, or nil.
func (f *findings) err() error {
	if len(f.faults) == 0 {
		return nil
	}
	sortFaults(f.faults)
	list := f.faults
	if more := len(list) - faultsMax; more > 0 {
		list = append(list[:faultsMax:faultsMax], Fault{File: f.file, Text: fmt.Sprintf("and %d more faults", more)})
	}
	return &Faults{List: list}
}

func sortFaults(list []Fault) {
	slices.SortStableFunc(list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Text, b.Text))
	})
}

// didYouMean returns " (did you mean exec?)", or nothing if no known word is close.
func didYouMean(word string, known []string) string {
	best, distance := "", len(word)/3+2
	for _, k := range known {
		if d := editDistance(word, k, distance); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// editDistance counts the letters to add, remove, change or swap. It stops at limit, so that a long word
// costs little.
func editDistance(a, b string, limit int) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	if len(x)-len(y) >= limit || len(y)-len(x) >= limit {
		return limit
	}
	before, last, now := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		now[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return min(last[len(y)], limit)
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
