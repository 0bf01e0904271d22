package task

import (
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// A comment keeps the text around its line, and its place in other content is where this text is. Line numbers alone would point to
// another line after each change above them.

const (
	hunkAround  = 3      // lines before and after the commented one that are kept
	gapMax      = 40     // lines that may stand where the commented one was
	anchorLines = 50_000 // lines of a file in which a place is looked for
)

// anchor is the text that a comment is about.
type anchor struct {
	lines []string // the hunk, each line as anchorText has it
	at    int      // the place of the commented line in it, from 0
	line  int      // its number in the file where the comment was said, from 1
}

// spot is a place in other content. Its zero value is none: the text is gone.
type spot struct {
	line    int  // from 1
	changed bool // the line that stands there is not the one that was commented
}

// anchorText is a line as it is kept and compared.
func anchorText(line string) string {
	return clip.To(strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "\uFFFD"), quoteBytesMax)
}

// textLines are the lines of a file, as they are compared.
func textLines(content string) []string {
	if content == "" {
		return nil
	}
	rows := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	rows = rows[:min(len(rows), anchorLines)]
	for i := range rows {
		rows[i] = anchorText(rows[i])
	}
	return rows
}

// anchorAt is the text around a line of a file, counted from 1. It is empty if there is no such line.
func anchorAt(rows []string, line int) anchor {
	if line < 1 || line > len(rows) {
		return anchor{}
	}
	first := max(0, line-1-hunkAround)
	return anchor{rows[first:min(len(rows), line+hunkAround)], line - 1 - first, line}
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

// find looks for the place of an anchor in the lines of a file: where the same line stands in the same surroundings, or where it stood
// between its surroundings. Of several places that fit equally well it is the nearest to the number that the line had.
func find(rows []string, a anchor) spot {
	if len(a.lines) == 0 || a.at < 0 || a.at >= len(a.lines) {
		return spot{}
	}
	own := a.lines[a.at]
	before, after := a.lines[:a.at], a.lines[a.at+1:]
	around := 0
	for i, line := range a.lines {
		if i != a.at {
			around += weight(line)
		}
	}
	var best spot
	bestFit := 0
	take := func(s spot, fit int) {
		if fit > bestFit || fit == bestFit && best.line > 0 && distance(s.line, a.line) < distance(best.line, a.line) {
			best, bestFit = s, fit
		}
	}
	same, sameAt := 0, 0
	for i, row := range rows {
		if row != own {
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
			take(spot{line: i + 1}, fit+weight(own)+1)
		}
	}
	if best.line == 0 && same == 1 && weight(own) > 1 { // all around it has changed, and it says where it is
		return spot{line: sameAt + 1}
	}
	if bestFit == around+weight(own)+1 {
		return best
	}
	ends, begins := matchesBefore(rows, before), matchesAfter(rows, after)
	for i := 0; i <= len(rows); i++ {
		if ends[i] > 1 { // with nothing of what stood after it
			take(spot{line: min(i+1, len(rows)), changed: true}, ends[i])
		}
		if begins[i] > 1 { // with nothing of what stood before it
			take(spot{line: max(i, 1), changed: true}, begins[i])
		}
		if ends[i] == 0 {
			continue
		}
		for j := i; j <= min(len(rows), i+gapMax); j++ {
			if begins[j] > 0 {
				take(spot{line: min(i+1, len(rows)), changed: true}, ends[i]+begins[j])
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
