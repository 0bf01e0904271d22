package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/engine/journal/sqlite"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/files/crewdocs"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/acp"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
	"github.com/fairlead-dev/fairlead/process/driver/codex"
	driverexec "github.com/fairlead-dev/fairlead/process/driver/exec"
	"github.com/fairlead-dev/fairlead/process/driver/script"
)

// world is a repository with a running supervisor on real processes, files and a database.
type world struct {
	t         *testing.T
	dir       string
	engine    *App
	stop      func()                                    // stops the supervisor; agents continue
	files     func(outside.Files) outside.Files         // wraps the real files, if a test needs it
	documents func(outside.Documents) outside.Documents // the same for the crew's documents
	opened    func()                                    // is called in the loop when a session is opened, before anything prepares it
	host      func(sessionhost.Host) sessionhost.Host   // wraps the host of sessions
}

const waitMax = 2 * time.Minute // far more than any test needs

var human = change.Actor{Kind: "human", ID: "tester"}

func newWorld(t *testing.T, yaml string, files map[string]string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.write("fairlead.yaml", yaml)
	for name, text := range files {
		w.write(name, text)
	}
	w.start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitMax)
		defer cancel()
		if w.stop != nil {
			_ = w.engine.Agents.Stop(ctx, human, true)
			select {
			case <-w.engine.Loop.Stopped():
			case <-ctx.Done():
				t.Error("the engine did not stop")
			}
			w.stop()
		}
	})
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) start() {
	t := w.t
	t.Helper()
	conf, err := config.Load(w.dir, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	state := filepath.Join(w.dir, ".fairlead")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(testWriter{t}, nil))
	j, err := sqlite.Open(ctx, filepath.Join(state, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	files := agentstate.Watch(log)
	documents := crewdocs.Watch(filepath.Join(state, "agents"), log)
	folders, err := dispatchctl.WatchSessions(w.dir, log)
	if err != nil {
		t.Fatal(err)
	}
	var papers outside.Documents = documents
	if w.documents != nil {
		papers = w.documents(documents)
	}
	var between outside.Files = files
	if w.files != nil {
		between = w.files(files)
	}
	host := inView(&sessions.Shims{Folder: filepath.Join(state, "sessions"), Workspace: w.dir})
	if w.host != nil {
		host = w.host(host)
	}
	e, err := Open(ctx, outside.Options{
		Offer: tokenIn,
		Name:  "test", Config: conf, Journal: openingJournal{j, w}, Files: between, Log: log, Lookup: os.LookupEnv, BootID: workspace.BootID(),
		Host: host,
		Drivers: map[string]driver.Driver{
			"exec": driverexec.Driver{}, "script": script.Driver{}, "acp": acp.Driver{},
			"claude": claude.Driver{}, "codex": codex.Driver{},
		}, Documents: papers, Sessions: folders,
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	w.engine = e
	w.stop = func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("the engine failed: %v", err)
		}
		_ = files.Close()
		_ = documents.Close()
		_ = folders.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		w.stop = nil
	}
}

// openingJournal tells a test that a session is opened.
type openingJournal struct {
	journal.Journal
	w *world
}

func (j openingJournal) Append(ctx context.Context, batch []journal.Change, expect ...journal.Expect) (uint64, error) {
	if j.w.opened != nil && slices.ContainsFunc(batch, func(ch journal.Change) bool {
		return ch.Machine == "session" && ch.To == string(session.Open) && ch.From != ch.To
	}) {
		j.w.opened()
	}
	return j.Journal.Append(ctx, batch, expect...)
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// until waits for a condition on an agent, or fails with its last view.
func (w *world) until(agent, what string, ok func(view.AgentView) bool) view.AgentView {
	w.t.Helper()
	return wait.Value(w.t, what, func() (view.AgentView, error) { return w.engine.Status.Agent(context.Background(), agent) }, ok)
}

func (w *world) command(agent, desired string) {
	w.t.Helper()
	if _, err := w.engine.Agents.Command(context.Background(), human, agent, desired, ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) file(agent string) agentstate.State {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, agent, agentstate.FileName))
	if err != nil {
		w.t.Fatal(err)
	}
	state, err := agentstate.Parse(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

func (w *world) history(entity string) []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	var lines []string
	for ch, err := range w.engine.Loop.Journal().Read(ctx, journal.Query{Entity: entity}) {
		if err != nil {
			w.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s -> %s %s", ch.Row, ch.From, ch.To, ch.Trigger))
	}
	return lines
}

// took fails if a row never occurred.
func (w *world) took(entity string, rows ...string) {
	w.t.Helper()
	history := w.history(entity)
	for _, row := range rows {
		if !slices.ContainsFunc(history, func(line string) bool { return strings.HasPrefix(line, row+" ") }) {
			w.t.Errorf("row %s does not occur for %s:\n%s", row, entity, strings.Join(history, "\n"))
		}
	}
}
