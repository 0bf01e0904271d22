package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/examples"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// deck is a repository in which runs are played without a daemon.
type deck struct {
	t   *testing.T
	dir string
}

// stepDone is a command of a step that reports that it is done.
const stepDone = `printf '{"schema":"run_report@v0","run_id":"%s","step_id":"%s","agent":"me","status":"COMPLETED","started_at":"2026-11-21T10:00:00.000000Z","ended_at":"2026-11-21T10:00:01.000000Z"}' "$RUN_ID" "$STEP_ID" > "$REPORT_PATH"
`

func newDeck(t *testing.T, files map[string]string) *deck {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &deck{t: t, dir: dir}
	d.write("done.sh", stepDone)
	for name, text := range files {
		d.write(name, text)
	}
	t.Cleanup(func() {
		if strays, err := shim.Strays(dir); err != nil || len(strays) > 0 {
			t.Errorf("processes were left behind: %+v, %v", strays, err)
		}
	})
	return d
}

func (d *deck) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// fairlead runs a verb to its end, and gives what it said and its exit code.
func (d *deck) fairlead(words ...string) (string, int) {
	d.t.Helper()
	cmd := command(append([]string{words[0], "--dir", d.dir}, words[1:]...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatalf("%q: %v", words, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// begin starts a verb, and leaves it running.
func (d *deck) begin(words ...string) (*exec.Cmd, *bytes.Buffer) {
	d.t.Helper()
	cmd := command(append([]string{words[0], "--dir", d.dir}, words[1:]...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	return cmd, &said
}

// until waits until a file is there.
func (d *deck) until(name string) {
	d.t.Helper()
	wait.Until(d.t, "the file "+name, func() bool { return cli.Exists(filepath.Join(d.dir, name)) })
}

// slow has a first step that works until it is let go, and a second one.
const slow = `name: slow
steps:
  - {id: one, command: [sh, -c, 'echo at it; echo x >> began; until [ -e go ]; do sleep 0.01; done; sh done.sh']}
  - {id: two, needs: [one], command: [sh, done.sh]}
`

// Ctrl-C pauses a run and lets what is at work finish: then nothing runs, and resume goes on
// with the rest. What was done is not done again.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	d := newDeck(t, map[string]string{"slow.yaml": slow})
	cmd, said := d.begin("run", "--workflow", filepath.Join(d.dir, "slow.yaml"), "--run-id", "r1")
	d.until("began")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	late := time.After(rigWait)
	for paused := false; !paused; {
		text, _ := d.fairlead("run", "show", "r1", "--json")
		paused = strings.Contains(text, `"stage":"paused"`)
		select {
		case <-late:
			t.Fatal("it is not paused")
		default:
		}
	}
	d.write("go", "")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitCancelled || !strings.Contains(said.String(), "fairlead run resume r1") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if out, code := d.fairlead("run", "show", "r1"); !strings.Contains(out, "two   PENDING") {
		t.Errorf("the second step began: exit code %d\n%s", code, out)
	}
	if out, code := d.fairlead("run", "resume", "r1"); code != cli.ExitDone || strings.Contains(out, "one  began") ||
		!strings.Contains(out, "two  completed") {
		t.Errorf("resume: exit code %d\n%s", code, out)
	}
}

// A second Ctrl-C cancels the run, and ends what is at work with all that it started.
func TestInterruptedTwice(t *testing.T) {
	t.Parallel()
	d := newDeck(t, map[string]string{"slow.yaml": slow})
	cmd, said := d.begin("run", "--workflow", filepath.Join(d.dir, "slow.yaml"), "--run-id", "r1")
	d.until("began")
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		// The same signal twice at once is one signal to the kernel.
		late := time.After(rigWait)
		for told := false; !told; {
			text, _ := d.fairlead("run", "show", "r1", "--json")
			told = strings.Contains(text, `"stage":"paused"`) || strings.Contains(text, `"stage":"cancelled"`) ||
				strings.Contains(text, "FAILED")
			select {
			case <-late:
				t.Fatal("it is neither paused nor cancelled")
			default:
			}
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitCancelled || !strings.Contains(said.String(), "was cancelled") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}

// Killed with SIGKILL a run goes on where it was: the step that was at work still is, and is
// not begun a second time.
func TestKilledRun(t *testing.T) {
	t.Parallel()
	d := newDeck(t, map[string]string{"slow.yaml": slow})
	cmd, _ := d.begin("run", "--workflow", filepath.Join(d.dir, "slow.yaml"), "--run-id", "r1")
	d.until("began")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	d.write("go", "")
	out, code := d.fairlead("run", "resume", "r1")
	if code != cli.ExitDone || !strings.Contains(out, "run r1 has completed") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if text, err := os.ReadFile(filepath.Join(d.dir, "began")); err != nil || string(text) != "x\n" {
		t.Errorf("the first step was begun other than once: %q, %v", text, err)
	}
}

// Two runs at once without a daemon: one verb is the other's daemon, and when its own run is
// over, and what the other's has at work too, the other goes on as its own.
func TestRunBecomesTheDaemon(t *testing.T) {
	t.Parallel()
	d := newDeck(t, map[string]string{"a.yaml": slow, "b.yaml": strings.NewReplacer("began", "began-b", "-e go", "-e go-b").Replace(slow)})
	first, firstSaid := d.begin("run", "--workflow", filepath.Join(d.dir, "a.yaml"), "--run-id", "a")
	d.until("began")
	second, secondSaid := d.begin("run", "--workflow", filepath.Join(d.dir, "b.yaml"), "--run-id", "b")
	d.until("began-b")
	d.write("go", "")
	late := time.After(rigWait)
	for stopping := false; !stopping; { // the first is over, and waits for what the second has at work
		text, _ := d.fairlead("ps", "--json")
		stopping = strings.Contains(text, `"stopping":true`)
		select {
		case <-late:
			t.Fatal("the first never stopped")
		default:
		}
	}
	d.write("go-b", "")
	if err := first.Wait(); err != nil || !strings.Contains(firstSaid.String(), "run a has completed") {
		t.Errorf("the first: %v\n%s", err, firstSaid)
	}
	if err := second.Wait(); err != nil || strings.Count(secondSaid.String(), "one  completed") != 1 ||
		!strings.Contains(secondSaid.String(), "run b has completed") {
		t.Errorf("the second: %v\n%s", err, secondSaid)
	}
}

// Of several programs that begin one run at the same time, without a daemon, one carries it out and the others are refused.
// None removes what the run has.
func TestRunsOfOneName(t *testing.T) {
	t.Parallel()
	d := newDeck(t, map[string]string{"slow.yaml": slow})
	const callers = 4
	ended := make(chan string, callers)
	for range callers {
		cmd, said := d.begin("run", "--workflow", filepath.Join(d.dir, "slow.yaml"), "--run-id", "r1")
		go func() {
			_ = cmd.Wait() // its exit code says it
			ended <- fmt.Sprint(cmd.ProcessState.ExitCode(), " ", said)
		}()
	}
	next := func() string {
		t.Helper()
		select {
		case how := <-ended:
			return how
		case <-time.After(rigWait):
			t.Fatal("a caller does not end")
			return ""
		}
	}
	d.until("began")
	for range callers - 1 {
		if how := next(); !strings.HasPrefix(how, fmt.Sprint(cli.ExitRefused, " ")) || !strings.Contains(how, "r1") {
			t.Errorf("a caller that is too late ends with %s", how)
		}
	}
	d.write("go", "")
	if how := next(); !strings.HasPrefix(how, fmt.Sprint(cli.ExitDone, " ")) || !strings.Contains(how, "run r1 has completed") {
		t.Errorf("the first ends with %s", how)
	}
	if made, err := filepath.Glob(filepath.Join(d.dir, ".agents/runs/r1/*/*")); err != nil || len(made) == 0 {
		t.Errorf("the run has no files left: %v", err)
	}
}

// With a daemon the verb only looks on: Ctrl-C stops that, and the run goes on.
func TestLeftRun(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{"fairlead.yaml": "version: 1\nagents: {}\n", "slow.yaml": slow, "done.sh": stepDone})
	d := &deck{t: t, dir: s.dir}
	cmd, said := d.begin("run", "--workflow", filepath.Join(d.dir, "slow.yaml"), "--run-id", "r1")
	d.until("began")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitCancelled || !strings.Contains(said.String(), "continues in the daemon") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	d.write("go", "")
	// refused: it had completed by then
	if out, code := d.fairlead("run", "resume", "r1"); code != cli.ExitDone && code != cli.ExitRefused {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if out, _ := d.fairlead("run", "show", "r1"); !strings.Contains(out, "r1  slow  completed") {
		t.Error(out)
	}
}

// On a terminal the steps are drawn in place, with the tail of what the one at work says, and
// the last picture stays.
func TestRunOnATerminal(t *testing.T) {
	t.Parallel()
	d := newDeck(t, map[string]string{"slow.yaml": slow})
	cmd := command("run", "--dir", d.dir, "--workflow", filepath.Join(d.dir, "slow.yaml"), "--run-id", "r1")
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	patience := time.AfterFunc(rigWait, func() { _ = cmd.Process.Kill() })
	defer patience.Stop()
	d.until("began")
	var seen bytes.Buffer
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), "at it") {
		n, err := screen.Read(buf)
		if err != nil {
			t.Fatalf("%v; seen: %q", err, &seen)
		}
		seen.Write(buf[:n])
	}
	d.write("go", "")
	rest, _ := io.ReadAll(screen) // a terminal whose program is gone ends with an error
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(seen.String(), "> one") || !strings.Contains(string(rest), "+ two") ||
		!strings.Contains(string(rest), "run r1 has completed") {
		t.Errorf("seen:\n%s\n%s", &seen, rest)
	}
}

// SPEC, Workflow: the examples are what they say they are.
func TestExampleWorkflows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, examples.Files); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "workflows")
	d := &deck{t: t, dir: dir}
	for name, want := range map[string][]string{
		"fan-out.yaml": {"praise   completed", "blame    skipped"},
		"items.yaml":   {"greet   item 2 done", "polish  round 2 done"},
		"review.yaml":  {"review   sends the run back to code", "code     began (iteration 2)", "publish  completed"},
	} {
		if out, code := d.fairlead("run", "--check", "--workflow", filepath.Join(dir, name)); code != cli.ExitDone {
			t.Errorf("%s: exit code %d: %s", name, code, out)
		}
		out, code := d.fairlead("run", "--unattended", "--workflow", filepath.Join(dir, name))
		if code != cli.ExitDone {
			t.Errorf("%s: exit code %d: %s", name, code, out)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s does not say %q:\n%s", name, w, out)
			}
		}
	}
	for name, want := range map[string]string{
		"total.txt": "1000\n", "published.txt": "Hello, world!\n",
		"cards/2.txt": "Hello, Barbara.\nYours, the workflow.\n",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if strays, err := shim.Strays(dir); err != nil || len(strays) > 0 {
		t.Errorf("processes were left behind: %+v, %v", strays, err)
	}
}
