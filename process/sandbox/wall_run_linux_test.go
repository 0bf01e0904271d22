package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// The kinds of folders that are attacked.
const (
	shownKind   = "shown"   // it is in the view, read-only
	guardedKind = "guarded" // the same, inside a writable folder
	absentKind  = "absent"  // it is not in the view
)

// wallPatience bounds one process that makes all attempts.
const wallPatience = 10 * time.Minute

// wallScene is a piece of a machine with a workspace in it.
type wallScene struct {
	t    *testing.T
	root string
	exe  string
	view View

	in, home, temp string
	bases          map[string]string // by kind
	hidden, deep   string
	keeper         keeper
	list           []wallAttempt
	abi            int // the newest Landlock that is used
}

func newWallScene(t *testing.T, by Mechanism) *wallScene {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &wallScene{
		t: t, root: root, exe: filepath.Join(root, "bin", "sandbox.test"), in: filepath.Join(root, "in"),
		home: filepath.Join(root, "own-home"), temp: filepath.Join(root, "own-temp"), list: wallAttempts(), abi: math.MaxInt,
	}
	s.bases = map[string]string{
		shownKind: filepath.Join(root, "shown"), guardedKind: filepath.Join(s.in, "guarded"),
		absentKind: filepath.Join(root, "absent"),
	}
	s.hidden, s.deep = filepath.Join(s.in, "above", "hidden"), filepath.Join(s.in, "outer", "inner", "deep")
	for _, dir := range []string{
		filepath.Dir(s.exe), s.home, s.temp, s.hidden, s.deep, s.ownDeep(), filepath.Join(s.in, "tries"),
		s.own(),
	} {
		s.must(os.MkdirAll(dir, 0o755))
	}
	s.must(os.WriteFile(filepath.Join(s.hidden, "secret"), []byte(secretOfFiles), 0o600))
	s.must(os.WriteFile(filepath.Join(s.deep, "kept"), []byte("kept\n"), 0o600))
	s.must(copySelf(s.exe))
	for _, base := range s.bases {
		s.lay(base)
	}
	s.lay(s.own())
	if os.Getuid() == 0 {
		for name, make := range map[string]func(p string) error{
			"setuid":  func(p string) error { return os.Chmod(p, os.ModeSetuid|0o755) },
			"filecap": func(p string) error { return unix.Setxattr(p, "security.capability", capsOfFile(), 0) },
		} {
			p := filepath.Join(filepath.Dir(s.exe), name)
			s.must(errors.Join(copySelf(p), make(p)))
		}
	}
	s.checkout(filepath.Join(s.in, "checkout"))
	s.checkout(filepath.Join(s.in, "own-checkout"))
	a := Abilities()
	if by == ByLandlock {
		a = Ability{By: ByLandlock}
	}
	s.view = a.Apply(View{
		Home: s.home, Temp: s.temp, Dir: s.in,
		Places: []Place{
			{Path: s.in, Access: Write},
			{Path: s.bases[guardedKind], Access: Read},
			{Path: s.hidden, Access: Hide},
			{Path: s.deep, Access: Read},
			{Path: filepath.Join(s.in, "checkout", ".git"), Access: Read},
			{Path: s.bases[shownKind], Access: Read},
			{Path: filepath.Dir(s.exe), Access: Read},
		},
	})
	return s
}

// copySelf copies this test binary, by another process: what this one writes may still be open in a child of another test when
// it is executed.
func copySelf(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return errors.Join(exec.Command("cp", self, to).Run(), os.Chmod(to, 0o755))
}

func (s *wallScene) own() string { return filepath.Join(s.in, "own") }

func (s *wallScene) ownDeep() string { return filepath.Join(s.own(), "outer", "inner", "deep") }

func (s *wallScene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// lay makes a file and a folder for each attempt.
func (s *wallScene) lay(base string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Join(base, "swap"), 0o755))
	s.must(os.WriteFile(filepath.Join(base, replaced), []byte("by the daemon\n"), 0o600))
	for i, a := range s.list {
		t := target{Base: base}.number(i)
		s.must(errors.Join(
			os.WriteFile(t.File, []byte(secretOfFiles+"\n"), 0o600), os.MkdirAll(filepath.Join(t.Dir, "below"), 0o755),
			os.WriteFile(filepath.Join(t.Dir, "inner"), []byte(secretOfFiles+"\n"), 0o600),
			os.Symlink("below", filepath.Join(t.Dir, "link")),
			os.WriteFile(filepath.Join(t.Dir, "program"), []byte("#!/bin/sh\n"), 0o700), //nolint:gosec // it is executed
			os.WriteFile(filepath.Join(t.Dir, "config"), []byte("[fairlead]\n\tsecret = x\n"), 0o600),
		))
		_ = unix.Setxattr(t.File, keptAttribute, []byte("x"), 0)
		if a.row == RowGit && base == s.bases[absentKind] && strings.HasPrefix(a.call, "git ") {
			s.checkout(filepath.Join(t.Dir, "repo"))
		}
	}
}

