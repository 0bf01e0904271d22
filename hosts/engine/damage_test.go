package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// hurt is a team of three engine hosts whose last one is damaged while it does not run.
type hurt struct {
	*testing.T
	options []Options
	engines []cluster.EngineHost
	all     []*Replica
	store   string // of the last one
	group   string // of the journal's stream
	mirror  journal.Journal
}

func newHurt(t *testing.T) *hurt {
	t.Helper()
	h := &hurt{T: t}
	h.options, h.engines = hosts(t, "a", "b", "c")
	h.all = meet(t, h.options, h.engines)
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	one := journal.Change{
		Time: time.Now(), Machine: "team", Entity: "team/team", Row: "E1", To: "x", Trigger: "daemon_started",
		Actor: change.Actor{Kind: "engine", ID: "x"},
	}
	if _, err := j.Append(t.Context(), []journal.Change{one, one}); err != nil || j.Close() != nil {
		t.Fatal(err)
	}
	if err := h.all[0].Move(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if h.mirror, err = h.all[0].Open(t.Context(), path, func(why error) { t.Log(why) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.mirror.Close() })
	if _, err := h.all[0].Claim(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if h.group, err = jetstream.Group(t.Context(), h.all[2].nc, cluster.JournalStream, "c"); err != nil {
		t.Fatal(err)
	}
	h.store = h.all[2].node.Store()
	h.complete()
	return h
}

// complete waits until the last host has all of the journal and of the servers' own group.
func (h *hurt) complete() {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), wait.Patience)
	defer cancel()
	if err := jetstream.Current(ctx, h.all[2].nc, cluster.JournalStream, "c"); err != nil {
		h.Fatal(err)
	}
	wait.Until(h.T, "the host has its copy of the journal", func() bool {
		last, err := CopyEnd(ctx, h.options[2].Folder)
		return err == nil && last.Seq == 2
	})
	wait.Until(h.T, "the host is complete in the group", func() bool {
		return h.all[0].node.Others(ctx) == nil || h.all[1].node.Others(ctx) == nil
	})
}

// file is the one of a group that a pattern matches.
func (h *hurt) file(group, pattern string) string {
	h.Helper()
	found, err := filepath.Glob(filepath.Join(h.store, "jetstream", "*", "_js_", group, pattern))
	if err != nil || len(found) == 0 {
		h.Fatal(pattern, found, err)
	}
	return found[len(found)-1]
}

// restart starts the last host again, as its daemon does it, after something was done to its files.
func (h *hurt) restart(do func()) *Replica {
	h.Helper()
	if err := h.all[2].Close(); err != nil {
		h.Fatal(err)
	}
	do()
	s, err := Start(h.Context(), h.options[2], h.engines)
	if err != nil {
		h.Fatal(err)
	}
	h.all[2] = s
	h.Cleanup(func() { _ = s.Close() })
	return s
}

func (h *hurt) kept() []string {
	h.Helper()
	found, err := filepath.Glob(filepath.Join(h.store, "damaged", "*"))
	if err != nil {
		h.Fatal(err)
	}
	return found
}

// renewed waits until the last host has its store again. It does not wait for the next look of the host itself.
func (h *hurt) renewed() {
	h.Helper()
	s, last := h.all[2], error(nil)
	wait.Until(h.T, "the host has its store again", func() bool {
		if s.Storeless() {
			last = s.Revive(h.Context())
		}
		return !s.Storeless()
	})
	if s.Damaged() {
		h.Fatal(s.Damage(), last)
	}
	h.complete()
}

// keepSound copies the files of the last host, once both groups have a snapshot, and starts it twice with sound files.
func (h *hurt) keepSound(root, sound string) {
	h.Helper()
	wait.Until(h.T, "both groups have a snapshot", func() bool { // a server that ends may be too quick for one
		is, snapshots := h.restart(func() {}), 0
		if is.Damaged() || is.Storeless() || is.Fault() != "" || len(h.kept()) > 0 {
			h.Fatalf("sound files are damaged: %s", is.Fault())
		}
		h.complete()
		h.restart(func() {
			for _, name := range []string{jetstream.ServersGroup, h.group} {
				found, _ := filepath.Glob(filepath.Join(root, "*", "_js_", name, "snapshots", "snap.*"))
				snapshots += min(len(found), 1)
			}
			if err := os.RemoveAll(sound); err != nil || os.CopyFS(sound, os.DirFS(root)) != nil {
				h.Fatal(err)
			}
		})
		h.complete()
		return snapshots == 2
	})
}

