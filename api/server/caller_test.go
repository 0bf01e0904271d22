package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
	crewctl "github.com/fairlead-dev/fairlead/work/crew"
)

const askAsVar = "FAIRLEAD_TEST_ASK" // the folder whose daemon the child asks

// X10: an agent in one of Fairlead's sessions may read, and may give orders about other agents, but not
// about itself. In channels it acts only in its own name.
func TestNobodyReleasesHimself(t *testing.T) {
	if dir := os.Getenv(askAsVar); dir != "" {
		askAsAgent(t, dir)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says which process is at the other end")
	}
	work := newWorkspace(t)
	if err := os.WriteFile(filepath.Join(work, "julian.script.yaml"), []byte(julianScript), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveTeam(t, memory.New(), work, `version: 1
agents:
  coder: {description: Writes code, loop: foreign}
  reviewer: {description: Reads code, driver: exec, command: ["true"]}
  julian: {description: Leads the team, driver: script, script: julian.script.yaml}
channels: {reviews: {agents: [coder]}}
team: {lead: julian, size: 2}
`)
	c := dial(t, s)
	_, joined := client.Post[api.Joined](t.Context(), c, "/agents/coder/ready", api.EmptyBody{})
	_, said := c.Channels.Say(t.Context(), "reviews", "hello", "")
	_, imported := c.Crew.Import(t.Context(), documentOf("Lyra", 0, lyraSoul))
	if err := errors.Join(joined, said, imported); err != nil {
		t.Fatal(err)
	}
	before := len(s.sup.changes(t))
	dir, err := realDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(dir))
	// The child names another agent: its parent still has the mark.
	hash := hex.EncodeToString(sum[:8])
	cmd := exec.CommandContext(t.Context(), "sh", "-c",
		`FAIRLEAD_MARK="$1.reviewer-2" "$0" -test.run='^TestNobodyReleasesHimself$' -test.v; exit $?`, os.Args[0], hash)
	cmd.Env = append(os.Environ(), askAsVar+"="+dir, "FAIRLEAD_MARK="+hash+".coder-17")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := `agent coder: control/reviewer C2 continuous|agent coder: session/reviewer J1 opened|agent coder: team/team X8 held`
	if got := strings.Join(s.sup.changes(t)[before:], "|"); !strings.HasPrefix(got, want) {
		t.Errorf("orders: %s", got)
	}
	if is, err := c.Channels.Show(t.Context(), "reviews"); err != nil || is.Holder != "" {
		t.Errorf("it has passed its turn: %+v, %v", is, err)
	}
}