// checkout makes a repository with one commit.
func (s *wallScene) checkout(dir string) {
	s.t.Helper()
	s.must(os.MkdirAll(dir, 0o755))
	cmd := exec.CommandContext(s.t.Context(), "sh", "-ec", `git init -q -b main; echo text > file; git add file
git -c user.name=a -c user.email=a@a commit -qm "outside $PWD"; git rev-parse HEAD > ../commit`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+s.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// job says what is attacked. A scene has a keeper outside.
func (s *wallScene) job(inside bool) wallJob {
	s.t.Helper()
	if s.keeper.PID == 0 {
		const small = 2000 // a process inside may have such a number, too
		for last := 0; last < small; {
			burnt := exec.CommandContext(s.t.Context(), "true")
			s.must(burnt.Run())
			last = burnt.Process.Pid
		}
		k, end, err := startKeeper(keeperJob{Dir: s.bases[absentKind], Runtime: filepath.Join(s.bases[absentKind], "runtime"), Apart: true})
		s.must(err)
		s.t.Cleanup(end)
		s.keeper = k
		for _, p := range []string{filepath.Join(s.bases[shownKind], "socket"), filepath.Join(s.in, "socket")} {
			l, err := net.Listen("unix", p)
			s.must(err)
			s.t.Cleanup(func() { _ = l.Close() })
		}
	}
	bin := filepath.Dir(s.exe)
	all := wallJob{Targets: map[string]target{}}
	for kind, base := range s.bases {
		all.Targets[kind] = target{
			In: filepath.Join(s.in, "tries"), Base: base, Keeper: s.keeper, Repo: filepath.Join(s.in, "checkout"),
			Hidden: s.hidden, Deep: s.deep, Shown: filepath.Join(s.bases[shownKind], "socket"), Live: filepath.Join(s.in, "socket"),
			Setuid: filepath.Join(bin, "setuid"), FileCap: filepath.Join(bin, "filecap"),
		}
	}
	if inside {
		all.Own = target{
			In: filepath.Join(s.in, "tries"), Base: s.own(), Repo: filepath.Join(s.in, "own-checkout"), Hidden: s.own(),
			Deep: s.ownDeep(), Inside: true,
		}
	}
	return all
}

// environ is small, so that an attempt does not depend on the person's own.
func (s *wallScene) environ(job wallJob) []string {
	text, err := json.Marshal(job)
	s.must(err)
	return []string{
		askedVar + "=" + strconv.Itoa(s.abi), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + s.in, "LC_ALL=C", "GORACE=atexit_sleep_ms=0", wallVar + "=attempts " + string(text),
	}
}

// outside makes the control run.
func (s *wallScene) outside() map[string]wallResult {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.exe)
	cmd.Env, cmd.Dir = s.environ(s.job(false)), s.in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() == 0 { // so that what it mounts and names does not stay
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS
		cmd.SysProcAttr.Unshareflags = unix.CLONE_NEWNS
	}
	return s.results(cmd)
}

func (s *wallScene) results(cmd *exec.Cmd) map[string]wallResult {
	s.t.Helper()
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	all := map[string]wallResult{}
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r wallResult
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			all[r.Name] = r
		}
	}
	if err != nil || len(all) < len(s.list) {
		s.t.Fatalf("%d of %d attempts were made: %v: %s", len(all), len(s.list), err, words.String())
	}
	return all
}

