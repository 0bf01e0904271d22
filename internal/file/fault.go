package file

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// faultsMax is how many faults of one file are listed; longer lists repeat the same mistake.
const faultsMax = 1000

// Fault is one error in a file that a person has written, with its place.
type Fault struct {
	File   string `json:"file"`   // as the caller named it
	Line   int    `json:"line"`   // from 1; 0 if it concerns the whole file
	Column int    `json:"column"` // from 1, in characters
	Path   string `json:"path"`   // agents.coder.driver, steps.code.needs[0]; empty for the whole file
	Text   string `json:"text"`   // what is wrong and how to correct it
}

// Fault is a fault at a place.
func (at Place) Fault(name, path, text string) Fault {
	return Fault{name, at.Line, at.Column, path, text}
}

func (f Fault) Error() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", at, f.Line, f.Column)
	}
	if f.Path != "" {
		at += ": " + f.Path
	}
	return at + ": " + f.Text
}

// FaultLines is a list of faults as text, one on each line.
func FaultLines(list []Fault) string {
	lines := make([]string, len(list))
	for i, one := range list {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// SortFaults puts faults in the order of their places, leaves out those that are given twice, and cuts a long list.
func SortFaults(list []Fault) []Fault {
	slices.SortStableFunc(list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Text, b.Text))
	})
	list = slices.Compact(list)
	if more := len(list) - faultsMax; more > 0 {
		last := list[faultsMax]
		last.Path, last.Text = "", fmt.Sprintf("and %d more from here on; correct these first", more)
		list = append(list[:faultsMax:faultsMax], last)
	}
	return list
}

// Nearest is the known word that is closest to a misspelt one, with fewer than limit letters that differ; empty: none is.
func Nearest(word string, known []string, limit int) (best string) {
	for _, k := range known {
		if d := editDistance(word, k, limit); d < limit {
			best, limit = k, d
		}
	}
	return best
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
