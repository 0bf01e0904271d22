package tasks

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/git/task"
)

// placed prints a diff of git's and writes each comment below the line that it is about. It knows the lines by git's own prefixes. A
// comment on a line that the diff does not have is not written: the list above the diff has it.
type placed struct {
	at map[task.At][]string

	file, was string // the names on both sides; empty: there is none
	old, new  int    // the next line on each side
	left      [2]int // lines of the hunk that are to come, on each side
}

// placedOf has a text for each comment with a line.
func placedOf(all []task.Thread) *placed {
	p := &placed{at: map[task.At][]string{}}
	for _, c := range all {
		if c.Now.Line > 0 {
			p.at[c.Now] = append(p.at[c.Now], threadTitle(c)+": "+shortText(c))
		}
	}
	return p
}

var hunkLine = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// below are the comments that stand below a line of the diff.
func (p *placed) below(line []byte) []string {
	if p == nil || len(p.at) == 0 {
		return nil
	}
	if p.left[0] > 0 || p.left[1] > 0 {
		var at task.At
		switch {
		case bytes.HasPrefix(line, []byte("+")):
			at = task.At{File: p.file, Line: p.new}
			p.step(0, 1)
		case bytes.HasPrefix(line, []byte("-")):
			at = task.At{File: p.file, Line: p.old, Old: true}
			if p.file == "" {
				at.File = p.was
			}
			p.step(1, 0)
		case bytes.HasPrefix(line, []byte(`\`)):
		default:
			at = task.At{File: p.file, Line: p.new}
			p.step(1, 1)
		}
		return p.at[at]
	}
	switch {
	case bytes.HasPrefix(line, []byte("--- ")):
		p.was = diffName(line[4:], "a/")
	case bytes.HasPrefix(line, []byte("+++ ")):
		p.file = diffName(line[4:], "b/")
	default:
		if m := hunkLine.FindSubmatch(line); m != nil {
			p.old, p.new = number(m[1]), number(m[3])
			p.left = [2]int{count(m[2]), count(m[4])}
		}
	}
	return nil
}

func (p *placed) step(old, new int) {
	p.old, p.new = p.old+old, p.new+new
	p.left[0], p.left[1] = p.left[0]-old, p.left[1]-new
}

// diffName is the name of a file in a line of git; empty for /dev/null.
func diffName(text []byte, prefix string) string {
	name := strings.TrimSuffix(strings.TrimRight(string(text), "\r\n"), "\t")
	if unquoted, err := strconv.Unquote(name); err == nil {
		name = unquoted
	}
	name, is := strings.CutPrefix(name, prefix)
	if !is {
		return ""
	}
	return name
}

func number(text []byte) int {
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0
	}
	return n
}

// count is the number of lines in the head of a hunk, which git leaves out if it is 1.
func count(text []byte) int {
	if len(text) == 0 {
		return 1
	}
	return number(text)
}