// inside makes the attempts in the view, and returns what the view does not hold.
func (s *wallScene) inside() (map[string]wallResult, []Row) {
	s.t.Helper()
	job := s.job(true)
	s.view.Canaries = Canaries{
		Read: filepath.Join(s.bases[absentKind], "file-000"), Write: filepath.Join(s.bases[absentKind], "file-000"),
		Socket: s.keeper.Stream, PID: s.keeper.PID,
	}
	said, theirs, err := os.Pipe()
	s.must(err)
	defer said.Close()
	s.view.Report = 3
	argv, err := WrapView(s.exe, []string{s.exe}, s.view)
	s.must(err)
	ctx, cancel := context.WithTimeout(s.t.Context(), wallPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr, cmd.ExtraFiles = s.environ(job), s.in, s.view.Attr(), []*os.File{theirs}
	got := s.results(cmd)
	theirs.Close()
	var started Started
	if err := json.NewDecoder(said).Decode(&started); err != nil || started.Error != "" {
		s.t.Fatalf("started: %+v, %v", started, err)
	}
	_, _ = io.Copy(io.Discard, said)
	return got, started.Unheld
}

// portrait is what must not change: everything outside of the writable folder, and the protected folders in it.
func (s *wallScene) portrait() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, base := range []string{
		s.bases[shownKind], s.bases[guardedKind], s.bases[absentKind], filepath.Join(s.in, "above"),
		filepath.Join(s.in, "outer"), filepath.Join(s.in, "checkout", ".git"), filepath.Dir(s.exe),
	} {
		for p, of := range portrait(s.t, base) {
			name := filepath.Base(p)
			daemons := strings.HasPrefix(name, replaced) || slices.Contains(slices.Collect(maps.Values(s.bases)), p) ||
				strings.HasPrefix(p, filepath.Join(s.bases[absentKind], "runtime"))
			if !daemons { // the daemon replaces files there itself
				all[p] = of
			}
		}
	}
	return all
}

// rewrite replaces the files that are attacked meanwhile, as the daemon does: by a rename over, and by an exchange.
func (s *wallScene) rewrite(times int) (wait func()) {
	done := make(chan error, 1)
	go func() {
		var err error
		for i := range times {
			for _, base := range s.bases {
				p := filepath.Join(base, replaced)
				text := fmt.Sprintf("by the daemon, %d\n", i)
				flags := uint(0)
				if i%2 == 1 {
					flags = unix.RENAME_EXCHANGE
				}
				err = errors.Join(err, os.WriteFile(p+".daemon", []byte(text), 0o600), unix.Renameat2(at, p+".daemon", at, p, flags))
			}
		}
		done <- err
	}()
	return func() {
		s.t.Helper()
		s.must(<-done)
		for _, base := range s.bases {
			b, err := os.ReadFile(filepath.Join(base, replaced))
			if want := fmt.Sprintf("by the daemon, %d\n", times-1); err != nil || string(b) != want {
				s.t.Errorf("%s: the daemon's file has %q, %v", base, b, err)
			}
		}
	}
}

// attacks returns the rows that an attempt attacks on a kind of target. One of them has to be unheld if it works.
func (a wallAttempt) attacks(kind string) []Row {
	rows := []Row{a.row}
	if kind == guardedKind || strings.Contains(a.name, "hidden") || strings.Contains(a.name, "hides") ||
		strings.HasPrefix(a.call, "checkout ") {
		rows = append(rows, RowInside)
	}
	return rows
}

// TestWallTable checks the table: enough attempts, each name once, and at most eight for one call.
func TestWallTable(t *testing.T) {
	const least, most, leastRead = 250, 8, 100
	calls, names, rows := map[string]int{}, map[string]bool{}, map[Row]int{}
	for _, a := range wallAttempts() {
		if names[a.name] {
			t.Errorf("two attempts are called %q", a.name)
		}
		names[a.name] = true
		calls[a.call]++
		rows[a.row]++
	}
	for call, n := range calls {
		if n > most {
			t.Errorf("%s: %d attempts, and %d are the most", call, n, most)
		}
	}
	if len(names) < least && len(oldAttempts) > 0 {
		t.Errorf("%d attempts, and there have to be %d", len(names), least)
	}
	if n := rows[RowRead] + rows[RowNames]; n < leastRead {
		t.Errorf("%d attempts read files or learn their names, and there have to be %d", n, leastRead)
	}
	for name := range cannot {
		if !names[name] {
			t.Errorf("%q is listed as impossible here, and is no attempt", name)
		}
	}
	t.Log(len(names), "attempts:", rows)
}

// TestWall makes every attempt outside, where it has to work, and in a view, where it may not, while its allowed twin does.
func TestWall(t *testing.T) {
	if a := Abilities(); a.By != ByNamespaces {
		t.Skipf("there is no view here: %v", a.Why)
	}
	t.Parallel()
	s := newWallScene(t, ByNamespaces)
	tryWall(t, s)
}

