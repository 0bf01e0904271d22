package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/client"
	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/google/go-cmp/cmp"
)

// crewAsked is a call of every route about the team.
var crewAsked = []askedOnce{
	{"get-crew", "GET", "/crew?all=true", "", `"button":"WAKE" "in_progress":"" "agents" "id":"agent-7" "status":"alive" "name":"Lyra" "name":null "colorName" "gridPosition":8 "faceVariant" "individuationArtifact" "lastSessionId" "lead" "agent":"coder" "state":"asleep" "reported_at":null "seat":4 "size":8 "notices":[] "souls_left_out":0 "head":2`},
	{"summon-crew", "POST", "/crew/summon", "", `"seq":21 "team" "button":"WAKE"`},
	{"wake-crew", "POST", "/crew/wake", `{"agents":["Lyra"]}`, `"seq":21 "team" "notices":[]`},
	{"send-crew-to-sleep", "POST", "/crew/sleep", "{}", `"seq":21 "team" "agents"`},
	{"get-document", "GET", "/crew/agents/Lyra", "", `"id":"agent-7" "type":"agent-identity" "createdAt" "lastAliveAt"`},
	{"read-soul", "GET", "/crew/agents/agent-7/soul", "", "<b>Nobody</b>"},
	{"import-document", "POST", "/crew/import", `{"type":"agent-identity"}`, `"id":"agent-7"`},
	{"read-transcript", "GET", "/crew/transcript?speaker=Lyra&limit=5", "", `"messages" "more":true "next":11 "head":12 "seq":11 "at" "session":"0b7d3c52-uuid" "speaker":"Lyra" "kind":"agent" "channel":"reviews" "text" limit=5`},
}

// Every order of a person about the team arrives as what it was, by who gave it.
func TestCrewOrders(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	document := "{\"type\":\"agent-identity\",\n \"name\": \"<Lyra>\", \"ours\":12345678901234567890.10}"
	done, summon := c.Crew.Summon(ctx)
	_, all := c.Crew.Wake(ctx, nil)
	_, some := c.Crew.Wake(ctx, []string{"agent-7", oddName})
	_, sleep := c.Crew.Sleep(ctx)
	doc, imported := c.Crew.Import(ctx, []byte(" "+document+"\n"))
	if err := errors.Join(summon, all, some, sleep, imported); err != nil {
		t.Error(err)
	}
	if done.Seq != 21 || done.Team.Button != "WAKE" || done.Team.Notices == nil || doc.ID != "agent-7" {
		t.Errorf("%+v, %+v", done, doc)
	}
	want := []string{"summon", "wake []", fmt.Sprintf("wake %q", []string{"agent-7", oddName}), "sleep", fmt.Sprintf("import %q", document)}
	if diff := cmp.Diff(want, toThePoint(s.fake.orders)); diff != "" || !strings.HasPrefix(s.fake.orders[0], "human sam: ") {
		t.Errorf("%s\n%q", diff, s.fake.orders)
	}
	var refused *client.Refused
	if _, err := c.Crew.Import(ctx, []byte(`{"refuse":1}`)); !errors.As(err, &refused) || refused.Refusal.Row != "P11" {
		t.Errorf("%v", err)
	}
	var p *api.Problem
	if _, err := c.Crew.Import(ctx, []byte(`{}`)); !errors.As(err, &p) || p.Status != 422 || !strings.Contains(p.Detail, "say so") || p.Errors[0].Location != "body" {
		t.Errorf("%v", err)
	}
	if _, err := c.Crew.Wake(ctx, []string{"unknown"}); !errors.As(err, &p) || p.Status != 404 || p.Known[0] != "Lyra" {
		t.Errorf("%v", err)
	}
}

