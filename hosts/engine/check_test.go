package engine

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// A journal that meets damage while most servers are away can be closed: it does not wait for them.
func TestReportWithoutMajority(t *testing.T) {
	t.Parallel()
	all := servers(t, "a", "b", "c")
	for _, away := range all[1:] {
		if err := away.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	all[0].o.Log = slog.New(slog.NewTextHandler(&said, nil))
	all[0].report(&jetstream.Damage{What: "a message is missing"})
	if err := all[0].Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(said.String(), "no other server could be asked") {
		t.Errorf("it has waited for them: %s", &said)
	}
}

// A copy is damaged in an early file, which the server itself does not notice at its start. The comparison with the mirror finds it, and
// the server fetches its copy anew while this process asks the other servers through it.
func TestRepair(t *testing.T) {
	t.Parallel()
	if testsize.Race {
		t.Skip("the servers write 20 MB each, too slow with the race detector")
	}
	all := servers(t, "a", "b", "c")
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	big := journal.Change{
		Time: time.Now(), Machine: "team", Entity: "team/team", Row: "E1", To: "x", Trigger: "daemon_started",
		Actor: change.Actor{Kind: "engine", ID: "x"}, Data: []byte(`"` + strings.Repeat("x", 700_000) + `"`),
	}
	for range 28 {
		if _, err := j.Append(t.Context(), []journal.Change{big}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := all[0].Move(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	s := all[2]
	mirror, err := s.Open(t.Context(), filepath.Join(t.TempDir(), "mirror.db"), func(why error) { t.Log(why) })
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	check := func() bool {
		t.Helper()
		found, err := s.Check(t.Context(), mirror)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(found[0].What)
		return found[0].OK
	}
	if !check() {
		t.Error("a copy that is whole is damaged")
	}
	blocks := func() []string {
		found, err := filepath.Glob(filepath.Join(s.node.Store(), "jetstream", "*", "streams", "fairlead-journal", "msgs", "*.blk"))
		if err != nil || len(found) < 2 {
			t.Fatal(found, err)
		}
		return found
	}
	text, err := os.ReadFile(blocks()[0])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 4
	if err := s.node.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blocks()[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the server is connected again", func() bool { return len(s.Others()) > 0 && s.nc.IsConnected() })
	if check() {
		t.Error("a flipped bit is not found")
	}
	if err := s.Repair(t.Context(), mirror); err != nil {
		t.Fatal(err)
	}
	if !check() {
		t.Error("the copy is damaged after its repair")
	}
}