// TestWallByLandlock does the same with Landlock alone. What works there is in `unheld`.
func TestWallByLandlock(t *testing.T) {
	need(t)
	t.Parallel()
	tryWall(t, newWallScene(t, ByLandlock))
}

// TestWallByOlderLandlock does the same with the last version of Landlock that does not hold abstract sockets, as the second layer of a
// view.
func TestWallByOlderLandlock(t *testing.T) {
	if Abilities().By != ByNamespaces || !testsize.CI() {
		t.Skip("there is no view here, or no time: .ci/run wall has it")
	}
	t.Parallel()
	s := newWallScene(t, ByNamespaces)
	s.abi = abiApart - 1
	tryWall(t, s)
}

// The control run is the same for every mechanism.
var (
	wallControl sync.Once
	freeResults map[string]wallResult
)

func tryWall(t *testing.T, s *wallScene) {
	t.Helper()
	wallControl.Do(func() { freeResults = newWallScene(t, ByLandlock).outside() })
	free := freeResults
	if free == nil {
		t.Fatal("the attempts could not be made outside")
	}
	s.job(true)
	before := s.portrait()
	rewritten := s.rewrite(testsize.Pick(1000, 1000, 10000))
	got, unheld := s.inside()
	rewritten()
	t.Logf("by %s as user %d, not held: %v", s.view.By, os.Getuid(), unheld)
	want := []Row{RowGit, RowNetwork}
	if s.abi < abiApart {
		want = []Row{RowSocket, RowGit, RowNetwork}
	}
	if s.view.By == ByNamespaces && s.view.Processes && !slices.Equal(unheld, want) {
		t.Errorf("not held: %v, want %v", unheld, want)
	}
	holds, passed := 0, map[string]bool{}
	for _, a := range s.list {
		controlled := false
		for kind, r := range free[a.name].Try {
			if r == worked {
				controlled = true
			} else if usersClosed := strings.Contains(strings.ToLower(r), unix.ENOSPC.Error()); !usersClosed && cannot[a.name] == "" &&
				(!a.root || os.Getuid() == 0) {
				t.Errorf("%s (%s): does not even work outside, so it proves nothing: %s", a.name, kind, r)
			}
		}
		for kind, r := range got[a.name].Try {
			switch marked := slices.ContainsFunc(a.attacks(kind), func(r Row) bool { return slices.Contains(unheld, r) }); {
			case r == worked && notHeld[a.name] != "":
			case r == worked && (!marked || a.row == RowGit && s.view.By == ByNamespaces): // git's row is about git outside of a view
				t.Errorf("%s (%s): worked, and %s is not among %v", a.name, kind, a.row, unheld)
			case r == worked:
				passed[a.name] = true
			case strings.HasPrefix(r, "panic") || strings.HasPrefix(r, "before it"):
				t.Errorf("%s (%s): %s", a.name, kind, r)
			case controlled:
				holds++
			}
		}
		closed := s.view.By == ByLandlock && closedByLandlock(a)
		if r := got[a.name].Twin; (r == worked) == closed {
			t.Errorf("%s: its allowed twin gave %q", a.name, r)
		}
	}
	t.Logf("%d were refused, and %d worked in rows that are marked", holds, len(passed))
	changes := cmp.Diff(before, s.portrait())
	if changes != "" && s.view.By == ByNamespaces {
		t.Errorf("what was outside has changed:\n%s", changes)
	}
}

// TestWallAsAnotherUser does all of it as an ordinary user, where the test is root, and once more where no fresh /proc can be
// mounted, and where namespaces of users are closed.
func TestWallAsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it is an ordinary user already")
	}
	if !testsize.CI() {
		t.Skip("it takes a minute more; .ci/run wall has it")
	}
	for name, tt := range map[string]struct {
		m     madeMachine
		names string
	}{
		"ordinary": {madeMachine{User: anotherUser}, "TestWall$|TestWallOrdinaryCommands"},
		"without a fresh proc": {
			madeMachine{User: anotherUser, Cover: []string{"/proc/irq"}, ReadOnly: []string{"/proc/sys"}},
			"TestWall$",
		},
		"without user namespaces": {madeMachine{User: anotherUser, Limit: "user/max_user_namespaces"}, "TestWallByLandlock$"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := tt.m.command(t, "", "-test.v", "-test.run", tt.names).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS") {
				t.Errorf("%v:\n%s", err, out)
			}
			t.Log(string(out))
		})
	}
}