// Files of the servers' own group, and of the group of a stream, are damaged while a host does not run. What the server would not start
// with, or would silently drop, is found before it starts: the host does not lead and does not vote, and takes the group from the others.
// The damaged files are kept. What the server makes again by itself is no damage.
func TestDamagedGroup(t *testing.T) {
	t.Parallel()
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	flip := func(b []byte) []byte { b[len(b)/2] ^= 0x80; return b }
	empty := func([]byte) []byte { return nil }
	for _, group := range []string{jetstream.ServersGroup, "journal"} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			h := newHurt(t)
			group := group
			if group == "journal" {
				group = h.group
			}
			root, sound := filepath.Join(h.store, "jetstream"), filepath.Join(t.TempDir(), "sound")
			h.keepSound(root, sound)
			for _, tt := range []struct {
				file    string
				name    string
				do      func([]byte) []byte
				damaged bool
			}{
				{"snapshots/snap.*", "cut", cut, true},
				{"snapshots/snap.*", "flipped", flip, true},
				{"snapshots/snap.*", "empty", empty, true},
				{"peers.idx", "cut", cut, true},
				{"peers.idx", "flipped", flip, true},
				{"peers.idx", "empty", empty, true},
				{"tav.idx", "cut", func(b []byte) []byte { return b[:4] }, true},
				{"tav.idx", "flipped", func(b []byte) []byte { b[7] ^= 0x80; return b }, true},
				{"tav.idx", "empty", empty, true},
				{"msgs/index.db", "cut", cut, false},
				{"msgs/index.db", "flipped", flip, false},
				{"msgs/index.db", "empty", empty, false},
				{"meta.inf", "empty", empty, false},
				{"meta.sum", "flipped", flip, false},
			} {
				var was []byte
				before := len(h.kept())
				stream := filepath.Join(h.store, "jetstream", "$G", "streams", cluster.JournalStream)
				var first os.FileInfo
				s := h.restart(func() {
					if err := os.RemoveAll(root); err != nil || os.CopyFS(root, os.DirFS(sound)) != nil {
						t.Fatal(err)
					}
					var err error
					if first, err = os.Stat(stream); err != nil {
						t.Fatal(err)
					}
					path := h.file(group, tt.file)
					text, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if was = tt.do(text); os.WriteFile(path, was, 0o600) != nil {
						t.Fatal("write")
					}
				})
				if tt.damaged {
					if !s.Damaged() || !s.Storeless() || !strings.Contains(s.Fault(), group) {
						t.Errorf("%s %s: the server runs with it: %s", tt.file, tt.name, s.Fault())
					}
					h.renewed()
				}
				h.complete()
				kept := h.kept()
				if !tt.damaged && (s.Damaged() || len(kept) != before) {
					t.Errorf("%s %s: it is damage: %s", tt.file, tt.name, s.Fault())
				}
				if tt.damaged {
					found, err := filepath.Glob(filepath.Join(slices.Max(kept), "*", "_js_", group, tt.file))
					if err != nil || len(found) == 0 {
						t.Fatalf("%s %s: it was not kept: %v", tt.file, tt.name, err)
					}
					if text, err := os.ReadFile(found[len(found)-1]); err != nil || !bytes.Equal(text, was) {
						t.Errorf("%s %s: another one was kept: %v", tt.file, tt.name, err)
					}
				}
				now, err := os.Stat(stream)
				if err != nil || os.SameFile(first, now) != (!tt.damaged || group == jetstream.ServersGroup) {
					t.Errorf("%s %s: the copy of the journal was replaced: %t, %v", tt.file, tt.name, !os.SameFile(first, now), err)
				}
				for _, f := range CheckCopy(t.Context(), s.o.Folder, "c", h.mirror) {
					if !f.OK {
						t.Errorf("%s %s: %s", tt.file, tt.name, f.What)
					}
				}
			}
			if n := len(h.kept()); n != 3 {
				t.Errorf("%d folders of damaged files are kept", n)
			}
			if err := jetstream.Lead(t.Context(), h.all[2].nc, cluster.JournalStream, "c"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A damaged host whose files cannot be fetched again keeps them, says what to do, and neither leads nor votes. When the other engine hosts
// are complete it fetches the files without a command.
func TestDamagedAlone(t *testing.T) {
	t.Parallel()
	h := newHurt(t)
	if err := h.all[1].Close(); err != nil {
		t.Fatal(err)
	}
	var path string
	s := h.restart(func() {
		path = h.file(jetstream.ServersGroup, "peers.idx")
		if err := os.Truncate(path, 20); err != nil {
			t.Fatal(err)
		}
	})
	if err := s.Revive(t.Context()); !errors.Is(err, errIncomplete) || !s.Damaged() || !s.Storeless() {
		t.Errorf("it was fetched again from one host: %v", err)
	}
	wait.Until(t, "it says what to do", func() bool { return strings.Contains(s.Fault(), "`fairlead cluster leave --others-lost`") })
	if info, err := os.Stat(path); err != nil || info.Size() != 20 || len(h.kept()) > 0 {
		t.Errorf("the damaged file is gone: %v", err)
	}
	b, err := Start(t.Context(), h.options[1], h.engines)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	h.all[1] = b
	wait.Until(t, "it has its store again", func() bool { return !s.Storeless() && s.Fault() == "" && !s.Damaged() })
	h.complete()
	if len(h.kept()) != 1 {
		t.Error(h.kept())
	}
}
