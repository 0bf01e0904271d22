package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func open(t testing.TB, path string, limit int64) *Index {
	t.Helper()
	x := New(path, limit)
	if _, err := x.Repair(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func fresh(t testing.TB) *Index { return open(t, filepath.Join(t.TempDir(), "search.db"), BytesMax) }

func add(t testing.TB, x *Index, list ...Passage) {
	t.Helper()
	if _, err := x.Add(t.Context(), Batch{Passages: list}); err != nil {
		t.Fatal(err)
	}
}

func said(n int, text string) Passage {
	return Passage{
		Place: Place{Kind: Channel, Entity: "quay", Agent: "coder"}, Time: noon.Add(time.Duration(n) * time.Minute),
		At: int64(n), Text: text,
	}
}

func find(t testing.TB, x *Index, q Query) Page {
	t.Helper()
	page, err := x.Find(t.Context(), q)
	if err != nil {
		t.Fatalf("%q: %v", q.Text, err)
	}
	return page
}

// marked is a result with its matches in brackets.
func marked(f Found) string {
	runes := []rune(f.Snippet)
	var b strings.Builder
	at := 0
	for _, m := range f.Matches {
		fmt.Fprintf(&b, "%s[%s]", string(runes[at:m[0]]), string(runes[m[0]:m[1]]))
		at = m[1]
	}
	return b.String() + string(runes[at:])
}

// Each text is found by the queries that should find it, with the right parts marked, and not by the
// others.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		text, query, want string // want: the snippet with marks; empty: not found
	}{
		{"the Retry of an upload failed", "retry upload", "the [Retry] of an [upload] failed"},
		{"the retry of a download", "retry upload", ""},
		{"uploads are retried", "upload", "[upload]s are retried"},
		{"reload", "load", ""},
		{"retry_upload and retryUpload", "upload", "retry_[upload] and retry[Upload]"},
		{"HTTPServer", "server", "HTTP[Server]"},
		{"HTTPServer", "httpserver", "[HTTPServer]"},
		{"retry_upload", "retry_upload", "[retry_upload]"},
		{"upload the retry", "retry_upload", ""},
		{"retry, upload", `"retry upload"`, "[retry, upload]"},
		{"retry the upload", `"retry upload"`, ""},
		{"retry uploads", `"retry upload"`, ""}, // a phrase is exact
		{"retry uploads", "retry/upload", "[retry/upload]s"[:0] + "[retry upload]s"},
		{"it is go", "go", "it is [go]"},
		{"it is good", "go", ""}, // two characters are no prefix
		{"x = 1", "x", "[x] = 1"},
		{"Größe über Ænima", "grosse", ""},
		{"Größe über alles", "größe", "[Größe] über alles"},
		{"a résumé, a re\u0301sume\u0301", "resume", "a [résumé], a [re\u0301sume\u0301]"},
		{"ｆｕｌｌ width", "full", "[ｆｕｌｌ] width"},
		{"ΟΔΟΣ", "οδος", "[ΟΔΟΣ]"},
		{"Ёлка", "елка", "[Ёлка]"},
		{"重试上传时出现错误", "上传", "重试[上传]时出现错误"},
		{"重试上传时出现错误", "重试上传", "[重试上传]时出现错误"},
		{"重试上传时出现错误", "传", "重试上[传]时出现错误"},
		{"重试上传时出现错误", "上重", ""},
		{"上传 重试 上 传 时", "上传时", ""},
		{"アップロードの再試行", "再試行", "アップロードの[再試行]"},
		{"アップロードの再試行", "アップロード", "[アップロード]の再試行"},
		{"がか", "か", "が[か]"}, // a mark that makes another letter is kept
		{"업로드를 다시 시도합니다", "업로드", "[업로드]를 다시 시도합니다"},
		{"upload重试", "upload重试", "[upload重试]"},
		{"upload重试", "重试", "upload[重试]"},
		{"a \u0000 b\xff upload", "upload", "a \u0000 b\ufffd [upload]"},
		{strings.Repeat("f", 100), strings.Repeat("f", 100), "[" + strings.Repeat("f", 100) + "]"},
		{strings.Repeat("f", 100), strings.Repeat("f", 64), "[" + strings.Repeat("f", 100) + "]"},
		{"AND OR NOT NEAR", "and or", "[AND] [OR] NOT NEAR"},
		{`a* b:c "d" (e) ^f {g} - h`, `a* b:c (e) ^f {g} -h`, `[a]* [b:c] "d" ([e]) ^[f] {[g]} - [h]`},
		{"id=0001", "id=0001", "[id=0001]"},
	} {
		x := fresh(t)
		add(t, x, said(1, c.text))
		page := find(t, x, Query{Text: c.query})
		got := ""
		if len(page.Found) > 0 {
			got = marked(page.Found[0])
		}
		if got != c.want {
			t.Errorf("%q in %q:\n got %q\nwant %q", c.query, c.text, got, c.want)
		}
	}
}

