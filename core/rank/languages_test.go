package rank_test

import (
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/rank"
)

// Each half of the inputs in five languages goes to the right agent in 95 of 100, and to no wrong agent in 95 of
// 100 where MAIN is right (SPEC: routing). The fresh ones were written before the rules, and none of the rules was
// changed for them: their halves are the lines with odd and even numbers.
func TestRankLanguages(t *testing.T) {
	for _, name := range []string{"inputs-open.txt", "inputs-kept.txt", "inputs-fresh.txt"} {
		halves := [2]figures{}
		crew := crewOf(t, "crew.txt")
		n := 0
		for _, pair := range pairs(t, "testdata/"+name) {
			if pair[0] == "@" {
				crew = crewOf(t, pair[1])
				continue
			}
			want := strings.TrimPrefix(pair[0], "-")
			r := rank.Rank(pair[1], crew)
			explained(t, pair[1], r)
			half := &halves[0]
			if n++; name == "inputs-fresh.txt" {
				half = &halves[n%2]
			}
			half.add(r.Best, want)
			if r.Best != want {
				t.Logf("%s: %q goes to %q, it should to %q: %s", name, pair[1], r.Best, pair[0], r.Reason)
			}
		}
		for _, f := range halves {
			if f.plain == 0 { // each of the other files is a half
				continue
			}
			t.Logf("%s: %d of %d plain inputs are right; %d of %d that are MAIN's went to an agent", name, f.right, f.plain, f.wrong,
				f.mains)
			if f.right*100 < f.plain*95 || f.wrong*100 > f.mains*5 {
				t.Errorf("%s: fewer than 95 of 100", name)
			}
		}
	}
}

// figures count the inputs with an agent and those of MAIN, and which of them went where they should not.
type figures struct{ plain, right, mains, wrong int }

func (f *figures) add(got, want string) {
	switch {
	case want == "" && got != "":
		f.wrong++
		fallthrough
	case want == "":
		f.mains++
	case got == want:
		f.right++
		fallthrough
	default:
		f.plain++
	}
}

// pairs reads lines of "NAME | TEXT", and of "@ FILE".
func pairs(t *testing.T, path string) [][2]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all [][2]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if file, ok := strings.CutPrefix(line, "@ "); ok {
			all = append(all, [2]string{"@", file})
		} else if name, rest, ok := strings.Cut(line, " | "); ok && !strings.HasPrefix(line, "#") {
			all = append(all, [2]string{name, rest})
		}
	}
	return all
}
