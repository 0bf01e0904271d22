package uitest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fairlead-dev/fairlead/api/login"
	"github.com/fairlead-dev/fairlead/api/server"
	"github.com/fairlead-dev/fairlead/core/team"

	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
	"github.com/fairlead-dev/fairlead/process/driver/exec"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	"github.com/fairlead-dev/fairlead/read/indexer"
	"github.com/fairlead-dev/fairlead/read/search"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/ui"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/outside"
)

// serverToken lets callers in over TCP.
const serverToken = "uitest-0123456789abcdef0123456789abcdef"

// Server is the real server in the test's own process: the engine on the memory journal, the API
// and the page. Its agents are children of the test.
type Server struct {
	t   testing.TB
	Dir string // the workspace
	URL string // the page; its query is the token for programs, with which Open signs a window in

	Logins *login.Logins
	api    string

	Beside        atomic.Pointer[view.HostsBeside] // of a team with hosts
	engine        *app.App
	proxyListener net.Listener
}

// NewServer writes files below a new workspace, fairlead.yaml among them, and serves the team. It
// ends with the test.
func NewServer(t testing.TB, files map[string]string) *Server {
	t.Helper()
	return NewLeader(t, files, nil)
}

// NewLeader is NewServer for a team with hosts, if beside is what its leader knows of them.
func NewLeader(t testing.TB, files map[string]string, beside *view.HostsBeside) *Server {
	t.Helper()
	Chromium(t) // before anything starts
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{t: t, Dir: dir}
	s.Beside.Store(beside)
	s.serve()
	return s
}