func TestBadQueries(t *testing.T) {
	x := fresh(t)
	add(t, x, said(1, "word"))
	for query, why := range map[string]string{
		"":                       "at least one letter or digit",
		` "" ... --- `:           "at least one letter or digit",
		strings.Repeat("a", 401): "at most 400 are possible",
		strings.Repeat("a ", 33): "33 words; at most 32",
		"\xff\xfe":               "not valid UTF-8",
	} {
		_, err := x.Find(t.Context(), Query{Text: query})
		if bad, ok := errors.AsType[*BadQuery](err); !ok || !strings.Contains(bad.Why, why) {
			t.Errorf("%.20q: %v, want %q", query, err, why)
		}
	}
	if _, err := x.Find(t.Context(), Query{Text: "a", Kinds: []string{"sms"}}); err == nil ||
		!strings.Contains(err.Error(), "there are: output, channel") {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestFilters(t *testing.T) {
	x := fresh(t)
	of := func(n int, kind, agent string) Passage {
		p := said(n, "the same words")
		p.Kind, p.Agent = kind, agent
		return p
	}
	add(t, x, of(1, Output, "coder"), of(2, Channel, "coder"), of(3, Channel, "mate"), of(4, History, ""))
	for _, c := range []struct {
		q    Query
		want []int64
	}{
		{Query{}, []int64{4, 3, 2, 1}},
		{Query{Kinds: []string{Channel}}, []int64{3, 2}},
		{Query{Kinds: []string{Output, History}}, []int64{4, 1}},
		{Query{Agent: "coder"}, []int64{2, 1}},
		{Query{Agent: "code"}, nil},
		{Query{Agent: `x" OR "same`}, nil},
		{Query{Since: noon.Add(3 * time.Minute)}, []int64{4, 3}},
		{Query{Since: noon.Add(time.Hour)}, nil},
		{Query{Limit: 3}, []int64{4, 3, 2}},
	} {
		c.q.Text = "same words"
		var got []int64
		for _, f := range find(t, x, c.q).Found {
			got = append(got, f.At)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.q, got, c.want)
		}
	}
}

// A match in output leads to the offset of its line.
func TestOffsetOfLine(t *testing.T) {
	x := fresh(t)
	p := Passage{
		Place: Place{Kind: Output, Entity: "coder-1", Agent: "coder"}, Time: noon, At: 1000, Text: "first\nsecond upload\nthird",
		Lines: []Line{{0, 1000}, {6, 1070}, {20, 1300}},
	}
	add(t, x, p)
	for query, at := range map[string]int64{"first": 1000, "upload": 1070, "third": 1300, "second third": 1070} {
		if found := find(t, x, Query{Text: query}).Found; len(found) != 1 || found[0].At != at {
			t.Errorf("%s: %+v, want %d", query, found, at)
		}
	}
}

func TestSnippet(t *testing.T) {
	x := fresh(t)
	long := strings.Repeat("filler words here\n", 200) + "a retry of\n  the   upload\n" + strings.Repeat("more filler\n", 200)
	add(t, x, said(1, "retry "+strings.Repeat("x ", 2000)+long))
	f := find(t, x, Query{Text: "retry upload"}).Found[0]
	if got := marked(f); !strings.Contains(got, "a [retry] of the [upload] more filler") || len([]rune(f.Snippet)) > snippetRunes+4 ||
		strings.ContainsAny(got, "\n\t") {
		t.Errorf("%q", got)
	}
}

// Searches find exactly what a plain look at all passages finds, over several shards and pages.
func TestAgreesWithPlainLook(t *testing.T) {
	x := fresh(t)
	r := rand.New(rand.NewPCG(7, 7))
	vocabulary := strings.Fields("retry upload up load Retry uploadFile re_try 上传 重试 上 传 é e a b go gopher id1 id12 x")
	var all []Passage
	for n := range 600 {
		var words []string
		for range 1 + r.IntN(6) {
			words = append(words, vocabulary[r.IntN(len(vocabulary))])
		}
		all = append(all, said(n, strings.Join(words, []string{" ", ", ", "\n", ""}[r.IntN(4)])))
	}
	for chunk := range slices.Chunk(all, 100) {
		add(t, x, chunk...)
	}
	for range 800 {
		var words []string
		for range 1 + r.IntN(4) {
			words = append(words, vocabulary[r.IntN(len(vocabulary))])
		}
		text := strings.Join(words, " ")
		switch r.IntN(4) {
		case 0:
			text = `"` + text + `"`
		case 1:
			text = strings.Join(words, "_") // a phrase whose last word may go on
		}
		q, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []int64
		for _, p := range slices.Backward(all) {
			if q.find(p.Text, 1) != nil {
				want = append(want, p.At)
			}
		}
		for page := find(t, x, Query{Text: text, Limit: 50}); ; page = find(t, x, Query{Text: text, Limit: 50, Before: page.Next}) {
			for _, f := range page.Found {
				got = append(got, f.At)
			}
			if page.Next == 0 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: found %d, want %d", text, len(got), len(want))
		}
	}
}

// Of a phrase of words that all passages have, few passages are read.
func TestFrequentPhrases(t *testing.T) {
	x := fresh(t)
	r := rand.New(rand.NewPCG(3, 3))
	common := strings.Fields("the of and retry upload error file test return value")
	var all []Passage
	have := map[string]int{}
	phrases := []string{`"retry upload"`, `"the retry of error"`, "upload_retry", `"error val"`}
	for n := range 2000 {
		var text strings.Builder
		for _, w := range common {
			fmt.Fprintf(&text, "%s w%d ", w, r.IntN(500))
		}
		if n%400 == 0 {
			text.WriteString("retry upload. The retry of errors")
		}
		all = append(all, said(n, text.String()))
		for _, phrase := range phrases {
			q, err := parse(phrase)
			if err != nil {
				t.Fatal(err)
			}
			if q.find(text.String(), 1) != nil {
				have[phrase]++
			}
		}
	}
	add(t, x, all...)
	for _, phrase := range phrases {
		q, err := parse(phrase)
		if err != nil {
			t.Fatal(err)
		}
		var read int
		if err := x.read.QueryRow("SELECT count(*) FROM words_0 WHERE words_0 MATCH ?", q.match()).Scan(&read); err != nil {
			t.Fatal(err)
		}
		if read < have[phrase] || read > have[phrase]+len(all)/50 {
			t.Errorf("%s: %d of %d passages are read, and %d have it", phrase, read, len(all), have[phrase])
		}
	}
}

// Everything is found in every shard, and dropping begins with the oldest one.
func TestShardsAndLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	x := open(t, path, 1<<20)
	ctx := t.Context()
	var dropped int64
	text := strings.Repeat("ballast of many different bytes ", 8)
	n := 0
	for dropped == 0 {
		var b Batch
		for range 4000 {
			n++
			b.Passages = append(b.Passages, said(n, fmt.Sprintf("n%dn common %s", n, text)))
		}
		d, err := x.Add(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		dropped += d
		if n > 10*shardPassages {
			t.Fatal("nothing was dropped")
		}
	}
	page := find(t, x, Query{Text: "n1n"})
	if len(page.Found) != 0 || page.Dropped != dropped || page.Reach.IsZero() {
		t.Errorf("the oldest: %+v, dropped %d", page, dropped)
	}
	if found := find(t, x, Query{Text: fmt.Sprintf("n%dn", n)}).Found; len(found) != 1 {
		t.Errorf("the newest was dropped")
	}
	if found := find(t, x, Query{Text: fmt.Sprintf("n%dn", dropped+1)}).Found; len(found) != 1 {
		t.Errorf("passage %d was dropped", dropped+1)
	}
}

// An index that was closed continues where it was; a file that is damaged, strange, or of another
// version is begun anew, and the others are left alone.
func TestBegunAnew(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"nothing":         func(*testing.T, string) {},
		"another version": func(t *testing.T, path string) { exec(t, path, "PRAGMA user_version = 99") },
		"another program": func(t *testing.T, path string) { exec(t, path, "PRAGMA application_id = 7") },
		"no table":        func(t *testing.T, path string) { exec(t, path, "DROP TABLE position") },
		"no position":     func(t *testing.T, path string) { exec(t, path, "DELETE FROM position") },
		"no database":     func(t *testing.T, path string) { write(t, path, []byte(strings.Repeat("not a database", 1000))) },
		"empty file":      func(t *testing.T, path string) { write(t, path, nil) },
		"cut": func(t *testing.T, path string) {
			if err := os.Truncate(path, 6000); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "search.db")
			x := open(t, path, BytesMax)
			if _, err := x.Add(t.Context(),
				Batch{Passages: []Passage{said(1, "upload")}, Position: &Position{Seq: 9, Hash: "h", Time: noon}}); err != nil {
				t.Fatal(err)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			spoil(t, path)
			x = open(t, path, BytesMax)
			at, err := x.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			kept := name == "nothing"
			if (at.Seq == 9) != kept {
				t.Errorf("the position is %d", at.Seq)
			}
			add(t, x, said(2, "upload again"))
			if n := len(find(t, x, Query{Text: "upload"}).Found); n != map[bool]int{true: 2, false: 1}[kept] {
				t.Errorf("%d found", n)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v: others can read it", info.Mode(), err)
			}
		})
	}
}

