package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// TestSnapshots checks that a snapshot and the changes after it give the whole team, and that a
// snapshot that is damaged, or has another format or history, is ignored.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	spoil := map[string]func(s *journal.Snapshot){
		"whole":        func(*journal.Snapshot) {},
		"another form": func(s *journal.Snapshot) { s.Format = "team/0"; s.Data = []byte(`{"team":{"agents":{"ghost":{}}}}`) },
		"damaged":      func(s *journal.Snapshot) { s.Data = s.Data[:len(s.Data)/2] },
		"empty":        func(s *journal.Snapshot) { s.Data = []byte(`{}`) },
		"null":         func(s *journal.Snapshot) { s.Data = []byte(`null`) },
		"of a newer version": func(s *journal.Snapshot) {
			s.Data = []byte(strings.Replace(string(s.Data), `{"team":{`, `{"team":{"fact_of_tomorrow":1,`, 1))
		},
		"without agents": func(s *journal.Snapshot) { s.Data = []byte(`{"team":{"agents":null},"versions":{}}`) },
	}
	for name, change := range spoil {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder pm", func(t *testing.T, b *bubble) {
				b.host.play = func(s *fakeSession) { s.say("usage 1 2 3"); s.lasts(time.Second) }
				b.start()
				b.engine.opts.Files.(*fakeFiles).disk.writeDesired("pm", "continuous", "x", time.Now())
				b.command("coder", "run_once")
				b.after(10 * time.Second)
				if err := b.stop(); err != nil { // this stores one
					t.Fatal(err)
				}
				snap, ok, err := b.slate.Latest(t.Context())
				if err != nil || !ok || snap.Seq != uint64(len(b.history())) {
					t.Fatalf("%v %v, of %d", ok, err, snap.Seq)
				}
				change(&snap)
				if err := b.slate.SaveSnapshot(t.Context(), snap); err != nil {
					t.Fatal(err)
				}
				b.start()
				read := 0
				if err := b.engine.Loop.View(t.Context(), func(*team.Team) { read = b.engine.Loop.Unsaved() }); err != nil {
					t.Fatal(err)
				}
				b.after(10 * time.Second)
				b.command("coder", "run_once")
				b.after(5 * time.Second)
				if used := uint64(read) < snap.Seq; used != (name == "whole") {
					t.Errorf("%d changes were read, and %d were in the snapshot", read, snap.Seq)
				}
				if err := b.engineTeamIsReplayed(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestSnapshotThatIsRefused checks that the engine continues if the journal refuses a snapshot.
func TestSnapshotThatIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.unsaving = true
		b.start()
		if err := b.engine.Loop.View(t.Context(), func(*team.Team) { b.engine.Loop.SnapshotNow() }); err != nil {
			t.Fatal(err)
		}
		b.command("coder", "pause")
		b.command("coder", "run_once")
		b.settle()
		b.is("coder", "run_once", "run_once")
		if !strings.Contains(b.logged.String(), "snapshot was not kept") {
			t.Error("the refusal was not logged")
		}
	})
}

type unsaving struct{ journal.Journal }

func (unsaving) SaveSnapshot(context.Context, journal.Snapshot) error {
	return &journal.Refused{What: "snapshot", Why: "too large"}
}
