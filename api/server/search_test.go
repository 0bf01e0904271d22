package server

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/read/search"
	"github.com/fairlead-dev/fairlead/read/view"
)

// giveIndex gives a server an index with some passages; output of coder-1 is always among them.
func giveIndex(t testing.TB, s *served, more ...search.Passage) {
	t.Helper()
	x := search.New(filepath.Join(t.TempDir(), "search.db"), search.BytesMax)
	if _, err := x.Repair(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop()
		x.Close()
	})
	at := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	said := search.Passage{
		Place: search.Place{Kind: search.Output, Entity: "coder-1", Agent: "coder"}, Time: at, At: 1000,
		Text: "the upload",
	}
	if _, err := x.Add(t.Context(),
		search.Batch{
			Passages: append([]search.Passage{said}, more...),
			Position: &search.Position{Seq: 1, Hash: "h", Time: at},
		}); err != nil {
		t.Fatal(err)
	}
	s.opts.Search = x
}

// Each kind of result has a link to its place in the page.
func TestSearchLinks(t *testing.T) {
	s := serve(t)
	of := func(kind, entity, part, agent string, at int64) search.Passage {
		return search.Passage{Place: search.Place{Kind: kind, Entity: entity, Part: part, Agent: agent}, At: at, Text: "mooring"}
	}
	want := map[string]string{}
	var list []search.Passage
	for link, p := range map[string]search.Passage{
		"#/agents/coder/output/coder-7/512":           of(search.Output, "coder-7", "", "coder", 512),
		"#/runs/f8c1/build":                           of(search.Output, "build@f8c1-3", "", "", 512),
		"#/channels/quay/9":                           of(search.Channel, "quay", "", "coder", 9),
		"#/crew/Rook%20%2F%20x/transcript/10":         of(search.Crew, "Rook", "", "Rook / x", 10),
		"#/inbox/q1":                                  of(search.Question, "q1", "", "coder", 11),
		"#/inbox/s3":                                  of(search.Question, "s3", "", "coder", 11),
		"#/runs/f8c1":                                 of(search.Run, "f8c1", "", "", 12),
		"#/tasks/T1/request-2":                        of(search.Task, "T1", "request-2", "coder", search.FromFile),
		"#/tasks/T2":                                  of(search.Task, "T2", "", "coder", search.FromFile),
		"#/dispatch/quay/conv_002":                    of(search.Dispatch, "quay", "conv_002", "", 14),
		"#/history/15":                                of(search.History, "team", "", "", 15),
		"#/agents/%22%3E%3Cimg%20src=x%3E/history/16": of(search.History, "x", "", `"><img src=x>`, 16),
	} {
		want[link] = p.Kind + " " + p.Entity
		list = append(list, p)
	}
	giveIndex(t, s, list...)
	c := dial(t, s)
	page, err := c.Search(t.Context(), api.SearchQuery{Text: "mooring", Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range page.Results {
		got[r.Link] = r.Kind + " " + r.Entity
		if (r.Offset != nil) != (r.Kind == search.Output) || (r.Seq != 0) != (r.Kind != search.Output && r.Kind != search.Task) {
			t.Errorf("%s: offset %v, seq %d", r.Link, r.Offset, r.Seq)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A client reads page after page, and every query arrives as it was typed.
func TestSearchPages(t *testing.T) {
	s := serve(t)
	var list []search.Passage
	for n := range 25 {
		list = append(list,
			search.Passage{Place: search.Place{Kind: search.Channel, Entity: "quay"}, At: int64(n + 1), Text: "mooring & 重试 <b>"})
	}
	giveIndex(t, s, list...)
	c := dial(t, s)
	seen := map[uint64]bool{}
	q := api.SearchQuery{Text: `"mooring & 重试" <b>`, Limit: 10}
	for pages := 1; ; pages++ {
		page, err := c.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Results {
			if seen[r.Seq] {
				t.Errorf("%d came twice", r.Seq)
			}
			seen[r.Seq] = true
			if d := cmp.Diff([][2]int{{0, 12}, {14, 15}}, r.Matches); d != "" {
				t.Errorf("%q: %s", r.Snippet, d)
			}
		}
		if page.Next == 0 {
			if pages != 3 || len(seen) != 25 {
				t.Errorf("%d pages, %d results", pages, len(seen))
			}
			return
		}
		q.Before = page.Next
	}
}

func TestSearchProblems(t *testing.T) {
	s := serve(t)
	get := func(status int, query string) api.Problem {
		t.Helper()
		text, _ := s.want(t, status, "GET", api.Base+"/search?"+query, "")
		return problemText(t, text)
	}
	if p := get(503, "q=a"); !strings.Contains(p.Detail, "there is no search index here; `fairlead up` makes one") {
		t.Errorf("without an index: %s", p.Detail)
	}
	s.opts.Search = search.New(filepath.Join(t.TempDir(), "search.db"), search.BytesMax)
	if p := get(503, "q=a"); !strings.Contains(p.Detail, "not open yet") {
		t.Errorf("before it is open: %s", p.Detail)
	}
	giveIndex(t, s)
	for query, at := range map[string]string{
		"":                              "query.q",
		"q=":                            "query.q",
		"q=***":                         "query.q",
		"q=%ff":                         "query.q",
		"q=" + strings.Repeat("a", 401): "query.q",
		"q=" + url.QueryEscape(strings.Repeat("传", 200)): "query.q", // 600 bytes
		"q=a&kind=sms":                         "query.kind[0]",
		"q=a&limit=0":                          "query.limit",
		"q=a&limit=101":                        "query.limit",
		"q=a&before=-1":                        "query.before",
		"q=a&since=monday":                     "query.since",
		"q=a&sort=relevance":                   "query.sort",
		"q=a&agent=" + strings.Repeat("a", 65): "query.agent",
	} {
		p := get(422, query)
		found := false
		for _, f := range p.Errors {
			found = found || f.Location == at
		}
		if !found {
			t.Errorf("%.40s: wants a fault at %s: %+v", query, at, p)
		}
	}
}

// The answer says how far the index is behind the journal.
func TestSearchBehind(t *testing.T) {
	s := serve(t)
	giveIndex(t, s)
	head := s.sup.add(t, "coder", 5)
	text, _ := s.want(t, 200, "GET", api.Base+"/search?q=upload", "")
	var page view.SearchPage
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	if page.Index.Seq != 1 || page.Index.Behind != head-1 || page.Index.AsOf == nil || page.Index.DroppedAt != nil {
		t.Errorf("%+v", page.Index)
	}
}