func exec(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Damage in the middle of a file is noticed by the search or the next batch, which Repair repairs.
func TestDamageInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "search.db")
	x := open(t, path, BytesMax)
	var list []Passage
	for n := range 3000 {
		list = append(list, said(n, fmt.Sprintf("word%d %s", n, strings.Repeat("upload and more ", 20))))
	}
	add(t, x, list...)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 8 * 4096; i < len(text); i++ {
		text[i] = byte(i * 7)
	}
	write(t, path, text)
	x = open(t, path, BytesMax)
	_, err = x.Find(context.Background(), Query{Text: "upload word7"})
	if err == nil || !x.Damaged() {
		t.Fatalf("the damage was not noticed: %v", err)
	}
	if anew, err := x.Repair(); err != nil || !anew || x.Damaged() {
		t.Fatal(anew, err)
	}
	add(t, x, said(1, "upload"))
	if len(find(t, x, Query{Text: "upload"}).Found) != 1 {
		t.Error("it does not work after Repair")
	}
}

// A batch is stored as a whole, and what belongs to a file is replaced.
func TestReplace(t *testing.T) {
	x := fresh(t)
	task := func(part, text string) Passage {
		return Passage{Place: Place{Kind: Task, Entity: "T1", Part: part}, Time: noon, At: FromFile, Text: text}
	}
	other := task("", "upload of another")
	other.Entity = "T2"
	add(t, x, task("comment-1", "upload one"), task("comment-2", "upload two"), other)
	if _, err := x.Add(t.Context(),
		Batch{Replace: []Place{{Kind: Task, Entity: "T1"}}, Passages: []Passage{task("comment-2", "upload two, changed")}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range find(t, x, Query{Text: "upload"}).Found {
		got = append(got, f.Entity+" "+f.Snippet)
	}
	if d := cmp.Diff([]string{"T1 upload two, changed", "T2 upload of another"}, got); d != "" {
		t.Error(d)
	}
}

func TestSources(t *testing.T) {
	x := fresh(t)
	want := []Source{
		{ID: "a-1", Agent: "a", Driver: "exec", Time: noon, Read: 7, Open: true},
		{ID: "task/T1", File: "/x", Time: noon, Open: true},
	}
	if _, err := x.Add(t.Context(), Batch{Sources: append(slices.Clone(want), Source{ID: "b-1", Time: noon})}); err != nil {
		t.Fatal(err)
	}
	got, err := x.OpenSources(t.Context())
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(err, d)
	}
	if _, ok, err := x.Source(t.Context(), "c-1"); ok || err != nil {
		t.Error(ok, err)
	}
}

// Without a daemon the index is read and nothing is written beside it.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "search.db")
	if _, err := OpenReadOnly(path); !errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	x := open(t, path, BytesMax)
	add(t, x, said(1, "upload"))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	r, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(find(t, r, Query{Text: "upload"}).Found) != 1 {
		t.Error("not found")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v %v: there is more than the index", entries, err)
	}
}

