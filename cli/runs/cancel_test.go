package runs

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// `fairlead run` is the daemon of its run and ends with it: `fairlead run cancel` from another terminal succeeds whenever that
// happens. A run that is over is refused as by a daemon that stays.
func TestCancelUnderRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		flow  func(t *testing.T, dir string) view.RunFlags
		until func(run view.RunView) bool // when the daemon ends; nil: before the command asks
		code  int
		step  string // empty: the run
	}{
		{
			"it ends while the steps are ended", deaf, func(run view.RunView) bool { return run.Stage == string(workflow.Stopped) },
			cli.ExitDone, "",
		},
		{
			"it ends while the step is ended", deaf, func(run view.RunView) bool { return run.Steps[0].Status != string(workflow.Running) },
			cli.ExitDone, "only",
		},
		{"it ends before it is asked", gated, nil, cli.ExitDone, ""},
		{"it ends with its run", empty, nil, cli.ExitRefused, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, conn, said := connected(t)
			if _, err := conn.Runs.Start(t.Context(), c.flow(t, a.Dir)); err != nil {
				t.Fatal(err)
			}
			show := func(is func(view.RunView) bool) {
				t.Helper()
				wait.Until(t, "the run", func() bool { run, err := conn.Runs.Show(t.Context(), "one"); return err == nil && is(run) })
			}
			if c.code == cli.ExitRefused {
				show(func(run view.RunView) bool { return run.Status == string(workflow.IsCompleted) })
			}
			asks := func(ctx context.Context) (*Connection, error) { return connect(ctx, a) }
			if c.until == nil {
				early, err := connect(t.Context(), a) // it has found the daemon, and asks too late
				if err != nil {
					t.Fatal(err)
				}
				if err := conn.leave(t.Context(), a, false); err != nil {
					t.Fatal(err)
				}
				asks = func(ctx context.Context) (h *Connection, err error) {
					if h, early = early, nil; h != nil {
						return h, nil
					}
					return connect(ctx, a)
				}
			} else {
				show(func(run view.RunView) bool { return run.Steps[0].Status == string(workflow.Running) })
				wait.Until(t, "the process", func() bool { return cli.Exists(filepath.Join(a.Dir, "began")) })
			}
			ended := make(chan error, 1)
			go func() { _, err := cancelAt(t.Context(), a, asks, "one", c.step, ""); ended <- err }()
			if c.until != nil {
				show(c.until)
				if err := conn.leave(t.Context(), a, false); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(a.Dir, "go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := wait.For(t, "the end of the command", ended); cli.CodeOf(err) != c.code {
				t.Errorf("%v; said %s", err, said)
			}
		})
	}
}

// deaf is a workflow whose step does not end by SIGTERM, but when the file go is there.
func deaf(t *testing.T, dir string) view.RunFlags {
	return flowOf(t, dir, `name: one
steps: [{id: only, command: [sh, -c, 'trap "" TERM; touch began; until [ -e go ]; do sleep 0.02; done']}]
`)
}

// empty is a workflow that is over at once.
func empty(t *testing.T, dir string) view.RunFlags {
	return flowOf(t, dir, "name: one\nsteps: [{id: only, command: ['true']}]\n")
}

func flowOf(t *testing.T, dir, text string) view.RunFlags {
	t.Helper()
	flow := filepath.Join(dir, "one.yaml")
	if err := os.WriteFile(flow, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return view.RunFlags{RunID: "one", Workflow: flow}
}

// A command that waits for changes of a daemon learns that it has ended as soon as nothing works on the repository, and not when a
// restart would be over. Its twin is a daemon that goes on.
func TestCancelLearnsOfTheEnd(t *testing.T) {
	dir := t.TempDir()
	space, err := workspace.OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	stays, err := workspace.OpenWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer stays.Close()
	held, stop := whileHeld(t.Context(), dir)
	defer stop()
	twin, stop := whileHeld(t.Context(), stays.Dir)
	defer stop()
	if held.Err() != nil {
		t.Error("it ended while a process works there")
	}
	if err := space.Close(); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "the end", held.Done())
	if twin.Err() != nil {
		t.Error("that of another repository ended, too")
	}
}
