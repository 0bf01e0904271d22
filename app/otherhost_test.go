package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/invite"
	"github.com/fairlead-dev/fairlead/hosts/local"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// otherHost is another machine of a bubble's team. Its daemon follows the rules of core/host, its checkouts are real,
// and its processes are those of a fakeHost.
type otherHost struct {
	b          *bubble
	name, root string
	host       *fakeHost
	guard      *host.Guard
	routes     *http.ServeMux
	slow       chan struct{} // until it is closed, it does not say what its lost sessions left; nil: it does at once

	mu   sync.Mutex
	of   map[string]host.Token // the lease of each session that was started
	up   chan struct{}         // closed while it is connected
	cut  context.CancelFunc
	link context.Context //nolint:containedctx // it ends when the connection breaks
}

// others makes the bubble a leader, named a, of some other hosts. They are away.
func (b *bubble) others(names ...string) (all []*otherHost) {
	b.t.Helper()
	b.cluster = &outside.Cluster{
		Team: "shop", Name: "a", Capacity: 2, Folder: filepath.Join(b.conf.Dir, ".fairlead", "hosts"), Recheck: func() {},
		Dial: func(ctx context.Context, name string) (*http.Client, string, error) {
			for _, o := range all {
				if o.name == name {
					return o.dial(ctx)
				}
			}
			return nil, "", errors.New("there is no host " + name)
		},
		Foreign: func(string) string { return "" },
		Connected: func(name string) string {
			for _, o := range all {
				if o.name == name && o.connected() {
					return "10.0.0.2:5000"
				}
			}
			return ""
		},
	}
	for _, name := range names {
		root, err := filepath.EvalSymlinks(b.t.TempDir())
		if err != nil {
			b.t.Fatal(err)
		}
		o := &otherHost{
			b: b, name: name, root: root, host: newFakeHost(), guard: host.NewGuard(name, name+"-1", 0),
			routes: http.NewServeMux(), of: map[string]host.Token{}, up: make(chan struct{}),
		}
		o.host.play = b.host.play
		o.serve()
		all = append(all, o)
	}
	return all
}

func (o *otherHost) connected() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.link != nil && o.link.Err() == nil
}

func (o *otherHost) dial(ctx context.Context) (*http.Client, string, error) {
	o.mu.Lock()
	up := o.up
	o.mu.Unlock()
	select {
	case <-up:
		return &http.Client{Transport: o}, "http://" + o.name, nil
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
}

// connects connects the host, and breaks its connection when it is called again.
func (o *otherHost) connects() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.link, o.cut = context.WithCancel(context.Background())
	close(o.up)
}

func (o *otherHost) disconnects() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut != nil {
		o.cut()
		o.cut, o.up = nil, make(chan struct{})
	}
}

// joins invites the host, connects it, and renews its lease until it has one.
func (o *otherHost) joins() {
	o.b.t.Helper()
	if err := o.b.engine.Cluster.Admit(o.b.t.Context(),
		invite.Joiner{Member: cluster.Member{Name: o.name, Key: "U" + o.name}, Invited: "ann"}); err != nil {
		o.b.t.Fatal(err)
	}
	o.connects()
	o.lives(15 * time.Second)
}

// lives lets time pass, in which the host renews its lease.
func (o *otherHost) lives(d time.Duration) {
	o.b.t.Helper()
	for ; d > 0; d -= time.Duration(host.RenewEvery) {
		o.renew()
		o.b.after(time.Duration(host.RenewEvery))
	}
}

func (o *otherHost) renew() {
	o.b.t.Helper()
	now := host.BootTime(time.Since(o.b.began))
	in := wire.RenewIn{
		Boot: "boot-" + o.name, Labels: []string{"gpu"}, Capacity: 1, Daemon: o.name + "-1",
		Incarnation: o.guard.Incarnation, Places: wire.Places{Root: o.root, Exe: "/bin/fairlead"},
	}
	if r, due := o.guard.Renew(now); due {
		in.N, in.Revision = r.N, r.Revision
	}
	out, err := o.b.engine.Cluster.Renew(o.b.t.Context(), o.name, in)
	if err != nil {
		o.b.t.Fatal(err)
	}
	o.guard.Read(&out.Host, in.Boot)
	o.guard.SawEpoch(out.Epoch)
	o.guard.SawLease(out.Revision, host.RenewalID{Daemon: out.Daemon, N: out.N}, out.Closed)
}

// end ends everything of the host.
func (o *otherHost) end() {
	o.disconnects()
	o.host.killAll()
	for _, fault := range o.host.faults {
		o.b.t.Error(fault)
	}
}

