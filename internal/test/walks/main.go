// Command walks counts the files and functions that one event passes in the daemon.
//
//	go run ./internal/test/walks             the counts, as in doc/architecture.md
//	go run ./internal/test/walks -list       with the functions, by file
//	go run ./internal/test/walks -rounds 9  each walk nine times
//
// It builds Fairlead with coverage counters, starts a daemon in a folder of its own, and takes each walk several times.
// The counters are cleared before the cause, and written when the result is in the feed. A function counts if it was
// executed in every round: work that goes on beside a walk, such as a timer, is in some rounds only. The daemon has one
// processor, because otherwise the counts depend on how far it has gone when the counters are written. Functions of the
// shim, the agent and the command line do not count, because these are other processes.
//
// The one promise: each function that is counted was executed by the daemon between the cause and the result.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/read/view"
)

const (
	module   = "github.com/fairlead-dev/fairlead/"
	patience = 20 * time.Second // for one round on a loaded machine
)

func main() {
	list := flag.Bool("list", false, "print the functions, by file")
	rounds := flag.Int("rounds", 40, "take each walk `this many` times")
	flag.Parse()
	if err := run(context.Background(), *rounds, *list, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "walks:", err)
		os.Exit(1)
	}
}

const configuration = `version: 1
agents:
  coder: {description: Starts and stops, driver: script, script: coder.yaml}
  filed: {description: Is asked by its file, driver: script, script: coder.yaml, workspace: filed}
  left: {description: Talks, driver: script, script: talker.yaml}
  right: {description: Talks, driver: script, script: talker.yaml}
channels:
  talk: {agents: [left, right], maxRounds: 0}
`

// The agents wait for a file and remove it, so that each file lets one of them go on. FOLDER is the folder of the walks.
const (
	coderScript = `steps:
  - run: until rm "FOLDER/end" 2>/dev/null; do sleep 0.02; done
`
	talkerScript = `steps: [{say: "I only talk in the channel."}]
turn:
  - expect_prompt
  - run: until rm "FOLDER/speak" 2>/dev/null; do sleep 0.02; done
  - say: "I have spoken. TURN_COMPLETE"
  - again
`
)

// walk is one way through the daemon. Only what happens between cause and result is counted.
type walk struct {
	name     string
	prepare  func(context.Context, *world) error // before the first round
	cause    func(context.Context, *world) error
	isResult func(api.Change) bool
	undo     func(context.Context, *world) error // after each round
}

var walks = []walk{
	{
		name: "an agent_state.json changes -> it is in the feed",
		prepare: func(ctx context.Context, w *world) error { // a held agent does not start, which is another walk
			_, err := w.client.Hold(ctx, "")
			return err
		},
		cause:    func(_ context.Context, w *world) error { return w.desire("continuous") },
		isResult: fileRead("wanted_held"),
		undo: func(ctx context.Context, w *world) error {
			if err := w.filesWritten(ctx); err != nil { // else the daemon and this program replace the file at once
				return err
			}
			if err := w.desire("pause"); err != nil {
				return err
			}
			if err := w.until(ctx, fileRead("wanted_pause")); err != nil {
				return err
			}
			return w.filesWritten(ctx)
		},
	},
	{
		name: "fairlead start -> the agent's process runs",
		prepare: func(ctx context.Context, w *world) error {
			_, err := w.client.Unhold(ctx, "")
			return err
		},
		cause: func(ctx context.Context, w *world) error {
			_, err := w.client.Command(ctx, api.Start, "coder", "")
			return err
		},
		isResult: becomes("session/coder", "running"),
		undo: func(ctx context.Context, w *world) error {
			if _, err := w.client.Command(ctx, api.Stop, "coder", ""); err != nil {
				return err
			}
			if err := w.touch("end"); err != nil {
				return err
			}
			if err := w.until(ctx, becomes("control/coder", "resting")); err != nil {
				return err
			}
			return w.filesWritten(ctx)
		},
	},
	{
		name: "an agent ends its turn -> the next agent has the turn",
		prepare: func(ctx context.Context, w *world) error { // both agents are at work after a turn of each
			if _, err := w.client.Channels.Say(ctx, "talk", "Begin.", ""); err != nil {
				return err
			}
			for range 2 {
				if err := w.until(ctx, turnGiven); err != nil {
					return err
				}
				if err := w.touch("speak"); err != nil {
					return err
				}
			}
			return w.until(ctx, turnGiven)
		},
		cause:    func(_ context.Context, w *world) error { return w.touch("speak") },
		isResult: turnGiven,
	},
}

// becomes recognises a change of one entity into a state that it was not in.
func becomes(entity, state string) func(api.Change) bool {
	return func(ch api.Change) bool { return ch.Entity == entity && ch.From != state && ch.To == state }
}

// fileRead recognises a desired state that came from the file.
func fileRead(trigger string) func(api.Change) bool {
	return func(ch api.Change) bool { return ch.Entity == "control/filed" && ch.Trigger == trigger }
}

// turnGiven recognises that the next agent was given its turn.
func turnGiven(ch api.Change) bool { return ch.Entity == "channel/talk" && ch.Trigger == "tell_turn" }

// world is a daemon with counters, and a client of it.
type world struct {
	dir    string
	socket string // of the counters
	client *client.Client
	feed   chan api.Change
}

func (w *world) touch(name string) error {
	return os.WriteFile(filepath.Join(w.dir, name), nil, 0o600)
}

