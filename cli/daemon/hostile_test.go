package daemon

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/mcp"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon/worker"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/git/transfer"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/link"
	"github.com/fairlead-dev/fairlead/hosts/remote"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// hostile is a host of the team, b, with keys that are valid. It speaks the protocol by itself. c is another host that behaves.
type hostile struct {
	t       *testing.T
	leads   *Daemon
	dir     string // the leader's repository
	id, c   *ca.Identity
	idDir   string
	cDir    string
	invite  string // the token that b has used
	conn    *link.Conn
	answers atomic.Pointer[http.HandlerFunc] // what it answers the leader with
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", shortFolder(t))
	dir, a := leader(t)
	for name, text := range map[string]string{
		"fairlead.yaml": "version: 1\nworkflows: [nightly.yaml]\nagents:\n  coder: {description: Writes code, driver: exec, command: [\"true\"]}\n",
		"nightly.yaml":  "name: nightly\nsteps:\n  - {id: a, command: [\"true\"]}\n",
		"other.yaml":    "name: other\nsteps:\n  - {id: a, command: [touch, other]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "-C", dir, "init", "--quiet").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	d, err := OpenDaemon(t.Context(), must((&cli.App{Dir: a.Dir}).LoadOrNone()), "127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	h := &hostile{t: t, leads: d, dir: dir}
	member := func(name string) (*ca.Identity, string, string) {
		invited, err := d.lead.Invite(t.Context(), "human/ann", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		at, err := join(t, invited.Token, name)
		if err != nil {
			t.Fatal(err)
		}
		id, err := ca.LoadIdentity(worker.Folder(at.Dir), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return id, worker.Folder(at.Dir), invited.Token
	}
	h.id, h.idDir, h.invite = member("b")
	h.c, h.cDir, _ = member("c")
	h.conn = h.dial(h.id)
	return h
}

func (h *hostile) dial(id *ca.Identity) *link.Conn {
	h.t.Helper()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if do := h.answers.Load(); do != nil {
			(*do)(w, r)
			return
		}
		http.NotFound(w, r)
	})
	conn, err := link.Dial(h.t.Context(),
		link.DialOptions{
			Identity: id, Addresses: func() []string { return []string{h.leads.lead.is.Listen} }, Handler: answer,
			Log: slog.New(slog.DiscardHandler),
		})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends one request to the leader.
func (h *hostile) ask(method, path, body string, callers ...string) (int, string) {
	h.t.Helper()
	client, base := h.conn.Client()
	r, err := http.NewRequestWithContext(h.t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, is := range callers {
		r.Header.Add(wire.CallerField, is)
	}
	answer, err := client.Do(r)
	if _, ended := errors.AsType[*link.Away](err); ended { // by the request before
		h.conn = h.dial(h.id)
		return h.ask(method, path, body, callers...)
	}
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

const aPerson = `{"seen":true}`

// head is the number of changes in the leader's journal.
func (h *hostile) head() uint64 {
	h.t.Helper()
	head, _, err := h.leads.Engine.Loop.Journal().Head(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return head
}

// TestHostileHostAsks has a host ask for what it may not have. Nothing of it is in the journal; what it may ask for is.
func TestHostileHostAsks(t *testing.T) {
	h := newHostile(t)
	before := h.head()
	for name, c := range map[string]struct {
		method, path, body, caller string
		code                       int
		says                       string
	}{
		"a command": {
			"POST", "/runs", `{"workflow":"nightly.yaml","command_template":"/usr/bin/touch x"}`,
			aPerson, 409, "X10",
		},
		"a wrapper with arguments": {
			"POST", "/runs",
			`{"workflow":"nightly.yaml","wrapper":"/bin/sh","wrapper_args":["-c","id"]}`, aPerson, 409, "X10",
		},
		"an environment in other letters": {
			"POST", "/runs", `{"workflow":"nightly.yaml","ENV":["LD_PRELOAD=/x"]}`, aPerson, 409,
			"X10",
		},
		"a folder":                      {"POST", "/runs", `{"workflow":"nightly.yaml","workdir":"/"}`, aPerson, 409, "X10"},
		"another repository":            {"POST", "/runs/r1/resume", `{"repo":"/tmp"}`, aPerson, 409, "X10"},
		"a workflow that is not listed": {"POST", "/runs", `{"workflow":"other.yaml"}`, aPerson, 409, "list it under"},
		"a workflow of a carried tree": {
			"POST", "/runs", `{"workflow":".agents/worktrees/T1/nightly.yaml"}`, aPerson, 409,
			"list it under",
		},
		"a workflow around a listed one": {
			"POST", "/runs", `{"workflow":"nightly.yaml/../other.yaml"}`, aPerson, 409,
			"list it under",
		},
		"a second value behind a checked one": {
			"POST", "/runs", `{"workflow":"nightly.yaml","workflow":"other.yaml"}`, aPerson, 422,
			"twice",
		},
		"a second document": {"POST", "/hold", `{"note":"x"} {"note":"y"}`, aPerson, 422, "follows"},
		"a field of a field": {
			"POST", "/runs",
			`{"task":{"text":"x","attachments":[{"name":"a","path":"/etc/passwd"}]}}`, aPerson, 409, "X10",
		},
		"its own work approved":     {"POST", "/runs/T1/merge", `{}`, aPerson, 409, "X10"},
		"its own step approved":     {"POST", "/runs/r1/steps/a/approve", `{}`, aPerson, 409, "X10"},
		"its own question answered": {"POST", "/questions/q1/answer", `{"allow":true,"scope":"always"}`, aPerson, 409, "X10"},
		"an agent of the leader changed": {
			"POST", "/config/write", `{"op":"add","name":"x","agent":{"command":["sh"]}}`, aPerson,
			409, "X10",
		},
		"a browser signed in":                  {"POST", "/login-codes", ``, aPerson, 409, "X10"},
		"an engine host invited":               {"POST", "/hosts/invitations", `{"engine":true}`, aPerson, 409, "X10"},
		"the leader stopped":                   {"POST", "/down", `{"now":true}`, aPerson, 409, "X10"},
		"the leader stopped, in other letters": {"POST", "/%64own", ``, aPerson, 409, "X10"},
		"another host drained":                 {"POST", "/hosts/c/drain", ``, aPerson, 409, "X10"},
		"the leader removed":                   {"POST", "/hosts/a/remove", ``, aPerson, 409, "X10"},
		"the cluster ended":                    {"POST", "/cluster/leave", ``, aPerson, 409, "X10"},
		"a folder for MAIN":                    {"POST", "/dispatch", `{"path":"/tmp/x"}`, aPerson, 409, "X10"},
		"MAIN's voice":                         {"POST", "/dispatch/x/delegate", `{"agent":"coder","text":"x"}`, aPerson, 409, "X10"},
		"a document of the crew":               {"POST", "/crew/import", `{"id":"x"}`, aPerson, 409, "X10"},
		"an agent's voice in a channel": {
			"POST", "/channels/reviews/said", `{"agent":"coder","turn":1,"text":"x"}`, aPerson, 409,
			"X10",
		},
		"other repositories of the user":        {"GET", "/repositories", ``, aPerson, 409, "X10"},
		"a session of another host":             {"POST", "/agents/coder/start", `{}`, `{"session":"coder-1"}`, 409, "the caller is gone"},
		"a session of another repository":       {"POST", "/agents/coder/start", `{}`, `{"foreign":"coder-1"}`, 409, "another repository"},
		"no caller":                             {"POST", "/hold", `{}`, ``, 400, "does not say properly"},
		"a caller with a field that is not its": {"POST", "/hold", `{}`, `{"seen":true,"host":"a"}`, 400, "does not say properly"},
		"a caller beyond the limit": {
			"POST", "/hold", `{}`, `{"session":"` + strings.Repeat("x", 8<<10) + `"}`, 400,
			"limited length",
		},
		"a body beyond the limit":     {"POST", "/hold", `{"note":"` + strings.Repeat("x", 2<<20) + `"}`, aPerson, 413, "limit"},
		"levels without end":          {"POST", "/runs", `{"workflow":` + strings.Repeat("[", 1<<20), aPerson, 422, "levels"},
		"a route that no version has": {"POST", "/exec", `{}`, aPerson, 404, ""},
	} {
		code, text := h.ask(c.method, api.Base+c.path, c.body, c.caller)
		if code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %.300s", name, code, text)
		}
	}
	for name, c := range map[string]struct {
		path, body string
		code       int
	}{
		"the page": {"/", "", 404}, "a file beside the API": {"/.fairlead/token", "", 404},
		"tools with a guessed token": {mcp.Path, "{}", 401}, "a route of hosts": {"/v1/sessions/coder-1", "{}", 404},
	} {
		if code, text := h.ask("POST", c.path, c.body, aPerson); code != c.code {
			t.Errorf("%s: %d %.300s", name, code, text)
		}
	}
	if code, text := h.ask("POST", api.Base+"/hold", "{}", aPerson, aPerson); code != 400 {
		t.Errorf("two callers: %d %s", code, text)
	}
	if now := h.head(); now != before {
		t.Errorf("%d changes were made", now-before)
	}
	if code, text := h.ask("POST", api.Base+"/runs", `{"workflow":"nightly.yaml","run_id":"r1"}`, aPerson); code != 201 {
		t.Errorf("a listed workflow: %d %s", code, text)
	}
	if code, text := h.ask("GET", api.Base+"/runs/r1", "", aPerson); code != 200 {
		t.Errorf("a run: %d %s", code, text)
	}
	if _, err := os.Lstat(filepath.Join(h.dir, "other")); err == nil {
		t.Error("the workflow that is not listed ran")
	}
}

// TestHostileHostRenews has a host say what it is, and ask for leases that are not its own.
func TestHostileHostRenews(t *testing.T) {
	h := newHostile(t)
	good := wire.RenewIn{
		Boot: "boot-1", Capacity: 1, Version: "v1",
		Places: wire.Places{Root: "/srv/b", Exe: "/bin/fairlead", Home: "/home/b"}, Daemon: "b-1",
	}
	text := func(change func(*wire.RenewIn)) string {
		in := good
		change(&in)
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	renew := func(body string) (out wire.RenewOut) {
		t.Helper()
		code, said := h.ask("POST", wire.RenewRoute, body)
		if err := json.Unmarshal([]byte(said), &out); code != 200 || err != nil {
			t.Fatalf("%d %s", code, said)
		}
		return out
	}
	first := renew(text(func(*wire.RenewIn) {}))
	for name, body := range map[string]string{
		"no object":                 `[]`,
		"a field that is new":       `{"boot":"x","name":"c"}`,
		"two objects":               text(func(*wire.RenewIn) {}) + `{}`,
		"beyond the limit":          text(func(in *wire.RenewIn) { in.Version = strings.Repeat("v", wire.BodyMax) }),
		"a repository above itself": text(func(in *wire.RenewIn) { in.Places.Root = "/srv/../etc" }),
		"a program with a quote":    text(func(in *wire.RenewIn) { in.Places.Exe = `/bin/"; id "` }),
		"a home without a root":     text(func(in *wire.RenewIn) { in.Places.Home = "home" }),
		"no places for sessions":    text(func(in *wire.RenewIn) { in.Capacity, in.Boot = -1, "boot-2" }),
		"labels without end": text(func(in *wire.RenewIn) {
			in.Labels, in.Boot = strings.Fields(strings.Repeat("gpu ", 10_000)), "boot-3"
		}),
		"a label that is markup": text(func(in *wire.RenewIn) { in.Labels, in.Boot = []string{"<b>"}, "boot-4" }),
	} {
		before := h.head()
		if code, said := h.ask("POST", wire.RenewRoute, body); code == 200 || h.head() != before {
			t.Errorf("%s: %d %.200s", name, code, said)
		}
	}
	if out := renew(text(func(in *wire.RenewIn) { in.Engine = "127.0.0.1:1" })); out.Host.Engine != "" {
		t.Errorf("it is an engine host by its own word: %+v", out.Host)
	}
	out := renew(text(func(in *wire.RenewIn) { in.N = 0 }))
	next := text(func(in *wire.RenewIn) {
		in.N, in.Revision, in.Incarnation = out.N+1, out.Revision, out.Host.Incarnation
	})
	if taken := renew(next); taken.N != out.N+1 || taken.Revision <= out.Revision {
		t.Errorf("a renewal that is due: %+v", taken)
	} else if again := renew(next); again.Revision != taken.Revision {
		t.Errorf("a renewal is taken twice: %+v", again)
	}
	other := renew(text(func(in *wire.RenewIn) { in.N, in.Revision, in.Incarnation, in.Daemon = 99, 0, 0, "b-0" }))
	if other.Daemon == "b-0" {
		t.Errorf("the renewal of an earlier daemon is taken: %+v", other)
	}
	for name, token := range map[string]host.Token{
		"a session of another host":        {Session: "coder-1", Host: "c", Incarnation: 1, N: 1},
		"a session of the leader":          {Session: "coder-1", Host: "a", Incarnation: 1, N: 1},
		"a session that was never there":   {Session: "coder-1", Host: "b", Incarnation: first.Host.Incarnation, N: 1},
		"a lease of an incarnation before": {Session: "coder-1", Host: "b", N: 1},
		"a lease of later":                 {Session: "coder-1", Host: "b", Incarnation: 1 << 60, N: 1 << 60},
	} {
		body, err := json.Marshal(wire.GrantIn{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		if code, said := h.ask("POST", wire.GrantRoute, string(body)); code != 404 || !strings.Contains(said, string(wire.NotHere)) {
			t.Errorf("%s: %d %s", name, code, said)
		}
	}
}

// TestHostileHostAnswers has the leader ask a host for what a run left there.
func TestHostileHostAnswers(t *testing.T) {
	h := newHostile(t)
	client := h.leads.lead.links()
	if err := client.Await(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	trees := &remote.Trees{
		Root: h.dir,
		Dial: func(ctx context.Context) (*http.Client, string, error) { return h.leads.lead.dial(ctx, "b") },
	}
	const reports = transfer.RunsDir + "/r1/reports"
	outside := filepath.Join(h.dir, "outside")
	for _, dir := range []string{outside, filepath.Join(h.dir, reports)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(h.dir, reports, "out")); err != nil {
		t.Fatal(err)
	}
	answer := func(do http.HandlerFunc) { h.answers.Store(&do) }
	fetch := func(headers ...tar.Header) error {
		answer(func(w http.ResponseWriter, _ *http.Request) {
			to := tar.NewWriter(w)
			for i := range headers {
				if err := to.WriteHeader(&headers[i]); err != nil {
					t.Error(err)
				}
			}
			if len(headers) > 0 && headers[len(headers)-1].Size == 0 {
				_ = to.Close()
			}
		})
		return trees.FetchFiles(t.Context(), h.dir, []string{reports}, nil)
	}
	for name, header := range map[string]tar.Header{
		"a link":               {Typeflag: tar.TypeSymlink, Name: reports + "/l", Linkname: "/etc/passwd"},
		"a hard link":          {Typeflag: tar.TypeLink, Name: reports + "/l", Linkname: "fairlead.yaml"},
		"a pipe":               {Typeflag: tar.TypeFifo, Name: reports + "/p"},
		"a device":             {Typeflag: tar.TypeChar, Name: reports + "/d"},
		"a path above":         {Typeflag: tar.TypeReg, Name: reports + "/../../../../fairlead.yaml"},
		"an absolute path":     {Typeflag: tar.TypeReg, Name: filepath.Join(outside, "x")},
		"another run":          {Typeflag: tar.TypeReg, Name: transfer.RunsDir + "/T1/task.json"},
		"the run's own task":   {Typeflag: tar.TypeReg, Name: transfer.RunsDir + "/r1/task.json"},
		"through a link":       {Typeflag: tar.TypeReg, Name: reports + "/out/x"},
		"a folder like it":     {Typeflag: tar.TypeReg, Name: reports + "-x/x"},
		"a size beyond limits": {Typeflag: tar.TypeReg, Name: reports + "/huge", Size: transfer.FilesBytesMax + 1},
	} {
		if err := fetch(header); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := fetch(tar.Header{Typeflag: tar.TypeReg, Name: reports + "/ok.json"}); err != nil {
		t.Errorf("a report: %v", err)
	}
	was := transfer.Sent{
		Run: "r1", Path: ".agents/worktrees/r1", Head: strings.Repeat("a", 40), Snapshot: strings.Repeat("b", 40),
		Branch: "refs/heads/fairlead/r1",
	}
	other := func(change func(*transfer.Sent)) string { is := was; change(&is); return is.String() }
	for name, tree := range map[string]string{
		"no description":             "",
		"a description that is text": "nonsense",
		"a checkout above":           other(func(s *transfer.Sent) { s.Path = "../x" }),
		"the repository as checkout": other(func(s *transfer.Sent) { s.Path = "." }),
		"settings as checkout":       other(func(s *transfer.Sent) { s.Path = ".git/hooks" }),
		"another run":                other(func(s *transfer.Sent) { s.Run = "r2" }),
		"a flag for a commit":        other(func(s *transfer.Sent) { s.Snapshot = "--upload-pack=id" }),
		"the branch of a person":     other(func(s *transfer.Sent) { s.Branch = "refs/heads/main" }),
		"a pack of garbage":          was.String(),
	} {
		answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(wire.TreeField, tree)
			_, _ = w.Write([]byte("PACK of lies"))
		})
		if _, err := trees.Fetch(t.Context(), filepath.Join(h.dir, was.Path), was, "refs/fairlead/steps/r1/a/1"); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	answer(func(w http.ResponseWriter, _ *http.Request) { // it never ends
		for {
			if _, err := w.Write(bytes.Repeat([]byte("[\""), 1<<15)); err != nil {
				return
			}
		}
	})
	if _, err := trees.SendFiles(t.Context(), h.dir, []string{reports}, nil); err != nil { // a link here is left out
		t.Logf("an answer without an end to files: %v", err)
	}
	if _, err := trees.SendNew(t.Context(), h.dir, []string{reports}, nil); err != nil {
		t.Logf("a list without an end: %v", err)
	}
	left, err := os.ReadDir(outside)
	if err != nil || len(left) > 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
	if text, err := os.ReadFile(filepath.Join(h.dir, "fairlead.yaml")); err != nil || !strings.Contains(string(text), "nightly.yaml") {
		t.Errorf("fairlead.yaml is %q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(h.dir, ".git", "refs", "heads", "main")); err == nil {
		t.Error("there is a branch main")
	}
}
