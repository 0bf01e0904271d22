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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/read/view"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
	"github.com/google/go-cmp/cmp"
)

// crewAsked is a call of every route about the team.
var crewAsked = []askedOnce{
	{"summon-crew", "POST", "/crew/summon", "", `"seq" "team" "button" "agents" "status" "name"`}, // its lead may have answered already
	{
		"get-crew", "GET", "/crew?all=true", "",
		`"button":"none" "in_progress":"" "agents" "id":"agent-1" "status":"alive" "name":"Lyra" "name":"Kael" "colorName":"Violet "gridPosition":1 "faceVariant" "individuationArtifact" "lastSessionId" "lead" "agent":"julian" "state":"heard" "reported_at":" "seat":4 "size":2 "notices":[] "souls_left_out":0 "head"`,
	},
	{"get-document", "GET", "/crew/agents/Lyra", "", `"id":"agent-1" "type":"agent-identity" "createdAt" "lastAliveAt"`},
	{"read-soul", "GET", "/crew/agents/agent-1/soul", "", "I am Lyra."},
	{
		"read-transcript", "GET", "/crew/transcript?speaker=Lyra&limit=5", "",
		`"messages" "more":false "head" "seq" "at" "session" "speaker":"Lyra" "kind":"agent" "text":"Good`,
	},
	{"send-crew-to-sleep", "POST", "/crew/sleep", "{}", `"seq" "team" "agents"`},
	{"get-crew", "GET", "/crew", "", `"button":"WAKE" "in_progress":"" "state":"asleep" "status":"sleeping"`},
	{"wake-crew", "POST", "/crew/wake", `{"agents":["Lyra"]}`, `"seq" "team" "notices":[]`},
	{"get-crew", "GET", "/crew", "", `"in_progress":"" "status":"alive" "status":"sleeping"`},
	{
		"import-document", "POST", "/crew/import",
		`{"type":"agent-identity","status":"alive","name":"Mira","gridPosition":7,"color":"#88aacc"}`,
		`"name":"Mira" "status":"unknown" "gridPosition":7`,
	},
}

// oddName is what a foreign agent may be called.
const (
	lyraSoul = "I am Lyra. <b>Only</b> I am. ]]>\n"
	oddName  = "Zoë/<script>"
)

// documentOf is an agent's document, as another device has it.
func documentOf(name string, seat int, soul string) []byte {
	return api.Encode(map[string]any{
		"type": "agent-identity", "status": "alive", "name": name, "gridPosition": seat, "color": "#c9b1e8",
		"individuationArtifact": soul,
	})
}

