package server

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/google/go-cmp/cmp"
)

// Every route through the client, over the real socket.
func TestClientRoutes(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	p := s.sup.begin(t, "coder", 1)
	p.say("hello\n")
	s.sup.over(t, p)

	view, err := c.Agents(ctx)
	if err != nil || len(view.Agents) != 2 || view.Team != "demo" {
		t.Errorf("Team: %+v, %v", view, err)
	}
	why, err := c.Why(ctx, "reviewer")
	if err != nil || why.Verdict == "" || why.Evidence == nil || why.Sessions == nil || len(why.Agent.Badge) == 0 {
		t.Errorf("Why: %+v, %v", why, err)
	}
	for verb, desired := range orders {
		done, err := c.Command(ctx, verb, "reviewer", "because "+string(verb))
		if err != nil || done.Seq <= s.sup.first || done.Agent.DesiredState != desired || done.Agent.Note != "because "+string(verb) {
			t.Errorf("%s: %+v, %v", verb, done, err)
		}
	}
	before := len(s.sup.changes(t))
	if held, err := c.Hold(ctx, "lunch"); err != nil || held.Seq == 0 || !held.Hold {
		t.Errorf("Hold: %+v, %v", held, err)
	}
	if held, err := c.Unhold(ctx, ""); err != nil || held.Seq == 0 || held.Hold {
		t.Errorf("Release: %+v, %v", held, err)
	}
	if _, err := c.Down(ctx, true); err != nil {
		t.Errorf("Down: %v", err)
	}
	// an order before may still have effects
	ofTeam := slices.DeleteFunc(s.sup.changes(t)[before:], func(change string) bool { return !strings.Contains(change, " team/team ") })
	if diff := cmp.Diff([]string{`human sam: team/team X8 held`, `human sam: team/team X8 open`, `human sam: team/team C14 stopping`},
		ofTeam); diff != "" {
		t.Error(diff)
	}
	st, err := c.Status(ctx)
	if err != nil || st.Version != "1.2.3" || st.Journal.Head < s.sup.first || st.Journal.Backend != "memory" || st.Dir != s.dir {
		t.Errorf("Status: %+v, %v", st, err)
	}
	machines, err := client.Get[api.Machines](ctx, c, "/machines", nil)
	if err != nil ||
		!slices.ContainsFunc(machines.Machines, func(m api.MachineView) bool { return m.Name == "control" && len(m.Rows) > 10 }) {
		t.Errorf("Machines: %+v, %v", machines, err)
	}
	told, err := client.Get[api.Facts](ctx, c, "/sessions/coder-1/facts", url.Values{"tail": {"2"}})
	facts := told.Facts
	if err != nil || len(facts) != 1 || facts[0].Text != "hello" {
		t.Errorf("Facts: %+v, %v", facts, err)
	}
	raw, err := c.RawOutput(ctx, "coder-1", 1, 3)
	if diff := cmp.Diff(client.RawOutput{Bytes: []byte("ell"), Offset: 1, End: 4, Open: true}, raw); diff != "" || err != nil {
		t.Error(diff, err)
	}
	raw, err = c.RawOutput(ctx, "coder-1", 4, 0)
	if diff := cmp.Diff(client.RawOutput{Bytes: []byte("o\n"), Offset: 4, End: 6}, raw); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestClientErrors(t *testing.T) {
	s := serveTeam(t, memory.New(), newWorkspace(t), pair)
	c := dial(t, s)
	ctx := t.Context()

	_, err := c.EndAgentSession(ctx, "coder")
	_, want := s.sup.Agents.EndAgentSession(ctx, change.Actor{Kind: "human", ID: "sam"}, "coder")
	var refused *client.Refused
	if !errors.As(err, &refused) || want == nil || err.Error() != want.Error() || refused.Refusal.Reason == "" {
		t.Errorf("a refusal came as %#v", err)
	}
	_, err = c.Why(ctx, "unknown")
	var p *api.Problem
	if !errors.As(err, &p) || p.Status != 404 || !slices.Equal(p.Known, []string{"coder", "reviewer"}) {
		t.Errorf("an unknown agent came as %#v", err)
	}
	if _, err = c.Why(ctx, "../../status"); !errors.As(err, &p) || p.Status != 422 {
		t.Errorf("a name that is none came as %#v", err)
	}
	s.sup.end()
	if _, err = c.Agents(ctx); !errors.As(err, &p) || p.Status != 503 || p.Detail != loop.ErrClosed.Error() {
		t.Errorf("a closed engine came as %#v", err)
	}
	s.stop()
	var none *client.NoDaemon
	if _, err = c.Agents(context.WithoutCancel(ctx)); !errors.As(err, &none) {
		t.Errorf("without a daemon, the error is %#v", err)
	}
	if _, err = client.Dial(s.dir); !errors.As(err, &none) {
		t.Errorf("Dial: without a daemon, the error is %#v", err)
	}
	if _, err = client.Dial(t.TempDir()); !errors.As(err, &none) {
		t.Errorf("Dial: no word came as %#v", err)
	}
}

// The daemon is killed while it is asked: what was only to be read was not, and what was to be changed may have been.
func TestClientSeesTheDaemonDie(t *testing.T) {
	dir := newWorkspace(t)
	socket := filepath.Join(os.Getenv(runtimedir.Var), "d-0123456789abcdef")
	listen := func(conns int) { // the last of them is reset

		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer l.Close()
			for n := range conns {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				if n == conns-1 {
					l.Close()
				}
				conn.Close()
			}
		}()
	}
	announce(t, dir, workspace.Daemon{PID: os.Getpid(), Socket: socket})
	listen(2)
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var none *client.NoDaemon
	if _, err := c.Agents(t.Context()); !errors.As(err, &none) {
		t.Errorf("a read came to %v", err)
	}
	listen(1)
	var unanswered *client.NoAnswer
	if _, err := c.Command(t.Context(), api.Once, "coder", "why"); !errors.As(err, &unanswered) ||
		!strings.Contains(err.Error(), "may have carried out the request") {
		t.Errorf("an order came to %v", err)
	}
}
