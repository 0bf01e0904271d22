package anchor

import (
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	Around       = 3   // lines before and after the commented one that are kept
	LineBytesMax = 400 // of a line that is kept and compared

	gapMax   = 40     // lines that may stand where the commented one was
	linesMax = 50_000 // lines of a file in which a place is looked for
)

// Anchor is the text that a comment is about.
type Anchor struct {
	Lines []string // the hunk, each line as Text has it
	At    int      // the place of the commented line in it, from 0
	Line  int      // its number in the file where the comment was said, from 1
}

// Spot is a place in other content. Its zero value says that the text is not there.
type Spot struct {
	Line    int  // from 1
	Changed bool // the line that stands there is not the one that was commented
}

// Text is a line as it is kept and compared.
func Text(line string) string {
	return clip.To(strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "\uFFFD"), LineBytesMax)
}

// Lines are the lines of a file, as they are compared.
func Lines(content string) []string {
	if content == "" {
		return nil
	}
	rows := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	rows = rows[:min(len(rows), linesMax)]
	for i := range rows {
		rows[i] = Text(rows[i])
	}
	return rows
}

// Of is the text around a line of a file, counted from 1. It is empty if there is no such line.
func Of(rows []string, line int) Anchor {
	if line < 1 || line > len(rows) {
		return Anchor{}
	}
	first := max(0, line-1-Around)
	return Anchor{rows[first:min(len(rows), line+Around)], line - 1 - first, line}
}

// weight is how much a line says about its place: an empty one nothing, a bracket little.
func weight(line string) int {
	switch line = strings.TrimSpace(line); {
	case line == "":
		return 0
	case strings.IndexFunc(line, func(r rune) bool { return r > ' ' && !strings.ContainsRune("{}[]()<>/*-=#;,.:\"'`|", r) }) < 0:
		return 1
	default:
		return 3
	}
}

// Find looks for the place of an anchor in the lines of a file. The best place has the same line with the same lines around it. If
// the line is not there, it is the place between the lines that were before and after it. If several places fit equally well, it is
// the one nearest to the line's old number.
func Find(rows []string, a Anchor) Spot {
	if len(a.Lines) == 0 || a.At < 0 || a.At >= len(a.Lines) {
		return Spot{}
	}
	own := a.Lines[a.At]
	before, after := a.Lines[:a.At], a.Lines[a.At+1:]
	around := 0
	for i, line := range a.Lines {
		if i != a.At {
			around += weight(line)
		}
	}
	var best Spot
	bestFit := 0
	take := func(s Spot, fit int) {
		if fit > bestFit || fit == bestFit && best.Line > 0 && distance(s.Line, a.Line) < distance(best.Line, a.Line) {
			best, bestFit = s, fit
		}
	}
	same, sameAt := 0, 0
	for i, other := range rows {
		if other != own {
			continue
		}
		same, sameAt = same+1, i
		fit := 0
		for j, line := range before {
			if at := i - len(before) + j; at >= 0 && rows[at] == line {
				fit += weight(line)
			}
		}
		for j, line := range after {
			if at := i + 1 + j; at < len(rows) && rows[at] == line {
				fit += weight(line)
			}
		}
		if fit > 0 || around == 0 {
			take(Spot{Line: i + 1}, fit+weight(own)+1)
		}
	}
	if best.Line == 0 && same == 1 && weight(own) > 1 { // all lines around it have changed, but there is only one such line
		return Spot{Line: sameAt + 1}
	}
	if bestFit == around+weight(own)+1 {
		return best
	}
	ends, begins := matchesBefore(rows, before), matchesAfter(rows, after)
	for i := 0; i <= len(rows); i++ {
		if ends[i] > 1 { // none of the lines that were after it is found
			take(Spot{Line: min(i+1, len(rows)), Changed: true}, ends[i])
		}
		if begins[i] > 1 { // none of the lines that were before it is found
			take(Spot{Line: max(i, 1), Changed: true}, begins[i])
		}
		if ends[i] == 0 {
			continue
		}
		for j := i; j <= min(len(rows), i+gapMax); j++ {
			if begins[j] > 0 {
				take(Spot{Line: min(i+1, len(rows)), Changed: true}, ends[i]+begins[j])
			}
		}
	}
	return best
}

// matchesBefore is for each place between lines how much of some lines stands directly before it.
func matchesBefore(rows, lines []string) []int {
	fits := make([]int, len(rows)+1)
	for i := range fits {
		for j := 1; j <= min(i, len(lines)) && rows[i-j] == lines[len(lines)-j]; j++ {
			fits[i] += weight(rows[i-j])
		}
	}
	return fits
}

// matchesAfter is for each place between lines how much of some lines stands directly after it.
func matchesAfter(rows, lines []string) []int {
	fits := make([]int, len(rows)+1)
	for i := range fits {
		for j := 0; j < min(len(rows)-i, len(lines)) && rows[i+j] == lines[j]; j++ {
			fits[i] += weight(rows[i+j])
		}
	}
	return fits
}

func distance(a, b int) int { return max(a-b, b-a) }
