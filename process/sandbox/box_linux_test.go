package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// scratch is a writable folder and a tree outside that must not change.
type scratch struct {
	t       testing.TB
	in, out string
}

func newScratch(t testing.TB) *scratch {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scratch{t, filepath.Join(dir, "in"), filepath.Join(dir, "out")}
	for _, d := range []string{s.in, s.out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// boxWord is the first argument of a process of these tests that restricts itself by Landlock and the filter alone.
const boxWord = "in-a-box"

// boxed is the command that starts argv with the restrictions of a box alone, which is what Landlock holds of a view.
func boxed(exe string, argv []string, b box) []string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return append([]string{exe, boxWord, string(text)}, argv...)
}

// boxIfAsked restricts this process, and becomes the given program.
func boxIfAsked() {
	if len(os.Args) < 4 || os.Args[1] != boxWord {
		return
	}
	var b box
	err := json.Unmarshal([]byte(os.Args[2]), &b)
	runtime.LockOSThread()
	program := ""
	if err == nil {
		program, err = b.enclose(os.Args[3])
	}
	if err == nil {
		err = become(program, os.Args[3:], os.Environ())
	}
	os.Exit(report(os.Stderr, err))
}

// victims creates what n attempts are to change.
func (s *scratch) victims(n int) {
	s.t.Helper()
	for i := range n {
		p := placeOf(s.in, s.out, i)
		if err := os.WriteFile(p.victim, []byte("as it was\n"), 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(p.dir, "below"), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
}

// patience bounds one sandboxed process.
const patience = 2 * time.Minute

// start runs this test binary in a box, or without one if box is nil.
func (s *scratch) command(box *box, act string, env ...string) *exec.Cmd {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	argv := []string{os.Args[0]}
	if box != nil {
		argv = boxed(os.Args[0], argv, *box)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	// without this a binary with the race detector waits a second at its end
	cmd.Env = append([]string{
		"PATH=/usr/bin:/bin", "HOME=" + s.in, "GORACE=atexit_sleep_ms=0", actVar + "=" + act, inVar + "=" + s.in,
		dirVar + "=" + s.out,
	}, env...)
	cmd.Dir = s.in
	return cmd
}

func (s *scratch) run(box *box, act string, env ...string) string {
	s.t.Helper()
	out, err := s.command(box, act, env...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", act, err, out)
	}
	return string(out)
}

// results parses `NAME: ERROR` lines.
func results(out string) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(out) {
		if name, err, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			said[name] = err
		}
	}
	return said
}

// portrait describes everything visible of a tree: for each name its type, mode, owner, links, size, times of
// modification and change, extended attributes, link target and content. Only the access time is left out.
func portrait(t testing.TB, root string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		of := fmt.Sprintf("%o %d:%d %d %d %v %v", st.Mode, st.Uid, st.Gid, st.Nlink, st.Size, st.Mtim, st.Ctim)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			of += " -> " + to
		case unix.S_IFREG:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			of += fmt.Sprintf(" %x", sha256.Sum256(b))
		}
		names := make([]byte, 1<<12)
		if n, err := unix.Llistxattr(p, names); err == nil && n > 0 {
			of += fmt.Sprintf(" %q", names[:n])
		}
		seen[p] = of
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// TestAttempts makes every known attempt to change a file outside: first without a sandbox, to see that it
// works at all, and then in the sandbox, where none may succeed.
func TestAttempts(t *testing.T) {
	need(t)
	free := newScratch(t)
	free.victims(len(attempts))
	outside := results(free.run(nil, "attempts"))
	boxed := newScratch(t)
	boxed.victims(len(attempts))
	before := portrait(t, boxed.out)
	inside := results(boxed.run(&box{Write: []string{boxed.in}}, "attempts"))
	for _, a := range attempts {
		if got, ok := outside[a.name]; got != "<nil>" {
			if !ok || !cannotEverywhere[a.name] {
				t.Errorf("%s does not even work free, so it proves nothing: %q", a.name, got)
			}
			t.Logf("%s: not on this machine: %s", a.name, got)
		}
		if got := inside[a.name]; got == "<nil>" || got == "" {
			t.Errorf("%s: worked (%q)", a.name, got)
		}
	}
	if diff := cmp.Diff(before, portrait(t, boxed.out)); diff != "" {
		t.Errorf("what was outside has changed:\n%s", diff)
	}
}

// cannotEverywhere are attempts that some file systems, kernels or users do not support.
var cannotEverywhere = map[string]bool{
	"make a file without a name": true, "name what is open by name alone": true, "write by a handle": true, "set a flag": true,
	"set an attribute": true, "set an attribute of what is open": true, "chmod what is open by name": true, "exchange": true,
}

// With Attributes, calls that Landlock does not see work outside too, and nothing else does.
func TestAttributes(t *testing.T) {
	need(t)
	s := newScratch(t)
	s.victims(len(attempts))
	said := results(s.run(&box{Write: []string{s.in}, Attributes: true}, "attempts"))
	for _, a := range attempts {
		about := strings.HasPrefix(a.name, "ch") || strings.HasPrefix(a.name, "set ") || a.name == "touch"
		if worked := said[a.name] == "<nil>"; worked != about && !cannotEverywhere[a.name] {
			t.Errorf("%s: %s", a.name, said[a.name])
		}
	}
}

func TestBeyond(t *testing.T) {
	need(t)
	s := newScratch(t)
	s.victims(len(beyond))
	t.Cleanup(func() { os.Remove("/dev/shm/fairlead-test") })
	before := portrait(t, s.out)
	said := results(s.run(&box{Write: []string{s.in}}, "beyond"))
	for _, a := range beyond {
		if got := said[a.name]; got == "<nil>" || got == "" {
			t.Errorf("%s: worked (%q)", a.name, got)
		}
	}
	if diff := cmp.Diff(before, portrait(t, s.out)); diff != "" {
		t.Errorf("what was outside has changed:\n%s", diff)
	}
}

// Named sockets are denied unless allowed; abstract ones and signals always are.
func TestSocketsAndSignals(t *testing.T) {
	need(t)
	abi, _ := Supported()
	s := newScratch(t)
	name := fmt.Sprintf("@fairlead-test-%d", os.Getpid())
	for _, address := range []string{filepath.Join(s.out, "socket"), name} {
		l, err := net.Listen("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	receives, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(s.out, "datagram"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer receives.Close()
	for _, c := range []struct {
		box                               *box
		named, abstract, datagram, signal string
	}{
		{box: nil, named: "<nil>", abstract: "<nil>", datagram: "<nil>", signal: "<nil>"},
		{box: &box{}, named: "permission denied", abstract: "permission denied", datagram: "permission denied", signal: "not permitted"},
		{
			box: &box{Alone: true}, named: "permission denied", abstract: "permission denied", datagram: "permission denied",
			signal: "not permitted",
		},
		{box: &box{Sockets: true}, named: "<nil>", abstract: "not permitted", datagram: "<nil>", signal: "not permitted"},
	} {
		if c.box != nil && abi < 6 {
			t.Logf("Landlock %d leaves signals and abstract sockets alone", abi)
			continue
		}
		said := results(s.run(c.box, "sockets", abstract+"="+name))
		said["signal"] = results(s.run(c.box, "signal"))["signal"]
		for what, want := range map[string]string{
			"named": c.named, "abstract": c.abstract, "datagram": c.datagram, "streams": "<nil>",
			"signal": c.signal,
		} {
			if !strings.HasSuffix(said[what], want) {
				t.Errorf("%+v: %s: %q, want %q", c.box, what, said[what], want)
			}
		}
	}
}

// Only the listed programs are executed, by name, by path and from another program.
func TestExecute(t *testing.T) {
	need(t)
	s := newScratch(t)
	list := Programs([]string{"sh", "env", "cat"}, nil)
	for command, works := range map[string]bool{
		"cat /dev/null": true, "env cat /dev/null": true, "cat /dev/null; :": true,
		"ls": false, "/bin/ls": false, "env ls": false, "exec ls": false, "\"$0\" -c ls": false,
	} {
		argv := boxed(os.Args[0], []string{"/bin/sh", "-c", command}, box{Write: []string{s.in}, Execute: list, Alone: true})
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}
		out, err := cmd.CombinedOutput()
		if (err == nil) != works {
			t.Errorf("%s: %v: %s", command, err, out)
		}
	}
}

// Programs finds what starts a program, and skips folders in which an agent may write.
func TestPrograms(t *testing.T) {
	s := newScratch(t)
	for name, text := range map[string]string{
		"tool": "#!/usr/bin/env sh\n", "deep": "#! " + s.in + "/tool\n",
		"loop": "#!" + s.in + "/loop\n", "elf": "\x7fELF\x02\x01", "plain": "",
	} {
		if err := os.WriteFile(filepath.Join(s.in, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", s.in+":relative:/usr/bin:/bin")
	found := Programs([]string{"tool", "deep", "loop", "elf", "plain", "missing"}, nil)
	for _, name := range []string{"tool", "deep", "loop", "elf", "plain"} {
		if !slices.Contains(found, filepath.Join(s.in, name)) {
			t.Errorf("%s is not among %q", name, found)
		}
	}
	if !slices.ContainsFunc(found, func(p string) bool { return filepath.Base(p) == "env" }) {
		t.Errorf("env is not among %q", found)
	}
	if again := Programs([]string{"tool"}, []string{s.in}); len(again) > 0 {
		t.Errorf("found below a folder that does not count: %q", again)
	}
}

// System call numbers of another architecture would bypass the filter.
func TestForeignNumbers(t *testing.T) {
	need(t)
	if foreignFrom == 0 {
		t.Skip("this architecture has one set of numbers")
	}
	s := newScratch(t)
	out, err := s.command(&box{}, "foreign").CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "bad system call") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSameProcess checks that a supervising process sees the same process after the sandbox was entered.
func TestSameProcess(t *testing.T) {
	need(t)
	s := newScratch(t)
	hole, err := os.OpenFile(filepath.Join(s.out, "hole"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	cmd := s.command(&box{Write: []string{s.in}}, "who", "FAIRLEAD_MARK=0011223344556677.coder-17")
	cmd.Args = append(cmd.Args, "an argument", "")
	cmd.ExtraFiles = []*os.File{hole}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err, out.String())
	}
	pid := cmd.Process.Pid
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	caps := "0000000000000000"
	if os.Getuid() == 0 {
		caps = "0000000000000002"
	}
	want := []string{
		"CapPrm: " + caps, "CapEff: " + caps, "NoNewPrivs: 1", "Seccomp: 2",
		fmt.Sprint("pid ", pid), fmt.Sprint("parent ", os.Getpid()), fmt.Sprint("group ", pid), fmt.Sprint("session ", pid), "death 9",
		`args ["an argument" ""]`, "mark 0011223344556677.coder-17", "dir " + s.in,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestFailsClosed checks that the program is not started if the sandbox cannot be created.
func TestFailsClosed(t *testing.T) {
	need(t)
	s := newScratch(t)
	started := filepath.Join(s.in, "started")
	link, pipe, second := filepath.Join(s.out, "link"), filepath.Join(s.out, "pipe"), filepath.Join(s.out, "second")
	plain := filepath.Join(s.out, "plain")
	if err := os.Symlink(s.in, link); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(plain, second); err != nil {
		t.Fatal(err)
	}
	run := []string{"/bin/sh", "-c", "echo > " + started}
	writes := func(argv []string, more ...string) []string {
		return boxed(os.Args[0], argv, box{Write: append([]string{s.in}, more...)})[1:]
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{writes(run, s.out+"/absent"), 126, "does not exist; make it first"},
		{writes(run, link), 126, "a symbolic link leads to"},
		{writes(run, link+"/below"), 126, "a symbolic link leads to"},
		{writes(run, pipe), 126, "neither a folder nor a file"},
		{writes(run, second), 126, "has 2 names"},
		{
			append([]string{Verb, ViewFlag, `{"by":"landlock","places":[{"path":"/","access":"write"}]}`, "--"}, run...), 126,
			"would defeat the wall",
		},
		{append([]string{Verb, ViewFlag, `{"by":"landlock","execute":["sh"]}`, "--"}, run...), 126, "no absolute path"},
		{append([]string{Verb, "--write", s.in, "--"}, run...), 126, "not understood"},
		{writes([]string{"no-such-program-anywhere"}), 127, "no program"},
		{writes([]string{"/no/such/program"}), 127, "does not exist"},
		{writes([]string{plain}), 126, "is not executable"},
		{writes([]string{s.in}), 126, "is a folder"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], c.args...)
		cmd.Env = []string{"PATH=.:" + s.out}
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %d, %s", c.args, cmd.ProcessState.ExitCode(), out)
		}
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("something was started")
	}
}

// With Terminals, programs can use new pseudo-terminals, and still create nothing in their folder.
func TestTerminals(t *testing.T) {
	need(t)
	s := newScratch(t)
	if f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		t.Skipf("there are no terminals here: %v", err)
	} else {
		f.Close()
	}
	script := `(: <> /dev/ptmx) 2>/dev/null && echo had; (: > /dev/pts/fairlead-test) 2>/dev/null && echo made; (echo > /dev/shm/fairlead-test) 2>/dev/null && echo made; :`
	for box, want := range map[*box]string{{Write: []string{s.in}}: "", {Write: []string{s.in}, Terminals: true}: "had\n"} {
		argv := boxed(os.Args[0], []string{"/bin/sh", "-c", script}, *box)
		out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("terminals %v: %q, %v", box.Terminals, out, err)
		}
	}
}

// TestInside checks that normal work is possible in the folders, between them, and on a single file.
func TestInside(t *testing.T) {
	need(t)
	s := newScratch(t)
	other, file := filepath.Join(s.out, "other"), filepath.Join(s.out, "file")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	script := `set -e
echo one > a; mkdir -p b/c; mv a b/c/a; cp b/c/a b/d; ln b/d b/e; ln -s b/d f; mkfifo g; echo two >> b/d; rm b/e f g
mv b/d "$1/d"; mv "$1/d" d; echo three > "$2"; : > "$2"; echo four >> "$2"; cat "$2"
echo gone > /dev/null; echo said > /dev/stdout; cat /etc/passwd > /dev/null; ls / > /dev/null
(echo child) | cat; rm -r b`
	argv := boxed(os.Args[0], []string{"/bin/sh", "-c", script, "sh", other, file}, box{Write: []string{s.in, other, file}})
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.in, []string{"PATH=/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "four\nsaid\nchild\n" {
		t.Errorf("%v: %s", err, out)
	}
	left, _ := os.ReadDir(s.in)
	if len(left) != 1 || !slices.ContainsFunc(left, func(e fs.DirEntry) bool { return e.Name() == "d" }) {
		t.Errorf("left inside: %v", left)
	}
}

// A sandbox inside another one cannot verify itself, so it is refused.
func TestNested(t *testing.T) {
	need(t)
	s := newScratch(t)
	box := box{Write: []string{s.in}}
	argv := boxed(os.Args[0], boxed(os.Args[0], []string{"/bin/sh", "-c", "echo > started"}, box), box)
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = s.in
	out, _ := cmd.CombinedOutput()
	if _, err := os.Stat(filepath.Join(s.in, "started")); err == nil || cmd.ProcessState.ExitCode() != CannotSandbox ||
		!strings.Contains(string(out), "in no sandbox yet") {
		t.Errorf("%d %s", cmd.ProcessState.ExitCode(), out)
	}
}

// askedVar lowers abiAsked in the processes that a test starts. The value is set before the package's init function,
// which may already make the process a sandbox.
const askedVar = "FAIRLEAD_TEST_LANDLOCK"

var _ = func() bool {
	if n, err := strconv.Atoi(os.Getenv(askedVar)); err == nil {
		abiAsked = n
	}
	return true
}()

// Every version of Landlock that is supported holds what is said, also one older than this kernel's: a kernel accepts
// the rules that older ones knew. What an old one does not hold is what NotHeld says.
func TestOlderLandlock(t *testing.T) {
	need(t)
	newest, _ := Supported()
	was := abiAsked
	t.Cleanup(func() { abiAsked = was })
	for abi := range newest + 1 {
		abiAsked = abi
		got, why := Supported()
		less := NotHeld()
		if abi < abiMin {
			s := newScratch(t)
			out, err := s.command(&box{Write: []string{s.in}}, "attempts", askedVar+"="+strconv.Itoa(abi)).CombinedOutput()
			if why == "" || got != 0 || less != "" || err == nil || !strings.Contains(string(out), "nothing was started") {
				t.Errorf("Landlock %d: supported as %d, %q, %q; a sandbox says %v, %s", abi, got, why, less, err, out)
			}
			continue
		}
		if got != abi || why != "" {
			t.Errorf("Landlock %d is supported as %d: %q", abi, got, why)
		}
		for what, missing := range map[string]bool{"signals": abi < 6, "abstract unix sockets": abi < 6, "devices": abi < 5} {
			if strings.Contains(less, what) != missing {
				t.Errorf("Landlock %d: of %s it is said: %q", abi, what, less)
			}
		}
		level(t, abi)
	}
}

// level tries what a sandbox of one version holds.
func level(t *testing.T, abi int) {
	t.Helper()
	asked := askedVar + "=" + strconv.Itoa(abi)
	s := newScratch(t)
	s.victims(len(attempts))
	before := portrait(t, s.out)
	said := results(s.run(&box{Write: []string{s.in}}, "attempts", asked))
	for _, a := range attempts {
		if got := said[a.name]; got == "<nil>" || got == "" {
			t.Errorf("Landlock %d: %s: worked (%q)", abi, a.name, got)
		}
	}
	if diff := cmp.Diff(before, portrait(t, s.out)); diff != "" {
		t.Errorf("Landlock %d: what was outside has changed:\n%s", abi, diff)
	}
	name := fmt.Sprintf("@fairlead-test-%d-%d", os.Getpid(), abi)
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		box              box
		abstract, signal bool // it works
	}{
		{box{}, false, abi < abiApart},
		{box{Sockets: true}, abi < abiApart, abi < abiApart},
		{box{Alone: true}, false, false},
	} {
		sockets := results(s.run(&c.box, "sockets", asked, abstract+"="+name))
		signal := results(s.run(&c.box, "signal", asked))
		if worked := sockets["abstract"] == "<nil>"; worked != c.abstract {
			t.Errorf("Landlock %d, %+v: an abstract socket gave %q", abi, c.box, sockets["abstract"])
		}
		if worked := signal["signal"] == "<nil>"; worked != c.signal {
			t.Errorf("Landlock %d, %+v: a signal gave %q", abi, c.box, signal["signal"])
		}
	}
}
