package task

import (
	"strings"
	"testing"
)

// A comment is on a line of the newest content, or on one of a file that the task has deleted. Any other place is refused, and
// the refusal names the last line or the file.
func TestLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.task.Tree, "b.txt", "new\n")
	w.git(w.task.Tree, "rm", "--quiet", "a.txt")
	for _, c := range []struct {
		file string
		line int
		text string
		old  bool
		no   string
	}{
		{"b.txt", 1, "new", false, ""},
		{"b.txt", 0, "", false, ""},
		{"a.txt", 2, "two", true, ""},
		{"b.txt", 3, "", false, "the last line of b.txt is 1"},
		{"c.txt", 1, "", false, "task T1 has no file c.txt"},
	} {
		text, old, err := Review{w.task}.Line(w.Context(), c.file, c.line)
		if text != c.text || old != c.old || (c.no == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.no) {
			t.Errorf("%s:%d is %q, old %t, %v", c.file, c.line, text, old, err)
		}
	}
}