// People read the crew's documents: an agent may have any name, and its soul is served as text that no
// browser runs.
func TestReadCrew(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	for all, n := range map[bool]int{false: 1, true: 2} {
		if view, err := c.Crew.Show(ctx, all); err != nil || len(view.Agents) != n || *view.Agents[0].Name != "Lyra" || view.Lead.Seat != 4 || view.Agents[n-1].ID != map[bool]string{false: "agent-7", true: "agent-1"}[all] {
			t.Errorf("%+v, %v", view, err)
		}
	}
	s.want(t, 404, "GET", api.Base+"/crew/agents/"+strings.Repeat("%C3%A9", 64), "") // as long as a name may be
	for _, name := range []string{"agent-7", "Lyra", oddName} {
		doc, err := c.Crew.Document(ctx, name)
		soul, fault := plainText(ctx, c, "/crew/agents/"+url.PathEscape(name)+"/soul")
		if diff := cmp.Diff(lyra(), doc); diff != "" || soul != lyraSoul || errors.Join(err, fault) != nil {
			t.Errorf("%s: %s %q %v %v", name, diff, soul, err, fault)
		}
	}
	text, h := s.want(t, 200, "GET", api.Base+"/crew/agents/Lyra/soul", "")
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Content-Disposition": `attachment; filename="agent-7.soul.txt"`,
		"Content-Security-Policy": apiPolicy, "Cache-Control": "no-store",
	} {
		if h.Get(name) != want || text != lyraSoul {
			t.Errorf("%s is %q, %q", name, h.Get(name), text)
		}
	}
	var refused *client.Refused
	if _, err := c.Crew.Document(ctx, "Twin"); !errors.As(err, &refused) {
		t.Errorf("a name of two: %v", err)
	}
	var p *api.Problem
	if _, err := plainText(ctx, c, "/crew/agents/unknown/soul"); !errors.As(err, &p) || p.Status != 404 || len(p.Known) != 1 {
		t.Errorf("%v", err)
	}
	for want, q := range map[string]crewctl.TranscriptQuery{
		`speaker="" session="" text="" before=0 after=0 limit=100`:                                        {},
		fmt.Sprintf(`speaker=%q session="coder@r1-2" text="<&?=%%+ é" before=9 after=0 limit=2`, oddName): {Speaker: oddName, Session: "coder@r1-2", Text: "<&?=%+ é", Before: 9, Limit: 2},
		`speaker="Lyra" session="0b7d3c52-uuid" text="" before=0 after=3 limit=500`:                       {Speaker: "Lyra", Session: "0b7d3c52-uuid", After: 3, Limit: 500},
	} {
		if page, err := c.Crew.Transcript(ctx, q); err != nil || len(page.Messages) != 3 || page.Messages[0].Text != want || !page.More || page.Head != 12 {
			t.Errorf("%+v: %+v, %v", q, page, err)
		}
	}
	if page, err := c.Crew.Transcript(ctx, crewctl.TranscriptQuery{After: 12}); err != nil || page.Messages == nil || len(page.Messages) > 0 {
		t.Errorf("%+v, %v", page, err)
	}
	last := s.fake.add(t, "presence/agent-7", 2)
	s.fake.add(t, "presence/lead", 3)
	if got := seqs(t, c, client.EventsQuery{Entity: "presence/agent-7", After: 0}, 2); got[1] != last {
		t.Errorf("told of %v", got)
	}
}