// tree is the host's checkout of T1.
func (o *otherHost) tree() string { return filepath.Join(o.root, ".agents", "worktrees", "T1") }

func (o *otherHost) write(name, text string) {
	o.b.t.Helper()
	if err := os.WriteFile(filepath.Join(o.tree(), name), []byte(text), 0o600); err != nil {
		o.b.t.Error(err)
	}
}

// serve registers the routes of sessions, for a fakeHost, and those of checkouts.
func (o *otherHost) serve() {
	(&local.Trees{Root: o.root, Log: slog.New(slog.DiscardHandler)}).Routes(o.routes)
	here := hostHandle{o.host, newCrashPoint(0, false)}
	o.serveStart(here)
	o.serveProcess(here)
}

// route serves one request about a session.
func (o *otherHost) route(pattern string, answer func(ctx context.Context, id string, r *http.Request) (any, error)) {
	o.routes.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		out, err := answer(r.Context(), r.PathValue("id"), r)
		if err != nil {
			wire.Fail(w, err)
			return
		}
		wire.Answer(w, out)
	})
}

func statusOf(p sessionhost.Process) wire.Status {
	is := wire.Status{PID: p.PID()}
	is.Input, is.Label = p.(sessionhost.InputWriter).Input()
	return is
}

func (o *otherHost) serveStart(here hostHandle) {
	o.route("POST "+wire.SessionRoute, func(ctx context.Context, id string, r *http.Request) (any, error) {
		var in wire.StartIn
		if err := wire.Read(r.Body, &in); err != nil {
			return nil, err
		}
		if _, err := o.b.engine.Cluster.Grant(ctx, o.name, wire.GrantIn{Token: in.Token}); err != nil {
			return nil, err
		}
		if in.Launch.Dir != "" && in.Launch.Dir != o.tree() {
			return nil, &spawn.CannotStart{Why: "it is to work in " + in.Launch.Dir}
		}
		p, err := here.Start(ctx, id, in.Epoch, spawn.Launch{Argv: in.Launch.Argv, Input: in.Launch.Input}, 0)
		if err != nil {
			return nil, err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.of[id] = in.Token
		return statusOf(p), nil
	})
	o.route("GET "+wire.LeaseRoute, func(ctx context.Context, id string, _ *http.Request) (any, error) {
		if o.slow != nil {
			select {
			case <-o.slow:
			case <-ctx.Done():
			}
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		token, began := o.of[id]
		if !began {
			return nil, &wire.Problem{Code: wire.NotHere, Why: "there is no such session"}
		}
		return wire.LeaseOut{Token: token}, nil
	})
	o.route("POST "+wire.AdoptRoute, func(ctx context.Context, id string, r *http.Request) (any, error) {
		var in wire.AdoptIn
		if err := wire.Read(r.Body, &in); err != nil {
			return nil, err
		}
		p, found, err := here.Adopt(ctx, id, in.Epoch)
		out := wire.AdoptOut{Found: found}
		if p != nil {
			is := statusOf(p)
			out.Status = &is
		}
		return out, err
	})
}

func (o *otherHost) serveProcess(here hostHandle) {
	proc := func(ctx context.Context, id string, r *http.Request) (sessionhost.Process, error) {
		epoch, err := strconv.ParseUint(r.Header.Get(wire.EpochField), 10, 64)
		if err != nil {
			return nil, err
		}
		p, found, err := here.Adopt(ctx, id, epoch)
		if err == nil && found == sessionhost.NeverStarted {
			err = &wire.Problem{Code: wire.NotHere, Why: "there is no such session"}
		}
		return p, err
	}
	order := func(pattern string, do func(ctx context.Context, p sessionhost.Process, r *http.Request) (any, error)) {
		o.route(pattern, func(ctx context.Context, id string, r *http.Request) (any, error) {
			p, err := proc(ctx, id, r)
			if err != nil {
				return nil, err
			}
			return do(ctx, p, r)
		})
	}
	order("GET "+wire.EndedRoute, func(ctx context.Context, p sessionhost.Process, _ *http.Request) (any, error) {
		select {
		case <-p.Done():
			return p.Ended(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	order("POST "+wire.InputRoute, func(ctx context.Context, p sessionhost.Process, r *http.Request) (any, error) {
		var in wire.InputIn
		if err := wire.Read(r.Body, &in); err != nil {
			return nil, err
		}
		return struct{}{}, p.(sessionhost.InputWriter).SendAs(ctx, in.Label, in.Bytes)
	})
	order("POST "+wire.CloseInputRoute, func(ctx context.Context, p sessionhost.Process, _ *http.Request) (any, error) {
		return struct{}{}, p.CloseInput(ctx)
	})
	order("POST "+wire.EndRoute, func(ctx context.Context, p sessionhost.Process, _ *http.Request) (any, error) {
		return struct{}{}, p.End(ctx, 0)
	})
	order("POST "+wire.AckRoute, func(ctx context.Context, p sessionhost.Process, _ *http.Request) (any, error) {
		return struct{}{}, p.Ack(ctx)
	})
	order("GET "+wire.EvidenceRoute, func(ctx context.Context, p sessionhost.Process, _ *http.Request) (any, error) { return p.Evidence(ctx) })
	o.routes.HandleFunc("GET "+wire.OutputRoute, func(w http.ResponseWriter, r *http.Request) {
		offset, err := strconv.ParseInt(r.FormValue("offset"), 10, 64)
		var out io.ReadCloser
		if err == nil && r.Header.Get(wire.EpochField) == "" {
			out, err = here.Output(r.Context(), r.PathValue("id"), offset)
		} else if err == nil {
			var p sessionhost.Process
			if p, err = proc(r.Context(), r.PathValue("id"), r); err == nil {
				out, err = p.Output(r.Context(), offset)
			}
		}
		if err != nil {
			wire.Fail(w, err)
			return
		}
		defer out.Close()
		w.WriteHeader(http.StatusOK)
		if _, err := io.Copy(w, out); err != nil {
			panic(http.ErrAbortHandler)
		}
	})
}

// RoundTrip carries out a request in this process. It breaks off when the host's connection does.
func (o *otherHost) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	link := o.link
	o.mu.Unlock()
	ctx, stop := context.WithCancel(r.Context())
	out, in := io.Pipe()
	broken := context.AfterFunc(link, func() {
		_ = in.CloseWithError(errors.New("the connection broke"))
		stop()
	})
	w := &pipedAnswer{header: http.Header{}, to: in, begun: make(chan struct{})}
	asked := r.Clone(ctx)
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	go func() {
		defer asked.Body.Close()
		defer broken()
		defer func() {
			if recover() != nil {
				_ = in.CloseWithError(errors.New("the answer broke off"))
			}
			w.WriteHeader(http.StatusOK)
			_ = in.Close()
		}()
		o.routes.ServeHTTP(w, asked)
	}()
	select {
	case <-w.begun:
		return &http.Response{StatusCode: w.status, Header: w.header, Body: &pipedBody{out, stop}, Request: r}, nil
	case <-ctx.Done():
		_ = out.Close()
		return nil, ctx.Err()
	}
}

type pipedBody struct {
	*io.PipeReader
	stop context.CancelFunc
}

func (b *pipedBody) Close() error {
	b.stop()
	return b.PipeReader.Close()
}

// pipedAnswer is read while it is written.
type pipedAnswer struct {
	header http.Header
	status int
	once   sync.Once
	begun  chan struct{}
	to     *io.PipeWriter
}

func (a *pipedAnswer) Header() http.Header { return a.header }
func (a *pipedAnswer) Flush()              { a.WriteHeader(http.StatusOK) }

func (a *pipedAnswer) WriteHeader(status int) {
	a.once.Do(func() {
		a.status = status
		close(a.begun)
	})
}

func (a *pipedAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.to.Write(b)
}

// teamBubble is a team whose agent coder works on other hosts. work is what each of its sessions does.
// Bubbles with `git worktree` do not run in parallel: such commands wait for each other in the whole process.
func teamBubble(t *testing.T, onLost host.OnLost, work func(s *fakeSession), test func(t *testing.T, b *bubble, hosts []*otherHost)) {
	t.Helper()
	taskBubble(t, func(_ *bubble, _ int, _ string, s *fakeSession) { work(s) }, nil, func(t *testing.T, b *bubble) {
		coder := b.agent("coder")
		coder.Host.Any, coder.Host.Labels, coder.OnLost = true, []string{"gpu"}, string(onLost)
		hosts := b.others("b", "c")
		defer func() {
			for _, o := range hosts {
				o.end()
			}
		}()
		b.start()
		test(t, b, hosts)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// output is what a session has printed, as the leader has it.
func (b *bubble) output(session string) string {
	b.t.Helper()
	out, err := b.engine.opts.Host.Output(b.t.Context(), session, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer out.Close()
	text, err := io.ReadAll(out)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// file is a file of the leader's checkout of T1; empty: it has none.
func (b *bubble) file(name string) string {
	text, err := os.ReadFile(filepath.Join(b.tree(), name))
	if err != nil {
		return ""
	}
	return string(text)
}
