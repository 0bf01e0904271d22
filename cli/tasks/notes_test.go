package tasks

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/git/task"
)

// A comment stands below its line of a diff, on the side that it is about, also if the line looks like the head of a file.
func TestPlaced(t *testing.T) {
	t.Parallel()
	thread := func(id int, file string, line int, old bool) task.Thread {
		return task.Comment{ID: id, File: file, Line: line, Old: old, Text: "why?\nsay it", Round: 1, Sent: 1}.Thread()
	}
	const diff = `diff --git a/up.go b/up.go
index 1..2 100644
--- a/up.go
+++ b/up.go
@@ -1,3 +1,4 @@
 one
--- a/other.go
+two
+++ b/other.go
 three
@@ -9 +10,0 @@ func x
-nine
\ No newline at end of file
diff --git "a/gr\303\274n.go" "b/gr\303\274n.go"
deleted file mode 100644
--- "a/gr\303\274n.go"
+++ /dev/null
@@ -1 +0,0 @@
-gone
`
	p := placedOf([]task.Thread{
		thread(1, "up.go", 1, false), thread(2, "up.go", 2, false), thread(3, "up.go", 2, true), thread(4, "up.go", 3, false),
		thread(5, "up.go", 9, true), thread(6, "grün.go", 1, true), thread(7, "other.go", 2, false), thread(8, "up.go", 77, false),
	})
	var got []string
	for line := range strings.Lines(diff) {
		for _, note := range p.below([]byte(line)) {
			got = append(got, strings.TrimSuffix(line, "\n")+" <- "+note)
		}
	}
	want := []string{
		" one <- comment 1 (round 1, open): why?", "--- a/other.go <- comment 3 (round 1, open): why?",
		"+two <- comment 2 (round 1, open): why?", "+++ b/other.go <- comment 4 (round 1, open): why?",
		"-nine <- comment 5 (round 1, open): why?", "-gone <- comment 6 (round 1, open): why?",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
