package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// `fairlead compact` is killed again and again beside a daemon, each time a little further. After each kill every line of
// every session is there, as the agent's own ledger has it, and the attempt that is not killed ends.
func TestCompactIsKilled(t *testing.T) {
	t.Parallel()
	longRun(t)
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [sh, say.sh], workspace: .}\n",
		"say.sh":        "seq 1 150000 | sed \"s/^/$$ says line /\" | tee ledger.$$\n",
	})
	const sessions = 4
	for range sessions {
		s.must("once", "ada", "--wait")
	}
	folders := filepath.Join(s.dir, ".fairlead", "sessions")
	checked := func(when string) {
		for n := range sessions {
			id := "ada-" + strconv.Itoa(n+1)
			got := s.output(id)
			who, _, _ := strings.Cut(string(got), " ")
			want, err := os.ReadFile(filepath.Join(s.dir, "ledger."+who))
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: %s has %d bytes of %d: %v", when, id, len(got), len(want), err)
			}
			if size, err := shim.OutputBytes(filepath.Join(folders, id)); err != nil || size != int64(len(want)) {
				t.Fatalf("%s: %s is said to have %d bytes of %d: %v", when, id, size, len(want), err)
			}
		}
		if page, err := s.client().Journal(context.Background(), apiclient.JournalQuery{}); err != nil || len(page.Changes) == 0 ||
			page.Changes[0].Seq != 1 {
			t.Fatalf("%s: the journal: %v", when, err)
		}
	}
	checked("before")
	kills := 0
	for at := 1; ; at++ {
		cmd := command("compact", "--older-than", "1ms", "--dir", s.dir)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		over := false
		wait.Until(t, "a step of compact", func() bool {
			select {
			case <-ended:
				over = true
			default:
			}
			made, _ := filepath.Glob(filepath.Join(folders, "*", "spool.*.gz")) // the pattern is well formed
			return over || len(made) >= at
		})
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		if cmd.ProcessState.Exited() {
			if cmd.ProcessState.ExitCode() != 0 {
				t.Fatalf("compact failed: %s", said.String())
			}
			break
		}
		kills++
		checked("after kill " + strconv.Itoa(kills))
	}
	checked("at the end")
	rest, _ := filepath.Glob(filepath.Join(folders, "*", "spool"))
	temp, _ := filepath.Glob(filepath.Join(folders, "*", "*.new"))
	if kills == 0 || len(rest)+len(temp) > 0 {
		t.Errorf("after %d kills there are %v %v", kills, rest, temp)
	}
	s.must("events", "--json")
}

// output is all output of a session, as the API gives it.
func (s *rig) output(session string) (all []byte) {
	s.t.Helper()
	client := s.client()
	defer client.Close()
	for {
		part, err := client.RawOutput(context.Background(), session, int64(len(all)), 0)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(part.Bytes) == 0 {
			return all
		}
		all = append(all, part.Bytes...)
	}
}
