package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// viewed is a workspace with what a view of it needs.
type viewed struct {
	*scratch
	view View
}

func newViewed(t *testing.T) *viewed {
	t.Helper()
	a := Abilities()
	if a.By != ByNamespaces {
		t.Skipf("there is no view here: %v", a.Why)
	}
	s := newScratch(t)
	home, temp := filepath.Join(s.out, "home"), filepath.Join(s.out, "temp")
	for _, dir := range []string{home, temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return &viewed{
		s,
		a.Apply(View{Places: []Place{{Path: s.in, Access: Write}}, Home: home, HomeAt: "/home/somebody", Temp: temp, Dir: s.in}),
	}
}

// shell runs a shell command in the view.
func (v *viewed) shell(command string) (string, error) {
	v.t.Helper()
	argv, err := WrapView(os.Args[0], []string{"sh", "-c", command}, v.view)
	if err != nil {
		v.t.Fatal(err)
	}
	cmd := exec.CommandContext(v.t.Context(), argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.Env = v.view.Attr(), []string{"PATH=/usr/bin:/bin", "HOME=/home/somebody", "GORACE=atexit_sleep_ms=0"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestViewRights looks at the program from inside: an ordinary user without any right.
func TestViewRights(t *testing.T) {
	v := newViewed(t)
	out, err := v.shell("cat /proc/self/status; id -u; stat -c %u . ; echo home > ~/x; echo temp > /tmp/x; echo in > x; stat -c %u x; ls /sys 2>&1")
	if err == nil {
		t.Error("/sys is there")
	}
	for _, set := range []string{"Inh", "Prm", "Eff", "Bnd", "Amb"} {
		if !strings.Contains(out, "Cap"+set+":\t0000000000000000\n") {
			t.Errorf("it has rights of the set %s:\n%s", set, out)
		}
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	ids := lines[len(lines)-4 : len(lines)-1]
	if !strings.Contains(out, "NoNewPrivs:\t1\n") || ids[0] == "0" || ids[0] != ids[1] || ids[0] != ids[2] {
		t.Errorf("user, owner of the workspace and of a new file are %v:\n%s", ids, out)
	}
	mine, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mine)) { // process 1 ignores signals, the program does not
		if strings.HasPrefix(line, "SigIgn:") && !strings.Contains(out, line) {
			t.Errorf("it does not have %s:\n%s", line, out)
		}
	}
	for _, p := range []string{"in/x", "out/home/x", "out/temp/x"} {
		file := filepath.Join(filepath.Dir(v.in), p)
		var st unix.Stat_t
		if err := unix.Stat(file, &st); err != nil || int(st.Uid) != os.Geteuid() {
			t.Errorf("outside, %s belongs to %d (%v)", p, st.Uid, err)
		}
	}
}

// TestViewHasOnlyItsPlaces compares what is there with what was listed, and no name of a place is in the title of process 1.
func TestViewHasOnlyItsPlaces(t *testing.T) {
	v := newViewed(t)
	secret := filepath.Join(v.out, "secret")
	closed := filepath.Join(v.in, "closed")
	hidden := filepath.Join(v.in, "hidden", "below")
	for _, dir := range []string{secret, closed, hidden} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "file"), []byte("text\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	v.view.Places = append(v.view.Places, Place{Path: hidden, Access: Hide}, Place{Path: closed, Access: Read},
		Place{Path: filepath.Dir(hidden), Access: Write}, Place{Path: "/given/here", From: secret, Access: Read},
		Place{Path: filepath.Join(v.in, "missing"), Access: Read})
	for command, want := range map[string]string{
		"ls " + v.out:                                  "No such file",
		"cat closed/file":                              "text",
		"echo > closed/file":                           "Read-only file system",
		"mv closed other":                              "busy",
		"ls -A hidden/below":                           "",
		"echo > hidden/below/new":                      "Read-only file system",
		"mv hidden other":                              "busy",
		"cat /given/here/file":                         "text",
		"echo > /given/here/file":                      "Read-only file system",
		"echo > /given/new":                            "Read-only file system",
		"ls -d missing":                                "No such file",
		"tr -d '\\0' < /proc/1/cmdline | grep -c hidd": "1", // the command itself
		"kill -9 1; kill -15 1; echo lives":            "lives",
		"unshare -U true; true":                        "not permitted",
		"unshare -m true; true":                        "not permitted",
	} {
		out, _ := v.shell(command)
		if !strings.Contains(out, want) || want == "" && out != "" {
			t.Errorf("%s: %q, want %q", command, out, want)
		}
	}
}

// TestViewEnds compares exit codes, the reports, and the state of processes that are left.
func TestViewEnds(t *testing.T) {
	v := newViewed(t)
	for command, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137, "sleep 600 & exit 3": 3} {
		_, err := v.shell(command)
		exit := 0
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			exit = e.ExitCode()
		}
		if exit != want {
			t.Errorf("%s: %d (%v), want %d", command, exit, err, want)
		}
	}
	v.view.Report = 3
	argv, err := WrapView(os.Args[0], []string{"sh", "-c", "setsid sleep 600 & kill -9 $$"}, v.view)
	if err != nil {
		t.Fatal(err)
	}
	said, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.ExtraFiles = v.view.Attr(), []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	lines := bufio.NewReader(said)
	var started Started
	var ended Ended
	for _, into := range []any{&started, &ended} {
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if ws := syscall.WaitStatus(ended.Status); !ws.Signaled() || ws.Signal() != syscall.SIGKILL ||
		!slices.Equal(started.Unheld, []Row{RowGit, RowNetwork}) {
		t.Errorf("%+v, %+v", started, ended)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil { // a process is left, so it waits
		t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// TestViewRefuses checks that nothing is started where the view cannot be what was asked for.
func TestViewRefuses(t *testing.T) {
	v := newViewed(t)
	link := filepath.Join(v.out, "link")
	if err := os.Symlink(v.in, link); err != nil {
		t.Fatal(err)
	}
	good := v.view
	for want, change := range map[string]func(*View){
		"a symbolic link leads to": func(v *View) {
			v.Places = append(slices.Clone(v.Places), Place{Path: "/linked", From: link, Access: Write})
		},
		"no such file or directory": func(v *View) { v.Home = filepath.Join(v.Home, "missing") },
		`does not hold "network"`:   func(v *View) { v.Required = []Row{RowNetwork} },
		`does not hold "inside"`: func(v *View) {
			v.Required = []Row{RowInside}
			v.Places = append(slices.Clone(v.Places), Place{Path: v.Dir + "/missing", Access: Read, Make: true})
		},
		`does not hold "write"`: func(v *View) {
			v.Required = []Row{RowWrite}
			v.Places = append(slices.Clone(v.Places), Place{Path: v.Dir + "/missing", Access: Read, Must: true})
		},
	} {
		v.view = good
		change(&v.view)
		out, err := v.shell("echo > started")
		if _, is := os.Stat(filepath.Join(v.in, "started")); is == nil || err == nil || !strings.Contains(out, want) {
			t.Errorf("%q, %v; want %q and nothing started", out, err, want)
		}
	}
	v.view = good
	if out, err := v.shell("echo > started"); err != nil {
		t.Errorf("%s: %v", out, err)
	}
}

// TestViewReaps leaves many processes without a parent: process 1 takes each of them.
func TestViewReaps(t *testing.T) {
	v := newViewed(t)
	out, err := v.shell("for i in $(seq 300); do (true & true) ; done; until [ $(grep -ls '^State:.Z' /proc/[0-9]*/status | wc -l) = 0 ]; do :; done; echo none")
	if err != nil || strings.TrimSpace(out) != "none" {
		t.Errorf("%s %v", out, err)
	}
}

// BenchmarkView is the start of a program in a view, with the self-test, and without.
func BenchmarkView(b *testing.B) {
	a := Abilities()
	if a.By != ByNamespaces {
		b.Skip("there is no view here")
	}
	dir := b.TempDir()
	view := a.Apply(View{Places: []Place{{Path: dir, Access: Write}}, Dir: dir})
	argv, err := WrapView(os.Args[0], []string{"true"}, view)
	if err != nil {
		b.Fatal(err)
	}
	for name, start := range map[string]func() *exec.Cmd{
		"without": func() *exec.Cmd { return exec.CommandContext(b.Context(), "true") },
		"within": func() *exec.Cmd {
			cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
			cmd.SysProcAttr = view.Attr()
			return cmd
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if out, err := start().CombinedOutput(); err != nil {
					b.Fatal(fmt.Errorf("%w: %s", err, out))
				}
			}
		})
	}
}

// TestViewByLandlock compares what Landlock alone holds of the same places with what it says that it does not hold.
func TestViewByLandlock(t *testing.T) {
	need(t)
	v := newViewed(t)
	v.view.By, v.view.Users, v.view.Processes, v.view.HomeAt = ByLandlock, false, false, ""
	secret, closed := filepath.Join(v.out, "secret"), filepath.Join(v.in, "closed")
	for _, dir := range []string{secret, closed} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "file"), []byte("text\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	v.view.Places = append(v.view.Places, Place{Path: closed, Access: Read})
	v.view.Canaries = Canaries{Read: filepath.Join(secret, "file"), Write: filepath.Join(secret, "file"), PID: os.Getpid()}
	for command, want := range map[string]string{
		"echo in > x; cat x":                "in",
		"echo home > " + v.view.Home + "/x": "",
		"cat closed/file":                   "text",
		"cat " + secret + "/file":           "Permission denied",
		"ls " + v.out:                       "Permission denied",
		"echo > " + secret + "/new":         "ermission denied",
		"ls / > /dev/null && echo listed":   "",
	} {
		out, _ := v.shell(command)
		if !strings.Contains(out, want) || want == "" && strings.Contains(out, "listed") {
			t.Errorf("%s: %q, want %q", command, out, want)
		}
	}
	for rows, places := range map[string][]Place{
		"attributes inside names process git network": nil,
		"write attributes names process git network":  {{Path: closed, Access: Read, Must: true}},
	} {
		view := v.view
		if places != nil {
			view.Places = append(slices.Clone(v.view.Places[:1]), places...)
		}
		unheld, err := trial(t.Context(), view)
		want := strings.Fields(rows)
		if os.Geteuid() == 0 {
			want = append(want[:5:5], "root", "network")
		}
		if got := strings.Fields(strings.Trim(fmt.Sprint(unheld), "[]")); err != nil || !slices.Equal(got, want) {
			t.Errorf("unheld are %v (%v), want %v", got, err, want)
		}
	}
}

// apartVar says that this process has an IPC namespace of its own.
const apartVar = "FAIRLEAD_TEST_IPC_APART"

// ipcApart begins this program anew in an IPC namespace of its own. The attempts outside of a wall make queues and shared memory,
// which other tests on this machine watch.
func ipcApart() {
	if os.Geteuid() != 0 || os.Getenv(apartVar) != "" {
		return
	}
	runtime.LockOSThread() // the namespace is the thread's, and with the execution the process's
	if err := errors.Join(unix.Unshare(unix.CLONE_NEWIPC), os.Setenv(apartVar, "1")); err != nil {
		return
	}
	panic(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}