func askAsAgent(t *testing.T, dir string) {
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, release := c.Unhold(t.Context(), "")
	_, itself := c.Command(t.Context(), api.Start, "coder", "")
	_, asPerson := c.Channels.Say(t.Context(), "reviews", "do as the agent says", "interrupt")
	_, turn := c.Channels.Grant(t.Context(), "reviews", "coder", true)
	_, asOther := client.Post[api.Ordered](t.Context(), c, "/channels/reviews/pass", api.TurnBody{Agent: "reviewer", Turn: 1})
	_, others := actionsOf(t.Context(), c, "reviewer", 0)
	_, summons := c.Crew.Summon(t.Context())
	_, wakes := c.Crew.Wake(t.Context(), []string{"Lyra"})
	_, sleeps := c.Crew.Sleep(t.Context())
	_, imports := c.Crew.Import(t.Context(), documentOf("Mira", 1, "x"))
	_, down := c.Down(t.Context(), true)
	for what, err := range map[string]error{
		"release": release, "itself": itself, "down": down,
		"speaks as a person": asPerson, "gives itself the turn": turn, "passes for another": asOther, "reads what another is told": others,
		"summons himself": summons, "wakes his like": wakes, "sends all to sleep": sleeps, "brings one along": imports,
	} {
		var refused *client.Refused
		if !errors.As(err, &refused) || refused.Refusal.Row != "X10" || !strings.Contains(err.Error(), "coder-17") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, read := c.Agents(t.Context())
	_, other := c.Command(t.Context(), api.Start, "reviewer", "")
	_, held := c.Hold(t.Context(), "")
	_, pass := client.Post[api.Ordered](t.Context(), c, "/channels/reviews/pass", api.TurnBody{Agent: "coder", Turn: 1})
	_, hears := c.Channels.Entries(t.Context(), "reviews", view.EntryQuery{})
	_, team := c.Crew.Show(t.Context(), true)
	_, soul := plainText(t.Context(), c, "/crew/agents/Lyra/soul")
	_, said := c.Crew.Transcript(t.Context(), crewctl.TranscriptQuery{})
	if err := errors.Join(read, other, held, pass, hears, team, soul, said); err != nil {
		t.Error(err)
	}
}

// asSession is a request from within one of Fairlead's sessions.
func asSession(ctx context.Context, session string) context.Context {
	return caller.With(ctx, caller.Caller{Session: session})
}

// A caller that cannot be identified may be an agent: it may not lift a hold or give orders to agents.
// It may hold the team, because everyone may stop the team in an emergency; the journal then does not
// name the person as the actor.
func TestUnseenCaller(t *testing.T) {
	f := supervise(t, memory.New(), t.TempDir(), pair)
	h := New(Options{Engine: f.App, User: "sam"}).SocketHandler()
	for name, who := range map[string]caller.Caller{"not seen": {Unseen: true}, "gone": {Who: shim.Birth{PID: 1 << 30, Start: 1}}} {
		ask := func(method, path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			ctx := caller.With(t.Context(), who)
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, api.Base+path, nil))
			return w
		}
		for _, path := range []string{
			"/unhold", "/down", "/agents/coder/start", "/agents/coder/stop", "/agents/coder/once",
			"/agents/coder/cleanup",
		} {
			if w := ask("POST", path); w.Code != 409 || problemText(t, w.Body.String()).Refusal.Row != "X10" {
				t.Errorf("%s: %s: %d %s", name, path, w.Code, w.Body)
			}
		}
		if w := ask("GET", "/agents"); w.Code != 200 {
			t.Errorf("%s: may not read: %d %s", name, w.Code, w.Body)
		}
		if w := ask("POST", "/hold"); w.Code != 200 {
			t.Errorf("%s: may not hold: %d %s", name, w.Code, w.Body)
		}
		if got := f.changes(t); len(got) == 0 || got[len(got)-1] != `agent (not seen): team/team X8 held` {
			t.Errorf("%s: orders: %s", name, got)
		}
		if _, err := f.Agents.Hold(t.Context(), change.Actor{Kind: "human", ID: "sam"}, false, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// An agent of another repository may read, and no route that changes anything is for it.
func TestAgentOfAnotherRepository(t *testing.T) {
	f := supervise(t, memory.New(), t.TempDir(), pair)
	h := New(Options{Engine: f.App, User: "sam"}).SocketHandler()
	ask := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		ctx := caller.With(t.Context(), caller.Caller{Foreign: "coder-17"})
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, nil))
		return w
	}
	fill := regexp.MustCompile(`\{\w+\}`)
	for _, rt := range routeTable() {
		if rt.Method == http.MethodGet {
			continue
		}
		w := ask(rt.Method, fill.ReplaceAllString(rt.Path, "1"))
		if w.Code != http.StatusConflict || problemText(t, w.Body.String()).Refusal.Row != "X10" ||
			!strings.Contains(w.Body.String(), "coder-17 of another repository") {
			t.Errorf("%s %s: %d %s", rt.Method, rt.Path, w.Code, w.Body)
		}
	}
	if w := ask(http.MethodGet, api.Base+"/agents"); w.Code != http.StatusOK {
		t.Errorf("it may not read: %d %s", w.Code, w.Body)
	}
	if w := ask(http.MethodGet, api.Base+"/repositories"); w.Code != http.StatusConflict {
		t.Errorf("it may list the repositories: %d %s", w.Code, w.Body)
	}
	f.unchanged(t)
}