// An index that is closed or cannot be opened answers with the reason.
func TestUnavailable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "search.db")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	x := New(dir, BytesMax)
	if _, err := x.Repair(); err == nil || !strings.Contains(err.Error(), "not a plain file; remove it") {
		t.Errorf("a folder: %v", err)
	}
	_, err := x.Find(t.Context(), Query{Text: "a"})
	if _, ok := errors.AsType[*Unavailable](err); !ok || !strings.Contains(err.Error(), "not a plain file") {
		t.Errorf("%v", err)
	}
}

// No query is syntax for FTS5, none panics, and matches are inside of the snippet.
func FuzzFind(f *testing.F) {
	x := New(filepath.Join(f.TempDir(), "search.db"), BytesMax)
	if _, err := x.Repair(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { x.Close() })
	for _, s := range [][2]string{
		{`"a b" c*`, "a b c"},
		{"NEAR(a b)", "near a b"},
		{"上传", "重试上传"},
		{"-x:y^ {z}", "x y z"},
		{"\x00\xff", "\x00"},
		{`""""`, `"`},
		{"İ", "İi"},
		{"ﬁ", "fi ﬁ"},
		{"ſ", "s"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		if len(text) > PassageBytesMax {
			return
		}
		add(t, x, said(1, text))
		for _, q := range []string{query, clip.To(text, QueryBytesMax)} {
			page, err := x.Find(t.Context(), Query{Text: q, Agent: query, Kinds: nil})
			if _, bad := errors.AsType[*BadQuery](err); err != nil && !bad {
				t.Fatalf("%q: %v", q, err)
			}
			for _, f := range page.Found {
				checkMatches(t, f)
			}
			page, err = x.Find(t.Context(), Query{Text: q})
			if _, bad := errors.AsType[*BadQuery](err); err != nil && !bad {
				t.Fatalf("%q: %v", q, err)
			}
			for _, f := range page.Found {
				checkMatches(t, f)
			}
		}
	})
}

