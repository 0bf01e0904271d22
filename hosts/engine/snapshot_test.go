package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/jetstream"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// A server that cannot read a snapshot of the group of a stream gets nothing of that stream. If the check before its start did not see
// that, the host finds it later, is not to lead, and fetches its copy again from the others.
func TestSnapshotCut(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{cluster.JournalStream, cluster.LeaseStream} {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			options, engines := hosts(t, "a", "b", "c")
			options[2].check = func(string) error { return nil }
			all := meet(t, options, engines)
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
			if err := all[0].Move(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			if _, err := all[0].Claim(t.Context(), 0); err != nil {
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
				return found[0].OK
			}
			if !check() || s.Damaged() {
				t.Fatal("a copy that is whole is damaged")
			}

			api, err := js.New(all[0].nc)
			if err != nil {
				t.Fatal(err)
			}
			is, err := api.Stream(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			group := is.CachedInfo().Cluster.RaftGroup
			if err := s.node.Stop(t.Context()); err != nil { // it writes its snapshots
				t.Fatal(err)
			}
			snaps, err := filepath.Glob(filepath.Join(s.node.Store(), "jetstream", "*", "_js_", group, "snapshots", "snap.*"))
			if err != nil || len(snaps) != 1 {
				t.Fatal(snaps, err)
			}
			info, err := os.Stat(snaps[0])
			if err := errors.Join(err, os.Truncate(snaps[0], info.Size()/2)); err != nil {
				t.Fatal(err)
			}
			if err := s.node.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, "the server is connected again", func() bool { return len(s.Others()) > 0 && s.nc.IsConnected() })
			s.joinWait = 3 * time.Second
			if check() || !s.Damaged() {
				t.Fatal("it is not found")
			}
			if err := s.Repair(t.Context(), mirror); err != nil {
				t.Fatal(err)
			}
			if !check() || s.Damaged() {
				t.Error("it is damaged after its repair")
			}
			if err := jetstream.Lead(t.Context(), s.nc, stream, s.node.Name()); err != nil {
				t.Error(err)
			}
		})
	}
}