// An id is ours where it came from us and anybody's where it was imported: no header breaks on it.
func TestFileNames(t *testing.T) {
	for id, want := range map[string]string{"agent-7": "agent-7", "Lyra_2.b": "Lyra_2.b", "a\"; x=\r\nX: é/..": "a___x___X____..", "": ""} {
		if got := fileName(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}

// X10: no agent in one of Fairlead's sessions gives orders about the crew, not even the lead; neither
// does a caller that cannot be identified. All of them may read.
func TestAgentsSummonNobody(t *testing.T) {
	f := newFake()
	h := New(Options{Engine: f, User: "sam"}).SocketHandler()
	for who, may := range map[caller.Caller]bool{{Session: "coder-17"}: false, {Session: "reviewer-3"}: false, {Session: "coder@r1-2"}: false, {Unseen: true}: false, {}: true} {
		f.orders = nil
		orders := 0
		for _, rt := range crewRoutes() {
			body := map[string]string{"import-document": `{"type":"agent-identity"}`}[rt.ID]
			w := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(as(t, who), rt.Method, api.Base+strings.ReplaceAll(rt.Path, "{agent}", "Lyra"), strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, req)
			switch {
			case rt.Method == http.MethodGet || may:
				if w.Code >= 300 {
					t.Errorf("%+v: %s: %d %s", who, rt.ID, w.Code, w.Body)
				}
				if rt.Method != http.MethodGet {
					orders++
				}
			case w.Code != 409 || problemText(t, w.Body.String()).Refusal.Row != "X10":
				t.Errorf("%+v: %s: %d %s", who, rt.ID, w.Code, w.Body)
			case who.Session != "" && !strings.Contains(w.Body.String(), "only people summon"):
				t.Errorf("the reason is another: %s", w.Body)
			}
		}
		if len(f.orders) != orders {
			t.Errorf("%+v: %d were allowed, and the engine was asked for %q", who, orders, f.orders)
		}
	}
}

// Names and words that are none are refused before the engine is asked.
func TestCrewInputs(t *testing.T) {
	s := serve(t)
	long := strings.Repeat("a", 65)
	for _, c := range []struct {
		method, path, body string
		status             int
		words              string
	}{
		{"GET", "/crew?all=maybe", "", 422, "query.all"},
		{"GET", "/crew?every=true", "", 422, "query.every"},
		{"POST", "/crew/summon", `{"size":8}`, 422, "body.size"},
		{"POST", "/crew/sleep", `[]`, 422, "body"},
		{"POST", "/crew/wake", `{"agents":[]}`, 422, "body.agents"},
		{"POST", "/crew/wake", `{"agents":["` + long + `"]}`, 422, "body.agents[0]"},
		{"POST", "/crew/wake", `{"agents":["a\u0000b"]}`, 422, "body.agents[0]"},
		{"POST", "/crew/wake", `{"agents":[""]}`, 422, "body.agents[0]"},
		{"POST", "/crew/wake", `{"agents":[` + strings.Repeat(`"a",`, 64) + `"a"]}`, 422, "body.agents"},
		{"POST", "/crew/wake", `{"agents":"Lyra"}`, 422, "body.agents"},
		{"POST", "/crew/wake", `{"who":["Lyra"]}`, 422, "body.who"},
		{"GET", "/crew/agents/" + long, "", 422, "path.agent"},
		{"GET", "/crew/agents/a%00", "", 422, "path.agent"},
		{"GET", "/crew/agents/%c2%9b31m/soul", "", 422, "path.agent"},
		{"GET", "/crew/agents/a%0d%0aX:1/soul", "", 422, "path.agent"},
		{"GET", "/crew/agents/unknown/soul", "", 404, "Lyra"},
		{"GET", "/crew/agents/%2e%2e/soul", "", 404, `".."`},
		{"GET", "/crew/agents/../soul", "", 404, `".."`},
		{"GET", "/crew/agents//soul", "", 404, "empty"},
		{"GET", "/crew/agents", "", 404, "openapi.json"},
		{"DELETE", "/crew/agents/Lyra", "", 405, "it supports GET"},
		{"GET", "/crew/import", "", 405, "it supports POST"},
		{"GET", "/crew/transcript?before=3&after=2", "", 422, "query.before"},
		{"GET", "/crew/transcript?limit=501", "", 422, "query.limit"},
		{"GET", "/crew/transcript?session=..%2fx", "", 422, "query.session"},
		{"GET", "/crew/transcript?speaker=a%00", "", 422, "query.speaker"},
		{"GET", "/crew/transcript?text=" + strings.Repeat("a", 257), "", 422, "query.text"},
		{"GET", "/crew/transcript?spaeker=Lyra", "", 422, "query.spaeker"},
		{"POST", "/crew/import", "", 400, "body"},
		{"POST", "/crew/import", "[]", 422, "body"},
		{"POST", "/crew/import", "null", 422, "body"},
		{"POST", "/crew/import", `{"type":1} {}`, 400, "body"},
		{"POST", "/crew/import", `{"type":` + strings.Repeat("[", 20_000), 400, "body"},
		{"POST", "/crew/import", "{}", 422, "has a type"},
		{"POST", "/crew/import", `{"refuse":1}`, 409, "P11"},
	} {
		text, h := s.want(t, c.status, c.method, api.Base+c.path, c.body)
		p := problemText(t, text)
		found := strings.Contains(p.Detail, c.words)
		for _, f := range p.Errors {
			found = found || f.Location == c.words
		}
		if !found || h.Get("Content-Type") != api.ProblemType || len(text) > 4000 {
			t.Errorf("%s %.60s %.40s: wants %q\n%.1000s", c.method, c.path, c.body, c.words, text)
		}
	}
	if len(s.fake.orders) > 0 {
		t.Errorf("orders: %q", s.fake.orders)
	}
}

// A document may be longer than any other body, and only a document.
func TestDocumentSize(t *testing.T) {
	s := serve(t)
	document := func(bytes int) string {
		return `{"type":"` + strings.Repeat("x", bytes-len(`{"type":""}`)) + `"}`
	}
	s.want(t, 201, "POST", api.Base+importPath, document(documentBytesMax))
	text, _ := s.want(t, 413, "POST", api.Base+importPath, document(documentBytesMax+1))
	if !strings.Contains(text, "2097152") {
		t.Error(text)
	}
	s.want(t, 413, "POST", api.Base+"/crew/wake", document(api.BodyBytesMax+1))
	s.want(t, 413, "PUT", api.Base+importPath, document(api.BodyBytesMax+1))
	if len(s.fake.orders) != 1 {
		t.Errorf("%d orders", len(s.fake.orders))
	}
	req := s.request(t, "POST", api.Base+importPath, map[string]string{"Authorization": "Bearer " + testToken, "Content-Type": "text/plain"})
	send(t, req, 400) // nothing in it
	body := httptest.NewRequestWithContext(t.Context(), "POST", api.Base+importPath, strings.NewReader(`{"type":1}`))
	body.Header.Set("Content-Type", "text/plain")
	w := httptest.NewRecorder()
	if s.SocketHandler().ServeHTTP(w, body); w.Code != 415 {
		t.Errorf("text is taken for a document: %d %s", w.Code, w.Body)
	}
}

// However many documents there are, a list is bounded: who sits on a seat keeps the soul, and the
// number of those left out is right.
func TestCrewFits(t *testing.T) {
	soul := strings.Repeat("s", 256<<10)
	shown := view.CrewView{}
	for i := range 100 {
		shown.Agents = append(shown.Agents, view.DocumentView{ID: fmt.Sprint("agent-", i), Soul: soul[:len(soul)*(i%2)]})
	}
	got := fitCrew(shown)
	bytes, without := 0, 0
	for i := range got.Agents {
		bytes += len(got.Agents[i].Soul)
		if i%2 == 1 && got.Agents[i].Soul == "" {
			without++
			if i < 16 {
				t.Errorf("%d has lost its soul", i)
			}
		}
	}
	if len(got.Agents) != 100 || bytes != soulsBytesMax || without != 50-32 || got.SoulsLeftOut != without || got.Notices == nil {
		t.Errorf("%d documents, %d bytes, %d without, %d said", len(got.Agents), bytes, without, got.SoulsLeftOut)
	}
}

// A page of a transcript is bounded, says that there is more, and parts no change.
func TestTranscriptFits(t *testing.T) {
	text := strings.Repeat("a", 3<<20)
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			var left []crewctl.Message
			seq := uint64(1)
			for range rnd.IntN(20) {
				seq += rnd.Uint64N(2)
				left = append(left, crewctl.Message{Seq: seq, Text: text[:[]int{0, 100, 1 << 20, 3 << 20}[rnd.IntN(4)]]})
			}
			newest := rnd.IntN(2) == 0
			for len(left) > 0 {
				page := fitTranscript(crewctl.TranscriptPage{Messages: left}, newest)
				n := len(page.Messages)
				if n == 0 || page.More != (n < len(left)) {
					t.Fatalf("%d of %d, more=%v", n, len(left), page.More)
				}
				at, rest := left[:n], left[n:]
				if newest {
					at, rest = left[len(left)-n:], left[:len(left)-n]
				}
				for _, m := range rest {
					if m.Seq == at[0].Seq || m.Seq == at[n-1].Seq {
						t.Fatalf("change %d is parted", m.Seq)
					}
				}
				if page.More && page.Next != map[bool]uint64{true: at[0].Seq, false: at[n-1].Seq}[newest] {
					t.Fatalf("goes on at %d", page.Next)
				}
				left = rest
			}
		})
	}
}

