package anchor

import (
	"slices"
	"strings"
	"testing"
)

// loader is a file with a comment on its line `for i := range 5 {`.
const loader = `package upload

func Load(name string) error {
	file := open(name)
	for i := range 5 {
		if err := send(file); err == nil {
			return nil
		}
	}
	return errGiveUp
}
`

// A comment stays at the text that it is about. It moves with its surroundings, says that its line was changed, and is gone only with
// all of them.
func TestFind(t *testing.T) {
	t.Parallel()
	edit := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(loader) }
	long := strings.Repeat("x", 900)
	loop := "\tfor i := range 5 {\n"
	for name, c := range map[string]struct {
		was  string
		line int
		now  string
		want Spot
	}{
		"the same":                      {loader, 5, loader, Spot{5, false}},
		"moved down":                    {loader, 5, "// Copyright\n\n" + loader, Spot{7, false}},
		"moved up":                      {loader, 5, edit("package upload\n\n", ""), Spot{3, false}},
		"another line of the hunk":      {loader, 5, edit("open(name)", "create(name)"), Spot{5, false}},
		"all around it":                 {"a1\na2\nthe line\nb1\nb2\n", 3, "c\nd\ne\nthe line\nf\n", Spot{4, false}},
		"changed":                       {loader, 5, edit("range 5", "range retriesMax"), Spot{5, true}},
		"changed and moved":             {loader, 5, "// Copyright\n" + edit("range 5", "range retriesMax"), Spot{6, true}},
		"changed into several":          {loader, 5, edit(loop, "\tmost := 7\n\tfor i := range most {\n"), Spot{5, true}},
		"deleted":                       {loader, 5, edit(loop, ""), Spot{5, true}},
		"changed with what is before":   {loader, 5, edit("\tfile := open(name)\n"+loop, "\tx()\n\ty()\n"), Spot{5, true}},
		"gone":                          {loader, 5, "package other\n\nvar x = 1\n", Spot{}},
		"an empty file":                 {loader, 5, "", Spot{}},
		"the first line changed":        {loader, 1, edit("package upload", "package uploads"), Spot{1, true}},
		"the last line changed":         {loader, 11, edit("GiveUp\n}", "GiveUp\n} // Load"), Spot{11, true}},
		"the last line deleted":         {loader, 11, strings.TrimSuffix(loader, "}\n"), Spot{10, true}},
		"one of equal lines":            {"x\n}\na\n}\nb\n}\nc\n", 4, "x\n}\nnew\na\n}\nb\n}\nc\n", Spot{5, false}},
		"the equal line elsewhere":      {"one\ntwo\n}\nthree\nfour\n", 3, "}\none\ntwo\nend\nthree\nfour\n}\n", Spot{4, true}},
		"the nearest of the same":       {"a\nb\na\nb\na\nb\na\nb\n", 5, "a\nb\na\nb\na\nb\na\nb\n", Spot{5, false}},
		"a bracket alone is no place":   {"{\nsum\n}\n", 3, "}\nq\nw\n", Spot{}},
		"CR LF":                         {"a\r\nb\r\nc\r\n", 2, "a\nb\nc\n", Spot{2, false}},
		"a line too long to be kept":    {"a\n" + long + "\nb\n", 2, "new\na\n" + long + "\nb\n", Spot{3, false}},
		"an empty line":                 {"one\n\ntwo\n", 2, "zero\n\none\n\ntwo\n", Spot{4, false}},
		"a file of one line":            {"only\n", 1, "only\n", Spot{1, false}},
		"a file of one line is changed": {"only\n", 1, "other\n", Spot{}},
	} {
		if got := Find(Lines(c.now), Of(Lines(c.was), c.line)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := Find(Lines(loader), Anchor{}); got != (Spot{}) {
		t.Errorf("without a text: %+v", got)
	}
	if got := Find(Lines(loader), Anchor{Lines: []string{"x"}, At: 3}); got != (Spot{}) {
		t.Errorf("a broken anchor: %+v", got)
	}
}

// Whatever the texts: a place is one of the content or none, a line that is said to be the same is the same, in the unchanged content a
// comment stays where it was, and below new lines it moves by their number.
func FuzzFind(f *testing.F) {
	f.Add(loader, 5, loader)
	f.Add("a\n\n}\n", 2, "}\n\n\n")
	f.Add("", 0, "x")
	f.Add("}\n}\n}\n}\n", 3, "}\n}\n")
	f.Fuzz(func(t *testing.T, was string, line int, now string) {
		rows, a := Lines(was), Of(Lines(was), line)
		others := Lines(now)
		if got := Find(others, a); got.Line < 0 || got.Line > len(others) || got.Line == 0 && got.Changed {
			t.Fatalf("%+v of %d lines", got, len(others))
		} else if got.Line > 0 && !got.Changed && others[got.Line-1] != a.Lines[a.At] {
			t.Fatalf("%+v is %q, not %q", got, others[got.Line-1], a.Lines[a.At])
		}
		if len(a.Lines) == 0 {
			return
		}
		if got := Find(rows, a); got != (Spot{line, false}) && !ambiguous(rows, a) {
			t.Fatalf("in the same content: %+v, want %d", got, line)
		}
		const above = "\x00a line that no file has\n"
		moved := Lines(strings.Repeat(above, 2) + was)
		if got := Find(moved, a); got != (Spot{line + 2, false}) && !ambiguous(rows, a) {
			t.Fatalf("below two new lines: %+v, want %d", got, line+2)
		}
	})
}

// ambiguous reports whether an anchor says nothing about its place, or its hunk stands in the content more than once: empty lines do not
// count.
func ambiguous(rows []string, a Anchor) bool {
	same := 0
	for i := range rows {
		first := i - a.At
		fits := rows[i] == a.Lines[a.At]
		for j, line := range a.Lines {
			if weight(line) > 0 && (first+j < 0 || first+j >= len(rows) || rows[first+j] != line) {
				fits = false
			}
		}
		if fits {
			same++
		}
	}
	return same > 1 || !slices.ContainsFunc(a.Lines, func(line string) bool { return weight(line) > 1 })
}
