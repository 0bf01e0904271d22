package runs

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// The daemon of `fairlead run` ends with its last run, at times before the person's command has looked at the result.
func TestShowAfterItsDaemon(t *testing.T) {
	a, conn, said := connected(t)
	client, err := a.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	flags := gated(t, a.Dir)
	if _, err := conn.Runs.Start(t.Context(), flags); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Runs.Cancel(t.Context(), "one", "", ""); err != nil {
		t.Fatal(err)
	}
	if err := conn.leave(t.Context(), a, true); err != nil {
		t.Fatal(err)
	}
	run, err := showAfter(t.Context(), a, client, "one")
	if err != nil || run.Status != "cancelled" {
		t.Errorf("the run is %q, %v; said %s", run.Status, err, said)
	}
	if _, err := client.Runs.Show(t.Context(), "one"); err == nil {
		t.Error("the daemon still answers, so this tests nothing")
	}
}

// A command that ends while another one follows a run in its daemon leaves the run to that command.
func TestAbandonedDaemon(t *testing.T) {
	a, conn, _ := connected(t)
	flags := gated(t, a.Dir)
	ended := make(chan error, 1)
	var heard bytes.Buffer
	go func() {
		follower := &cli.App{Dir: a.Dir, Out: &heard, Err: &heard}
		ended <- BeginAndFollow(t.Context(), follower, &RunOptions{},
			func(ctx context.Context, h *Connection) (view.RunView, error) { return h.Runs.Start(ctx, flags) })
	}()
	wait.Until(t, "the run", func() bool { _, err := conn.Runs.Show(t.Context(), "one"); return err == nil })
	if err := conn.leave(t.Context(), a, false); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "another daemon, which cancels the run", func() bool {
		if len(ended) > 0 {
			t.Fatalf("the command that followed the run ended before with %v; it said %s", <-ended, &heard)
		}
		client, err := a.Dial()
		if err != nil {
			return false
		}
		defer client.Close()
		_, err = client.Runs.Cancel(t.Context(), "one", "", "")
		return err == nil
	})
	if err := wait.For(t, "the end of the command that followed the run", ended); cli.CodeOf(err) != cli.ExitCancelled {
		t.Errorf("the command that followed the run ended with %v; it said %s", err, &heard)
	}
}

// The daemon ended before it answered. A run with a name is asked for again, and one without is not, since it may have been begun.
func TestBeginUnanswered(t *testing.T) {
	a, daemon, _ := connected(t)
	defer func() {
		if err := daemon.leave(t.Context(), a, false); err != nil {
			t.Error(err)
		}
	}()
	flags := gated(t, a.Dir)
	begin := func(named bool) (h *Connection, tries int, err error) {
		h, _, _, err = beginRun(t.Context(), a, named, func(ctx context.Context, h *Connection) (view.RunView, error) {
			if tries++; tries == 1 {
				return view.RunView{}, &apiclient.NoAnswer{Dir: a.Dir, Why: io.EOF}
			}
			return h.Runs.Start(ctx, flags)
		})
		return h, tries, err
	}
	if _, tries, err := begin(false); cli.CodeOf(err) != cli.ExitNoDaemon || tries != 1 {
		t.Errorf("without a name: %v after %d tries", err, tries)
	}
	h, tries, err := begin(true)
	if err != nil || tries != 2 {
		t.Fatalf("with a name: %v after %d tries", err, tries)
	}
	if err := h.leave(t.Context(), a, false); err != nil {
		t.Error(err)
	}
	if _, _, err := begin(true); cli.CodeOf(err) != cli.ExitRefused ||
		!strings.Contains(err.Error(), "may have been begun by this command") {
		t.Errorf("a run that is there already: %v", err)
	}
	if _, err := daemon.Runs.Cancel(t.Context(), "one", "", ""); err != nil {
		t.Error(err)
	}
}

// connected is a command in a new repository, whose process is the daemon. said is what it prints.
func connected(t *testing.T) (a *cli.App, conn *Connection, said *bytes.Buffer) {
	t.Helper()
	said = &bytes.Buffer{}
	a = &cli.App{Dir: t.TempDir(), Out: said, Err: said}
	conn, err := connect(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return a, conn, said
}

// gated writes a workflow whose only step waits for a gate, and returns how it is started.
func gated(t *testing.T, dir string) view.RunFlags {
	flow, gates := filepath.Join(dir, "one.yaml"), filepath.Join(dir, "gates.json")
	for path, text := range map[string]string{
		flow:  "name: one\nsteps:\n  - {id: only, gates: [open], command: [\"true\"]}\n",
		gates: `{"open": false}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return view.RunFlags{RunID: "one", Workflow: flow, GateStateFile: gates}
}