// BenchmarkCrew measures the question that a page asks after every report, over the socket: eight
// agents with souls of 4 KiB, beside a bare server of the standard library that has the same
// bytes at hand, in one run.
func BenchmarkCrew(b *testing.B) {
	s := serve(b)
	for seat := range 8 {
		doc := lyra()
		doc.ID, doc.Seat, doc.Soul = fmt.Sprint("agent-", seat), seat, strings.Repeat("Soul <of> an agent. ", 205)
		s.fake.team = append(s.fake.team, doc)
	}
	c := dial(b, s)
	shown, err := c.Crew.Show(b.Context(), false)
	if err != nil || len(shown.Agents) != 8 {
		b.Fatalf("%+v, %v", shown, err)
	}
	said := api.Encode(shown)
	l, err := net.Listen("unix", filepath.Join(filepath.Dir(socketOf(b, s)), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	bare := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(said) })}
	defer bare.Close()
	go func() { _ = bare.Serve(l) }() // it ends with the benchmark
	other := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", l.Addr().String())
	}}}
	defer other.CloseIdleConnections()
	var asks, bares []float64
	for b.Loop() {
		began := time.Now()
		resp, err := other.Get("http://bare/")
		if err != nil {
			b.Fatal(err)
		}
		var seen view.CrewView
		if err := json.NewDecoder(resp.Body).Decode(&seen); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		between := time.Now()
		if _, err := c.Crew.Show(b.Context(), false); err != nil {
			b.Fatal(err)
		}
		bares, asks = append(bares, between.Sub(began).Seconds()*1e6), append(asks, time.Since(between).Seconds()*1e6)
	}
	slices.Sort(asks)
	slices.Sort(bares)
	half := len(asks) / 2
	b.ReportMetric(asks[half], "µs/team")
	b.ReportMetric(asks[half]/bares[half], "team/bare")
	b.ReportMetric(0, "ns/op")
}
