package nemesis

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// damages are of one engine host, while its daemon is down. says is in its log afterwards.
var damages = []struct {
	name, says string
	do         func(w *world, m *mirror)
}{
	{"a flipped bit in the copy of the server", "the server's copy of the journal on this host is damaged", func(w *world, m *mirror) {
		w.rewrite(w.blocks(m)[0], func(b []byte) []byte { b[len(b)/3] ^= 4; return b })
	}},
	{"a truncated copy of the server", "the server's copy of the journal on this host is damaged", func(w *world, m *mirror) {
		w.rewrite(w.blocks(m)[0], func(b []byte) []byte { return b[:len(b)/2] })
	}},
	{"a lost store", "", func(w *world, m *mirror) {
		w.ok(os.RemoveAll(filepath.Join(m.dir, ".fairlead", "cluster", "nats")))
	}},
	{"cut snapshots of the server", "files of the server of this engine host are damaged", cutSnapshot},
	{"a flipped bit in the mirror", "the copy of the journal on this host is damaged: it is renamed", func(w *world, m *mirror) {
		w.rewrite(filepath.Join(m.dir, ".fairlead", "journal.db"), func(b []byte) []byte {
			at := bytes.Index(b, []byte("agent_state.json")) // in the text of an early change
			if at < 0 {
				w.Fatal("the journal's file has not the text that is to be damaged")
			}
			b[at] ^= 1
			return b
		})
	}},
}

// blocks are the files of the journal in the store of an engine host.
func (w *world) blocks(m *mirror) []string {
	w.Helper()
	found, err := filepath.Glob(filepath.Join(m.dir, ".fairlead", "cluster", "nats", "store", "jetstream", "*", "streams",
		"fairlead-journal", "msgs", "*.blk"))
	w.ok(err)
	if len(found) == 0 {
		w.Fatalf("%s has no copy of the journal", m.host)
	}
	return found
}

func (w *world) rewrite(path string, with func([]byte) []byte) {
	w.Helper()
	was, err := os.ReadFile(path)
	w.ok(err)
	w.ok(os.WriteFile(path, with(was), 0o600))
}

// wrote is what the daemon of a host has written to its log.
func (w *world) wrote(host string) string {
	text, err := os.ReadFile(filepath.Join(w.dir, host+".log"))
	w.ok(err)
	return string(text)
}

// TestEngineDamage damages what an engine host keeps, of one that does not lead, and then of the one that leads.
func TestEngineDamage(t *testing.T) {
	w := newEngines(t)
	defer w.show()
	w.large()
	stop := w.orders()
	for _, host := range []string{"b", leader} {
		for _, is := range damages {
			w.lead(leader)
			w.whole()
			m := w.engine(host)
			before := len(w.wrote(host))
			w.stop(host)
			is.do(w, m)
			w.up(host)
			w.said(host, before, is.says)
			wait.Until(w, "the copy of "+host+" is whole", func() bool {
				out, _ := w.try(host, "doctor")
				return strings.Contains(out, "the copy of "+host+" is whole") && strings.Contains(out, "the history is whole")
			})
			w.whole()
			t.Logf("%s of host %s: found and repaired; %s leads", is.name, host, w.leads())
		}
	}
	t.Logf("measured: the longest time between two acknowledged orders was %v; %d were acknowledged", stop(), w.acks())
	w.check()
}

// large makes the journal longer than one file of a server's copy. What is in the last one the server itself fetches anew.
func (w *world) large() {
	w.Helper()
	w.fairlead(leader, "channel", "disable", "idle", "keeper") // no session begins
	text := strings.Repeat("x", 120_000)
	wait.Until(w, "the copies have several files", func() bool {
		w.fairlead(leader, "channel", "say", "large", text)
		return !slices.ContainsFunc(w.engines, func(m *mirror) bool { return len(w.blocks(m)) < 2 })
	})
}

// stop ends the daemon of a host, with the sessions of a leader. After a kill the server looks at all that it has, and fetches what is
// damaged itself.
func (w *world) stop(host string) {
	w.Helper()
	for range 2 {
		w.ok(w.daemons[host].Process.Signal(os.Interrupt))
	}
	_ = w.daemons[host].Wait()
}

// said waits until the log of a host has a text, behind what it had before.
func (w *world) said(host string, before int, text string) {
	w.Helper()
	wait.Until(w, "the log of "+host+" says: "+text, func() bool { return strings.Contains(w.wrote(host)[before:], text) })
}