// serveCrew serves a team whose crew are documents of other devices: Lyra, one with an odd name, and two of one name.
func serveCrew(t testing.TB) (*served, *client.Client) {
	t.Helper()
	dir := newWorkspace(t)
	if err := os.WriteFile(filepath.Join(dir, "julian.script.yaml"), []byte(julianScript), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveTeam(t, memory.New(), dir,
		pair+"  julian: {description: Leads the team, driver: script, script: julian.script.yaml}\nteam: {lead: julian, size: 8}\n")
	c := dial(t, s)
	for seat, name := range []string{"Lyra", oddName, "Twin", "Twin"} {
		if _, err := c.Crew.Import(t.Context(), documentOf(name, seat, lyraSoul)); err != nil {
			t.Fatal(err)
		}
	}
	return s, c
}

// People read the crew's documents: an agent may have any name, and its soul is served as text that no
// browser runs.
func TestReadCrew(t *testing.T) {
	s, c := serveCrew(t)
	ctx := t.Context()
	shown, err := c.Crew.Show(ctx, false)
	if err != nil || len(shown.Agents) != 4 || *shown.Agents[0].Name != "Lyra" || shown.Lead.Seat != 4 {
		t.Fatalf("%+v, %v", shown, err)
	}
	s.want(t, 404, "GET", api.Base+"/crew/agents/"+strings.Repeat("%C3%A9", 64), "") // as long as a name may be
	for of, names := range map[int][]string{0: {shown.Agents[0].ID, "Lyra"}, 1: {oddName}} {
		for _, name := range names {
			doc, err := c.Crew.Document(ctx, name)
			soul, fault := plainText(ctx, c, "/crew/agents/"+url.PathEscape(name)+"/soul")
			if diff := cmp.Diff(shown.Agents[of], doc); diff != "" || soul != lyraSoul || errors.Join(err, fault) != nil {
				t.Errorf("%s: %s %q %v %v", name, diff, soul, err, fault)
			}
		}
	}
	text, h := s.want(t, 200, "GET", api.Base+"/crew/agents/Lyra/soul", "")
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff",
		"Content-Disposition":     `attachment; filename="` + shown.Agents[0].ID + `.soul.txt"`,
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
	if _, err := plainText(ctx, c, "/crew/agents/unknown/soul"); !errors.As(err, &p) || p.Status != 404 || len(p.Known) == 0 {
		t.Errorf("%v", err)
	}
	if page, err := c.Crew.Transcript(ctx,
		crewctl.TranscriptQuery{Speaker: oddName, Session: "coder@r1-2", Text: "<&?=%+ é", Limit: 2}); err != nil || page.Messages == nil ||
		len(page.Messages) > 0 {
		t.Errorf("%+v, %v", page, err)
	}
	for ch, err := range c.Events(ctx, client.EventsQuery{Entity: "crew/" + shown.Agents[0].ID}) {
		if err != nil || ch.Actor.ID != "sam" {
			t.Errorf("told of %+v, %v", ch, err)
		}
		break
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
	s, _ := serveCrew(t)
	h := New(Options{Engine: s.sup.App, User: "sam"}).SocketHandler()
	for who, may := range map[caller.Caller]bool{
		{Session: "coder-17"}: false, {Session: "reviewer-3"}: false,
		{Session: "coder@r1-2"}: false, {Unseen: true}: false, {}: true,
	} {
		for _, rt := range crewRoutes() {
			before := s.sup.orders(t)
			body := map[string]string{"import-document": string(documentOf("Mira", 7, "x"))}[rt.ID]
			w := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(as(t, who), rt.Method, api.Base+strings.ReplaceAll(rt.Path, "{agent}", "Lyra"),
				strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, req)
			x10 := w.Code == 409 && problemText(t, w.Body.String()).Refusal.Row == "X10"
			switch {
			case rt.Method == http.MethodGet:
				if w.Code >= 300 {
					t.Errorf("%+v: %s: %d %s", who, rt.ID, w.Code, w.Body)
				}
			case x10 == may, !may && s.sup.orders(t) != before, w.Code == 500: // what is allowed may be refused for its state
				t.Errorf("%+v: %s: %d %s", who, rt.ID, w.Code, w.Body)
			case who.Session != "" && !strings.Contains(w.Body.String(), "only people summon"):
				t.Errorf("the reason is another: %s", w.Body)
			}
			if may {
				break // one order is enough: the others follow from its state
			}
		}
	}
}

// Names and words that are none are refused before the engine is asked.
func TestCrewInputs(t *testing.T) {
	s, _ := serveCrew(t)
	before := s.sup.orders(t)
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
		{"POST", "/crew/import", "{}", 422, "body"},
		{"POST", "/crew/import", string(documentOf("Mira", 0, "x")), 409, "P11"},
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
	if orders := s.sup.orders(t); orders != before {
		t.Errorf("%d orders are carried out, before %d", orders, before)
	}
}

// A document may be longer than any other body, and only a document.
func TestDocumentSize(t *testing.T) {
	s := serve(t)
	document := func(bytes int) string {
		return `{"type":"` + strings.Repeat("x", bytes-len(`{"type":""}`)) + `"}`
	}
	s.want(t, 422, "POST", api.Base+importPath, document(documentBytesMax)) // its type is none
	text, _ := s.want(t, 413, "POST", api.Base+importPath, document(documentBytesMax+1))
	if !strings.Contains(text, "2097152") {
		t.Error(text)
	}
	s.want(t, 413, "POST", api.Base+"/crew/wake", document(api.BodyBytesMax+1))
	s.want(t, 413, "PUT", api.Base+importPath, document(api.BodyBytesMax+1))
	s.sup.unchanged(t)
	req := s.request(t, "POST", api.Base+importPath,
		map[string]string{"Authorization": "Bearer " + testToken, "Content-Type": "text/plain"})
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
	s, c := serveCrew(b)
	for seat, name := range []string{"Kael", "Mira", "Noor", "Sael"} {
		if _, err := c.Crew.Import(b.Context(),
			documentOf(name, []int{5, 6, 7, 8}[seat], strings.Repeat("Soul <of> an agent. ", 205))); err != nil {
			b.Fatal(err)
		}
	}
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
