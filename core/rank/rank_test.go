package rank_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/rank"
)

// The table of inputs and selected agents (D3). Its head explains the format.
func TestRankTable(t *testing.T) {
	text, err := os.ReadFile("testdata/inputs.txt")
	if err != nil {
		t.Fatal(err)
	}
	var crew []rank.Description
	inputs := 0
	for i, line := range strings.Split(string(text), "\n") {
		switch before, after, _ := strings.Cut(line, " | "); {
		case line == "" || strings.HasPrefix(line, "#"):
		case line == "@crew":
			crew = nil
		case strings.HasPrefix(line, "@ "):
			crew = append(crew, rank.Description{Name: strings.TrimPrefix(before, "@ "), Text: after})
		default:
			inputs++
			want := strings.TrimSpace(before)
			r := rank.Rank(after, crew)
			explained(t, after, r)
			if r.Best != strings.TrimPrefix(want, "-") {
				t.Errorf("inputs.txt:%d: %q goes to %q, it should to %q: %s", i+1, after, r.Best, want, r.Reason)
			}
		}
	}
	if inputs < 30 {
		t.Errorf("%d inputs; there should be 30", inputs)
	}
}

// explained checks every ranking: scores are sums, the order follows them, and the threshold decides.
func explained(t *testing.T, input string, r rank.Ranking) {
	t.Helper()
	for i, c := range r.Scores {
		sum := 0.0
		for _, term := range c.Terms {
			sum += term.Score
			if term.Score <= 0 || !slices.Contains(r.Terms, term.Word) && !partsOf(input, term.Word) {
				t.Errorf("%q: %s has the term %+v, which is not of the input or weighs nothing", input, c.Name, term)
			}
		}
		if math.Abs(sum-c.Score) > 1e-9 || len(c.Terms) == 0 || math.IsNaN(c.Score) {
			t.Errorf("%q: %s has %v, and its terms make %v", input, c.Name, c.Score, sum)
		}
		if i > 0 && (r.Scores[i-1].Score < c.Score || r.Scores[i-1].Score == c.Score && r.Scores[i-1].Name > c.Name) {
			t.Errorf("%q: %s stands before %s", input, r.Scores[i-1].Name, c.Name)
		}
	}
	reached := len(r.Scores) > 0 && r.Scores[0].Score >= r.Threshold && (len(r.Scores) == 1 || r.Scores[1].Score <= r.Scores[0].Score*0.9)
	if reached != (r.Best != "") || reached && r.Best != r.Scores[0].Name || r.Reason == "" {
		t.Errorf("%q: best %q, reason %q, threshold %v, scores %+v", input, r.Best, r.Reason, r.Threshold, r.Scores)
	}
}

// partsOf reports whether a term of several words has them from the input.
func partsOf(input, term string) bool {
	for part := range strings.FieldsSeq(strings.ReplaceAll(term, " … ", " ")) {
		if !strings.Contains(input, part) {
			return false
		}
	}
	return strings.Contains(term, " ")
}

func TestRankOver(t *testing.T) {
	r := rank.Rank("tune this SQL query", []rank.Description{{Name: "dba", Text: "SQL queries"}})
	if r.Best != "dba" {
		t.Fatal(r.Reason)
	}
	if high := r.Over(100); high.Best != "" || high.Threshold != 100 || !strings.Contains(high.Reason, "no agent reaches 100.00") {
		t.Errorf("%+v", high)
	}
	if diff := cmp.Diff(r, r.Over(0)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(r, r.Over(100).Over(r.Threshold)); diff != "" {
		t.Error(diff)
	}
}

func TestRankTies(t *testing.T) {
	r := rank.Rank("SQL tuning", []rank.Description{{"b", "SQL tuning"}, {"a", "SQL tuning"}, {"c", "SQL tuning"}})
	if r.Best != "" || !strings.Contains(r.Reason, "no clear choice between a ") || r.Scores[0].Name != "a" || r.Scores[1].Name != "b" ||
		r.Scores[2].Name != "c" {
		t.Errorf("%+v", r)
	}
}

// FuzzRank checks that Rank does not panic, is deterministic, and explains each score.
func FuzzRank(f *testing.F) {
	f.Add("Write a hello world Python script", "engineer", "Use to write Python scripts", "dba", "SQL")
	f.Add("データベースを直して", "db", "データベース設計", "x", "\xff\xfe C++ C#")
	f.Add("", "", "", "", "")
	f.Add("größe GRÖSSE ﬁ İ", "größe", "İstanbul", "a", "ǅ")
	f.Fuzz(func(t *testing.T, input, nameA, textA, nameB, textB string) {
		crew := []rank.Description{{nameA, textA}, {nameB, textB}}
		r := rank.Rank(input, crew)
		explained(t, input, r)
		if diff := cmp.Diff(r, rank.Rank(input, crew)); diff != "" {
			t.Error(diff)
		}
	})
}

// BenchmarkRank ranks a thousand descriptions of usual length. Aim: well under 10 ms each.
func BenchmarkRank(b *testing.B) {
	subjects := strings.Fields("python golang rust database frontend security testing documentation kubernetes network payment search audio video graph")
	crew := make([]rank.Description, 1000)
	for i := range crew {
		a, c := subjects[i%len(subjects)], subjects[(i/len(subjects))%len(subjects)]
		crew[i] = rank.Description{
			Name: fmt.Sprintf("%s-%s-%d", a, c, i),
			Text: fmt.Sprintf("Use this agent when you need to design, write or review %s for %s systems. It knows the usual tools, measures "+
				"before it changes anything, and explains what it did. Examples: optimize a slow %s, plan the migration of %s, find out why it fails.", a, c, a, c),
		}
	}
	for b.Loop() {
		if r := rank.Rank("Write a hello world Python script and test the database migration", crew); len(r.Scores) == 0 {
			b.Fatal(r.Reason)
		}
	}
}

// The question for the time stays with MAIN, also if one agent works in real time.
func TestTimeIsNoSubject(t *testing.T) {
	agents := []rank.Description{{"streams", "Processes events in real-time"}, {"dba", "SQL queries"}, {"docs", "Writes manuals"}}
	if r := rank.Rank("What time is it in Tokyo?", agents); r.Best != "" {
		t.Error(r.Reason)
	}
	if r := rank.Rank("Process the events of the stream in real time", agents); r.Best != "streams" {
		t.Error(r.Reason)
	}
}