// desire replaces agent_state.json, as a person's editor does.
func (w *world) desire(state string) error {
	text := fmt.Sprintf(`{"desired_state": %q, "current_state": "pause", "timestamp": %q, "setBy": "human", "note": ""}`, state,
		time.Now().UTC().Format(time.RFC3339Nano))
	path := filepath.Join(w.dir, "filed", "agent_state.json")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// until reads the feed until a change comes.
func (w *world) until(ctx context.Context, is func(api.Change) bool) error {
	for {
		select {
		case ch, open := <-w.feed:
			if !open {
				return errors.New("the feed ended")
			}
			if is(ch) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// filesWritten waits until no file is behind the journal.
func (w *world) filesWritten(ctx context.Context) error {
	for ctx.Err() == nil {
		agents, err := w.client.Agents(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(agents.Agents, func(a view.AgentView) bool { return a.FileBehind }) {
			return nil
		}
	}
	return ctx.Err()
}

// count has the daemon clear its counters, or write them into a folder.
func (w *world) count(ctx context.Context, line string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return err
	}
	said, err := io.ReadAll(conn)
	if err == nil && strings.TrimSpace(string(said)) != "ok" {
		err = fmt.Errorf("the counters of the daemon: %s", said)
	}
	return err
}

// round takes a walk once and returns the functions that were executed.
func (w *world) round(ctx context.Context, walk walk, dir string) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := w.count(ctx, "clear"); err != nil {
		return nil, err
	}
	if err := walk.cause(ctx, w); err != nil {
		return nil, err
	}
	if err := w.until(ctx, walk.isResult); err != nil {
		return nil, fmt.Errorf("wait for the result: %w", err)
	}
	if err := w.count(ctx, dir); err != nil {
		return nil, err
	}
	if walk.undo != nil {
		if err := walk.undo(ctx, w); err != nil {
			return nil, fmt.Errorf("undo: %w", err)
		}
	}
	return executed(ctx, dir)
}

// executed reads counters. A function is named by its file, its line and its name.
func executed(ctx context.Context, dir string) (map[string]bool, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "func", "-i", dir).Output()
	if err != nil {
		return nil, fmt.Errorf("read the counters: %w", err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] == "0.0%" || !strings.HasPrefix(fields[0], module) ||
			strings.HasPrefix(fields[0], module+"internal/test/") {
			continue
		}
		found[strings.TrimPrefix(fields[0], module)+" "+fields[1]] = true
	}
	return found, nil
}

func run(ctx context.Context, rounds int, list bool, out io.Writer) error {
	dir, err := os.MkdirTemp("", "fairlead-walks-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "fairlead")
	if err := build(ctx, program); err != nil {
		return err
	}
	w := &world{dir: filepath.Join(dir, "team"), socket: filepath.Join(dir, "socket"), feed: make(chan api.Change, 10_000)}
	stop, err := w.start(ctx, program)
	if err != nil {
		return err
	}
	defer stop()
	for i, walk := range walks {
		if err := walk.prepare(ctx, w); err != nil {
			return fmt.Errorf("%s: prepare: %w", walk.name, err)
		}
		var always map[string]bool
		for n := range rounds + 1 { // the first round is not counted: what is made once is not part of each walk
			found, err := w.round(ctx, walk, filepath.Join(dir, fmt.Sprintf("%d-%d", i, n)))
			if err != nil {
				return fmt.Errorf("%s: %w", walk.name, err)
			}
			switch n {
			case 0:
			case 1:
				always = found
			default:
				maps.DeleteFunc(always, func(f string, _ bool) bool { return !found[f] })
			}
		}
		show(out, walk.name, slices.Sorted(maps.Keys(always)), list)
	}
	return nil
}

func show(out io.Writer, name string, functions []string, list bool) {
	files := map[string]bool{}
	for _, f := range functions {
		file, _, _ := strings.Cut(f, ":")
		files[file] = true
	}
	fmt.Fprintf(out, "%-60s %3d files, %3d functions\n", name, len(files), len(functions))
	if list {
		for _, f := range functions {
			fmt.Fprintln(out, "   ", f)
		}
	}
}

// build builds a daemon with counters.
func build(ctx context.Context, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"...", "-o", program,
		module+"internal/test/walks/daemon")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build a daemon with counters; run this in the repository: %w: %s", err, said)
	}
	return nil
}

// start writes a workspace, starts its daemon, and follows its feed.
func (w *world) start(ctx context.Context, program string) (stop func(), err error) {
	if err := os.MkdirAll(filepath.Join(w.dir, "filed"), 0o700); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"fairlead.yaml": configuration, "coder.yaml": coderScript, "talker.yaml": talkerScript} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(strings.ReplaceAll(text, "FOLDER", w.dir)), 0o600); err != nil {
			return nil, err
		}
	}
	scratch := filepath.Join(filepath.Dir(w.dir), "scratch") // of the processes that end
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, w.socket)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+scratch, "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop = func() {
		for range 2 { // the second signal ends the sessions
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
		_ = cmd.Wait()
		cancel()
	}
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		stop()
		return nil, fmt.Errorf("the daemon did not start: %w", err)
	}
	if w.client, err = client.Dial(w.dir); err != nil {
		stop()
		return nil, err
	}
	go func() {
		defer close(w.feed)
		for ch, err := range w.client.Events(ctx, client.EventsQuery{}) {
			if err != nil {
				return
			}
			w.feed <- ch
		}
	}()
	return stop, nil
}