func checkMatches(t *testing.T, f Found) {
	t.Helper()
	at, runes := 0, len([]rune(f.Snippet))
	for _, m := range f.Matches {
		if m[0] < at || m[1] < m[0] || m[1] > runes {
			t.Fatalf("matches %v in %q", f.Matches, f.Snippet)
		}
		at = m[1]
	}
}

// FuzzLines: damaged lines give an error or an offset, and never a panic.
func FuzzLines(f *testing.F) {
	p := Passage{At: 5, Lines: []Line{{0, 5}, {3, 99}}}
	f.Add(p.packLines(), 3)
	f.Fuzz(func(_ *testing.T, packed []byte, where int) { _, _ = lineAt(packed, 5, where) })
}

// An index that rests keeps neither words nor a compressor, and adds and finds as before.
func TestRest(t *testing.T) {
	x := fresh(t)
	for n := range 3 {
		add(t, x, said(n, "retry the upload"))
		if x.words.flate == nil || len(x.words.places) == 0 {
			t.Fatal("there was nothing to give back")
		}
		x.Rest()
		if x.words.flate != nil || x.words.places != nil {
			t.Error("the index keeps what adding needed")
		}
		if page := find(t, x, Query{Text: "retry"}); len(page.Found) != n+1 {
			t.Errorf("%d found, want %d", len(page.Found), n+1)
		}
	}
}
