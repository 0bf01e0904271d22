package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli/hosts"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/engine"
	"github.com/fairlead-dev/fairlead/internal/test/ports"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// three are engine hosts a, b and c whose servers run. Nothing of b and c waits for a: they need not have met it.
func three(t *testing.T) (all [3]*engines) {
	t.Helper()
	authority, err := ca.Create(t.TempDir(), "web", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var list []cluster.EngineHost
	var options [3]engine.Options
	for i, name := range []string{"a", "b", "c"} {
		o := engine.Options{Folder: t.TempDir(), Listen: ports.Address(2), Log: slog.New(slog.DiscardHandler)}
		if o.Identity, err = ca.NewIdentity(o.Folder, name, time.Now); err != nil {
			t.Fatal(err)
		}
		request, err := o.Identity.Request([]string{name, "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := authority.Sign(request, name, cluster.Engine, net.IP.IsLoopback, time.Now())
		if err := errors.Join(err, o.Identity.Install(certificate, authority.PEM())); err != nil {
			t.Fatal(err)
		}
		options[i] = o
		list = append(list, cluster.EngineHost{Name: name, Address: o.Listen, Key: o.Identity.PublicKey()})
	}
	for i, o := range options {
		e := besideOf(t)
		e.ctx, e.end = context.WithCancel(t.Context())
		e.is, e.folder, e.id, e.log = hosts.Cluster{Team: "web", Name: list[i].Name, Listen: o.Listen}, o.Folder, o.Identity, o.Log
		e.facts = engine.Facts{Engines: list}
		if e.server, err = engine.Start(t.Context(), o, list); err != nil {
			t.Fatal(err)
		}
		all[i] = e
	}
	return all
}

// history is a journal with so many changes.
func history(t *testing.T, changes int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	j, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	one := journal.Change{
		Time: time.Unix(1, 0), Machine: "team", Entity: "team/team", Row: "E1", To: "x", Trigger: "daemon_started",
		Actor: change.Actor{Kind: "engine", ID: "x"},
	}
	for range changes {
		if _, err := j.Append(t.Context(), []journal.Change{one}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A leader dies at each step of the move of its journal to three servers, which the other two have perhaps not met yet. Either they can
// lead, or the journal on the leader's disk is the only one that counts. Then they do not lead, and have what was copied for a person who
// asks.
func TestLeaderDiesWhileItMoves(t *testing.T) {
	t.Parallel()
	const whole = 3
	for _, tt := range []struct {
		name   string
		copied uint64 // changes, when it dies
		noted  bool   // on its disk, that the journal is in the stream
		claims bool   // the lease
	}{
		{name: "before it copies"},
		{name: "it has copied a part", copied: 1},
		{name: "it has copied all", copied: whole},
		{name: "it has noted that", copied: whole, noted: true},
		{name: "it has claimed the lead", copied: whole, noted: true, claims: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			all := three(t)
			a, b, c := all[0], all[1], all[2]
			ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
			defer cancel()
			if err := a.server.Meet(ctx, func(cluster.Unreplicated) {}); err != nil {
				t.Fatal(err)
			}
			path := history(t, int(tt.copied)) //nolint:gosec // few
			switch {
			case tt.noted:
				if err := a.move(ctx, path); err != nil {
					t.Fatal(err)
				}
			case tt.copied > 0:
				if err := a.server.Move(ctx, path); err != nil {
					t.Fatal(err)
				}
			}
			if tt.claims {
				if err := a.claimFirst(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			for _, e := range []*engines{b, c} { // nothing that they do not answer yet looks like something that is not so
				wait.Until(t, "the others answer", func() bool {
					ctx, cancel := context.WithTimeout(ctx, 3*time.Second) // a question while they elect one of them gets no answer
					defer cancel()
					name, _, err := e.server.Leader(ctx)
					return err == nil && (name == "a") == tt.claims
				})
				if _, is := e.moved(ctx); is != tt.claims {
					t.Errorf("%s takes the journal for replicated: %t", e.is.Name, is)
				}
			}
			if tt.claims {
				wait.Until(t, "it is kept", func() bool { return b.known().Stream && c.known().Stream })
				leads, err := b.server.Take(ctx, 0, func(err error) { t.Log(err) })
				if err != nil || !leads.Confirmed() {
					t.Fatal(err)
				}
			}
			if err := errors.Join(b.Close(), c.Close()); err != nil {
				t.Fatal(err)
			}

			// The disk of the leader says where the journal is when it is back.
			if facts, err := engine.LoadFacts(a.folder); err != nil || facts.Stream != tt.noted {
				t.Errorf("%+v, %v", facts, err)
			}

			// If that disk is lost, too, a server that has what was copied gives it back.
			longest := uint64(0)
			for _, e := range []*engines{b, c} {
				last, err := engine.CopyEnd(t.Context(), e.folder)
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(t.TempDir(), "journal.db")
				if err := engine.Salvage(t.Context(), e.folder, path); err != nil {
					t.Fatal(err)
				}
				j, err := sqlite.Open(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				head, _, err := j.Head(t.Context())
				if err := errors.Join(err, journal.Verify(t.Context(), j), j.Close()); err != nil || head != last.Seq {
					t.Errorf("%s gives %d changes of %d, %v", e.is.Name, head, last.Seq, err)
				}
				longest = max(longest, head)
			}
			if longest != tt.copied {
				t.Errorf("the others have %d changes, want %d", longest, tt.copied)
			}
		})
	}
}
