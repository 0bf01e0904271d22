package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/cluster"
	"github.com/fairlead-dev/fairlead/cluster/ca"
	"github.com/fairlead-dev/fairlead/cluster/invite"
	"github.com/fairlead-dev/fairlead/cluster/link"
	"github.com/fairlead-dev/fairlead/cluster/wire"
	"github.com/fairlead-dev/fairlead/cluster/worker"
	"github.com/fairlead-dev/fairlead/machine/host"
)

// members is a team that has only members. It implements hostTeam.
type members struct {
	mu   sync.Mutex
	all  map[string]cluster.Member
	left []string
}

func (m *members) Members() cluster.Members { return m }

func (m *members) Member(name string) (cluster.Member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, ok := m.all[name]
	return is, ok
}

func (m *members) Admit(_ context.Context, j invite.Joiner) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[j.Name] = j.Member
	return nil
}

func (m *members) Renew(_ context.Context, name string, in wire.RenewIn) (wire.RenewOut, error) {
	return wire.RenewOut{Host: host.Host{Name: name, Boot: in.Boot}}, nil
}

func (m *members) Grant(context.Context, string, wire.GrantIn) (host.Grant, error) {
	return host.Grant{}, &wire.Problem{Code: wire.NotHere, Why: "no such session"}
}

func (m *members) Leave(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = append(m.left, name)
	delete(m.all, name)
	return nil
}

func (m *members) HostOf(string) string { return "b" }

// leader makes a repository one of a leader, at a free port.
func leader(t *testing.T) (dir string, a *cli.App) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte("version: 1\nagents: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	a = &cli.App{Dir: dir, Out: io.Discard, Err: io.Discard}
	if err := hosts.Init(a, hosts.Cluster{Name: "a", Team: "web", Listen: free.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	return dir, a
}

// A host joins at the leader's one port and connects there. What it asks reaches the team under its name, and what its
// programs ask reaches the API.
func TestLead(t *testing.T) {
	dir, _ := leader(t)
	log := slog.New(slog.DiscardHandler)
	open := func(team hostTeam) *lead {
		l, err := openLead(dir, log)
		if err != nil {
			t.Fatal(err)
		}
		l.begin(team, func(host string, placedOn func(string) string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				wire.Answer(w, host+" "+r.URL.Path+" "+placedOn("x"))
			})
		})
		return l
	}
	team := &members{all: map[string]cluster.Member{}}
	l := open(team)
	joined := func(token, name string) (*cli.App, error) {
		at, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		b := &cli.App{Dir: at, Out: io.Discard, Err: io.Discard}
		return b, hosts.Join(t.Context(), b, []string{token}, hosts.Joining{Name: name, Labels: []string{"big"}})
	}
	first, err := l.Invite(t.Context(), "human/ann", []string{"gpu"})
	if err != nil || !first.Loopback || first.Address != l.is.Listen {
		t.Fatalf("%+v %v", first, err)
	}
	if _, err := joined(first.Token, "a"); err == nil || !strings.Contains(err.Error(), "the leader is called a") || cli.CodeOf(err) != cli.ExitRefused {
		t.Error(err)
	}
	if err := l.Close(); err != nil { // an invitation outlives a restart
		t.Fatal(err)
	}
	l = open(team)
	b, err := joined(first.Token, "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := joined(first.Token, "c"); err == nil || !strings.Contains(err.Error(), "was used by another host") {
		t.Error(err)
	}
	if err := hosts.Join(t.Context(), b, []string{first.Token}, hosts.Joining{}); err == nil || !strings.Contains(err.Error(), "is host b of team web") {
		t.Error(err)
	}
	is, err := worker.LoadConfig(b.Dir)
	if err != nil || is.Name != "b" || is.Team != "web" || strings.Join(is.Labels, " ") != "big gpu" || is.Capacity != 4 || strings.Join(is.Addresses, " ") != l.is.Listen {
		t.Errorf("%+v %v", is, err)
	}

	id, err := ca.LoadIdentity(worker.Folder(b.Dir), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := link.Dial(t.Context(), link.DialOptions{Identity: id, Addresses: is.Addresses, Handler: http.NotFoundHandler(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	client, base := conn.Client()
	ask := func(path string, in any) string {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Post(base+path, "application/json", bytes.NewReader(text)) //nolint:noctx // the connection ends
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(said)
	}
	for _, c := range []struct {
		path string
		in   any
		want string
	}{
		{wire.RenewRoute, wire.RenewIn{Boot: "boot-1"}, `"name":"b"`},
		{wire.RenewRoute, "text", `"code":"bad_request"`},
		{wire.GrantRoute, wire.GrantIn{}, `"code":"not_here","why":"no such session"`},
		{"/api/v1/hosts", struct{}{}, `"b /api/v1/hosts b"`},
		{wire.CertificateRoute, struct{}{}, `"code"`},
		{wire.LeaveRoute, struct{}{}, `{}`},
	} {
		if got := ask(c.path, c.in); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
	if len(team.left) != 1 || team.left[0] != "b" {
		t.Error(team.left)
	}
	conn.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	var refused *link.Refused
	if _, err := link.Dial(t.Context(), link.DialOptions{Identity: id, Addresses: is.Addresses, Handler: http.NotFoundHandler(), Log: log}); err == nil || errors.As(err, &refused) {
		t.Error("a closed leader answers", err)
	}
}

// Without cluster.json nothing is opened. What a person changes there is taken in by a reload.
func TestClusterChanges(t *testing.T) {
	dir, a := leader(t)
	log := slog.New(slog.DiscardHandler)
	if l, err := openLead(t.TempDir(), log); l != nil || err != nil || l.inviter() != nil {
		t.Error(l, err)
	}
	d := &Daemon{Conf: must(a.Load())}
	if changes, err := d.clusterChanges(); err != nil || len(changes) != 1 || !strings.Contains(changes[0], "host a leads team web") {
		t.Error(changes, err)
	}
	var err error
	if d.lead, err = openLead(dir, log); err != nil {
		t.Fatal(err)
	}
	defer d.lead.Close()
	if changes, err := d.clusterChanges(); len(changes) != 0 || err != nil {
		t.Error(changes, err)
	}
	if _, err := openLead(dir, log); err == nil || !strings.Contains(err.Error(), "choose another port") {
		t.Error(err)
	}
	if err := hosts.Leave(t.Context(), a, false); err != nil {
		t.Fatal(err)
	}
	if changes, err := d.clusterChanges(); err != nil || len(changes) != 1 || !strings.Contains(changes[0], "leads no cluster") {
		t.Error(changes, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