func (s *Server) serve() {
	t := s.t
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	conf, err := config.Load(s.Dir, os.LookupEnv)
	must(err)
	log := slog.New(slog.DiscardHandler)
	states := agentstate.Watch(log)
	documents := crewdocs.Watch(filepath.Join(s.Dir, ".fairlead", "agents"), log)
	sessions, err := dispatchctl.WatchSessions(s.Dir, log)
	must(err)
	host := newLocalHost()
	ctx, cancel := context.WithCancel(context.Background())
	j := memory.New()
	drivers := map[string]driver.Driver{"exec": exec.Driver{}, "script": script.Driver{}, "claude": claude.Driver{}}
	e, err := app.Open(ctx, outside.Options{
		Name: "harbour-api", Config: conf, Journal: j, Host: host, Files: states, Documents: documents, Sessions: sessions,
		Drivers: drivers, Lookup: os.LookupEnv, Log: log,
		Notices: noticesOf(conf),
	})
	must(err)
	if s.Beside.Load() != nil {
		e.Cluster.Given = &s.Beside
	}
	listener, err := server.Listen("127.0.0.1:0")
	must(err)
	s.proxyListener, err = net.Listen("tcp", "127.0.0.1:0")
	must(err)
	s.Logins, err = login.Open(filepath.Join(t.TempDir(), "logins.json"), log)
	must(err)
	index := search.New(filepath.Join(t.TempDir(), "search.db"), search.BytesMax)
	updater := indexer.New(indexer.Options{
		Index: index, Journal: j, Drivers: drivers, Output: host.Output, Size: host.outputBytes, Log: log,
		Driver: func(agent string) string { return "exec" },
	})
	server := server.New(server.Options{
		Search:  index,
		Origins: conf.Origins,
		Engine:  e, UI: ui.Handler(), Token: serverToken, Logins: s.Logins, User: "ann", Log: log, Version: "test", Dir: s.Dir,
		Store: "memory",
		Hosts: []string{listener.Addr().String(), s.proxyListener.Addr().String()},
	})
	s.engine = e
	ran, served, indexed := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { updater.Run(ctx); indexed <- index.Close() }()
	go func() { ran <- e.Run(ctx) }()
	go func() { served <- server.Serve(ctx, listener, nil) }()
	s.api = "http://" + listener.Addr().String()
	s.URL = s.api + "/?token=" + serverToken
	t.Cleanup(func() {
		_ = s.proxyListener.Close() // a proxy that serves has closed it already
		cancel()
		for what, end := range map[string]chan error{"the engine": ran, "the server": served, "the search index": indexed} {
			if err := <-end; err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		host.stop()
		for _, c := range []io.Closer{states, documents, sessions} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	select {
	case <-e.Loop.Ready():
	case err := <-ran:
		ran <- nil // for the clean-up
		t.Fatalf("the engine: %v", err)
	}
}

// Intercept puts a proxy in front of the server. Afterwards URL is the proxy's.
func (s *Server) Intercept() *Proxy {
	s.t.Helper()
	proxy := newProxy(strings.TrimPrefix(s.api, "http://"))
	front := &http.Server{Handler: proxy, ReadHeaderTimeout: waitMax}
	go func() { _ = front.Serve(s.proxyListener) }() // it ends with Close
	s.t.Cleanup(func() { _ = front.Close() })
	s.URL = "http://" + s.proxyListener.Addr().String() + "/?token=" + serverToken
	return proxy
}

// Do sends a request to the API and returns the body of the answer; it fails unless the status is 2xx.
func (s *Server) Do(method, path string, body io.Reader) []byte {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.api+"/api/v1"+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+serverToken)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	if res.StatusCode/100 != 2 {
		s.t.Fatalf("%s %s: %s: %s", method, path, res.Status, text)
	}
	return text
}

// Put appends text to a file of the workspace.
func (s *Server) Put(name, text string) {
	s.t.Helper()
	file, err := os.OpenFile(filepath.Join(s.Dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// Happens decides an event of the team, as the leader of hosts does.
func (s *Server) Happens(agent string, what any) {
	s.t.Helper()
	if _, err := s.engine.Loop.Submit(s.t.Context(), person, agent, what); err != nil {
		s.t.Fatalf("%#v: %v", what, err)
	}
}

// Command sets the desired state of an agent, as a person does.
func (s *Server) Command(agent, desired string) {
	s.t.Helper()
	if _, err := s.engine.Agents.Command(s.t.Context(), person, agent, desired, ""); err != nil {
		s.t.Fatalf("command %s: %v", agent, err)
	}
}

// Head is the sequence of the newest change.
func (s *Server) Head() (head uint64) {
	s.t.Helper()
	if err := s.engine.Loop.View(s.t.Context(), func(*team.Team) { head = s.engine.Loop.Head() }); err != nil {
		s.t.Fatal(err)
	}
	return head
}

// Newest returns the sequence of the newest change of an entity that the page lists. Reports that change
// no state are not listed.
func (s *Server) Newest(entity string) uint64 {
	s.t.Helper()
	var page struct {
		Changes []struct {
			Seq               uint64
			From, To, Trigger string
		}
	}
	if err := json.Unmarshal(s.Do("GET", "/journal?tail=50&entity="+entity, nil), &page); err != nil {
		s.t.Fatalf("the newest change of %s: %v", entity, err)
	}
	for _, c := range slices.Backward(page.Changes) {
		if c.From != c.To || c.Trigger != "reported" {
			return c.Seq
		}
	}
	s.t.Fatalf("no change of %s is listed among its last %d", entity, len(page.Changes))
	return 0
}

// noticesOf returns the targets of a configuration. The one named lost cannot be reached;
// deliveries to the others succeed.
func noticesOf(conf *config.Config) *outside.Notices {
	n := &outside.Notices{Kinds: map[string]string{}, Send: func(
		_ context.Context, target string, _ []notice.Notice, _ int,
	) *notice.Failure {
		if target == "lost" {
			return &notice.Failure{Cause: "connection refused", WayOut: "see that the host can be reached from here", Again: true}
		}
		return nil
	}}
	for i := range conf.Notify.Targets {
		name := conf.Notify.Targets[i].Name
		n.Targets, n.Kinds[name] = append(n.Targets, notice.Target{Name: name, Events: notice.Usual(), PerHour: 20}), "ntfy"
	}
	return n
}
