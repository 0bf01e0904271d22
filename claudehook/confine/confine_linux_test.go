package confine

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/sandbox"
)

// started is a command of MAIN in a process of its own, with a temporary folder of the test.
func started(t *testing.T, c Command, three *os.File) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	c.Not, c.Programs = "/not", append(c.Programs, "cat", "ls", "sleep", "bash", "sh")
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{Verb}, c.Args()...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if three != nil {
		cmd.ExtraFiles = []*os.File{three}
	}
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	return cmd, &said
}

func TestArgs(t *testing.T) {
	for _, c := range []Command{
		{Programs: []string{"ls", "git"}, Not: "/repo", Text: "ls -- x"},
		{Programs: []string{"ls"}, Network: true, Stays: true, Not: "/", Text: "--"},
	} {
		got, err := parse(c.Args())
		if err != nil || !slices.Equal(got.Args(), c.Args()) || got.Text != c.Text {
			t.Errorf("%+v is read as %+v, %v", c, got, err)
		}
	}
	for _, args := range [][]string{{}, {"ls"}, {"--", "ls", "x"}, {"--programs"}, {"--not", "--"}, {"--program", "ls", "--", "ls"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q is understood", args)
		}
	}
}

// The folder in which a command ends is handed back through a pipe, also if the command leaves a process behind; the
// command itself has no such descriptor. Nothing else than a pipe is passed on.
func TestFolderIsHandedBack(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd, said := started(t, Command{Text: "cd /usr; sleep 1000 >/dev/null 2>&1 & ls /proc/$!/fd /proc/self/fd"}, w)
	err = cmd.Run()
	w.Close()
	var back bytes.Buffer
	if _, err2 := back.ReadFrom(r); err != nil || err2 != nil || back.String() != "/usr\n" {
		t.Errorf("%v, %v: handed back %q; it said %s", err, err2, &back, said)
	}
	if list := strings.Fields(said.String()); slices.Contains(list[:max(0, slices.Index(list, "/proc/self/fd:"))], "3") {
		t.Errorf("the process that is left behind has descriptor 3: %s", said)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, said = started(t, Command{Text: "cd /usr"}, file)
	if err := cmd.Run(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	if info, err := file.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("a file was written to: %v, %v", info, err)
	}
}

// A command may write to a temporary folder of its own. The folder is removed when the command has ended, and not before.
func TestTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd, said := started(t, Command{Text: "echo kept > \"$TMPDIR/x\"; cat \"$TMPDIR/x\"; echo other > \"$TMPDIR/../y\""}, nil)
	if err := cmd.Run(); err == nil || !strings.HasPrefix(said.String(), "kept\n") {
		t.Fatalf("%v: %s", err, said)
	}
	parent, err := tempParent()
	if err != nil {
		t.Fatal(err)
	}
	mine, err := makeTemp() // of a process that runs
	if err != nil {
		t.Fatal(err)
	}
	Sweep()
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != 1 || left[0].Name() != filepath.Base(mine) {
		t.Errorf("left are %v, %v; should be %s", left, err, mine)
	}
	if err := os.Chmod(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd, said = started(t, Command{Text: "echo ran"}, nil)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != sandbox.CannotSandbox || !strings.Contains(said.String(), "nothing was run") {
		t.Errorf("with a folder that others may write: %v, %s", err, said)
	}
}

// The shell explains a failure, and becomes the last program of a command that stays.
func TestShell(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd, said := started(t, Command{Text: "touch x"}, nil)
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "delegate to an agent") {
		t.Errorf("%v: %s", err, said)
	}
	cmd, said = started(t, Command{Text: "cat /proc/self/stat", Stays: true}, nil)
	if err := cmd.Run(); err != nil || !strings.HasPrefix(said.String(), strconv.Itoa(cmd.Process.Pid)+" (cat)") {
		t.Errorf("%v: %s; it was started as process %d", err, said, cmd.Process.Pid)
	}
}
