package claudehook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/process/claudehook/confine"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// forbidden are names of programs that no command of MAIN may execute. In the stage they stand first in PATH.
var forbidden = strings.Fields("touch python3 perl node make gcc curl tee cp mv rm chmod ln dd ssh nc evil ruby php vim ed less docker npm go gh fairlead kill pkill sudo busybox")

// stage is a scene in which commands of MAIN really run, and every effect outside their sandbox is noticed.
type stage struct {
	policytest.Scene
	t      *testing.T
	bin    string // the forbidden programs
	temp   string // for temporary files, which are not looked at
	watch  int    // inotify: one of them opened its flag
	called atomic.Int32
	online bool // it may use the network

	granted bool // the command may execute one of the forbidden programs

	victim *exec.Cmd // a process that no command may end
	before map[string]string

	patience time.Duration // with one command
	hook     string        // the program that runs commands in the sandbox
	trace    string        // where strace writes what commands execute and write; empty: they are not traced
}

// built is the hook's program, without the race detector, with which each start takes half a second.
var built = sync.OnceValues(func() (file string, err error) {
	dir, err := os.MkdirTemp("", "fairlead-hook-")
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "fairlead-hook")
	if out, err := exec.Command("go", "build", "-race=false", "-o", file, "../../cmd/fairlead-hook").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the hook: %w: %s", err, out)
	}
	removeAfter = append(removeAfter, dir)
	return file, nil
})

const (
	briefly    = 3 * time.Second // with commands that may never end; what they did until then counts
	withResult = 2 * time.Minute // with commands whose result counts, on a loaded machine
)

func newStage(t *testing.T) *stage {
	t.Helper()
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	s := &stage{Scene: policytest.Build(t), t: t, patience: briefly, bin: t.TempDir(), temp: t.TempDir()}
	var err error
	if s.hook, err = built(); err != nil {
		t.Fatal(err)
	}
	if s.watch, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s.watch) })
	flag := filepath.Join(s.bin, "flag") // not the programs themselves: a shell reads a program that it may not execute
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(s.watch, flag, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	for _, name := range forbidden {
		if err := os.WriteFile(filepath.Join(s.bin, name), []byte("#!/bin/sh\n: < '"+flag+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"x": "x\n", "a.c": "int main(){}\n", "Makefile": "all:\n\ttouch made\n",
		"run.sh": "touch made\n", "app.js": "1\n", "src/main.go": "package main\n",
	} {
		if err := os.WriteFile(filepath.Join(s.Repo, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if l, err := net.Listen("tcp", "127.0.0.1:9"); err == nil { // only root may
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				s.called.Add(1)
				c.Close()
			}
		}()
	}
	s.victim = exec.Command("sleep", "1000")
	if err := s.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.victim.Process.Kill(); _ = s.victim.Wait() })
	s.before = s.look()
	return s
}

// look describes everything that commands must not change.
func (s *stage) look() map[string]string {
	tree := policytest.TreeOf(s.t, s.Root)
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		made, _ := filepath.Glob(dir + "/attempt-*")
		for _, p := range made {
			tree[p] = "is there"
		}
	}
	// What the kernel keeps outside files: of another process, and objects that outlive the command.
	victim := s.victim.Process.Pid
	for _, name := range []string{"comm", "oom_score_adj", "limits", "cpuset", "coredump_filter", "autogroup"} {
		p := fmt.Sprintf("/proc/%d/%s", victim, name)
		text, _ := os.ReadFile(p) // none after its end, which harm reports
		tree[p] = string(text)
	}
	priority, _ := unix.Getpriority(unix.PRIO_PROCESS, victim)
	var cpus unix.CPUSet
	_ = unix.SchedGetaffinity(victim, &cpus)
	attr, _ := unix.SchedGetAttr(victim, 0)
	tree["scheduling of the other process"] = fmt.Sprint(priority, cpus.Count(), attr)
	for _, name := range []string{"shm", "sem", "msg"} {
		p := "/proc/sysvipc/" + name
		text, _ := os.ReadFile(p)
		var keys []string // the other columns change by themselves
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 1 {
				keys = append(keys, fields[0]+" "+fields[1])
			}
		}
		tree[p] = strings.Join(keys, ", ")
	}
	return tree
}

// harm returns what has happened outside since the last look; empty: nothing.
func (s *stage) harm() string {
	var all []string
	after := s.look()
	if diff := policytest.Differences(s.before, after); diff != "" {
		all = append(all, "changed what is on disk:\n"+diff)
	}
	s.before = after
	var events [64 << 10]byte
	if n, _ := unix.Read(s.watch, events[:]); n > 0 && !s.granted {
		all = append(all, "executed a forbidden program")
	}
	if s.called.Swap(0) > 0 && !s.online {
		all = append(all, "reached the network")
	}
	if s.victim.Process.Signal(syscall.Signal(0)) != nil {
		all = append(all, "ended another process")
	}
	return strings.Join(all, "; ")
}

// env is the environment in which MAIN's program runs commands.
func (s *stage) env() []string {
	return []string{
		"PATH=" + s.bin + ":/usr/bin:/bin", "HOME=" + s.Home, "TMPDIR=" + s.temp, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C.UTF-8",
		"SHELL=/bin/bash",
		"GORACE=atexit_sleep_ms=0",
	}
}

// run gives a text to bash, as the program does, and returns what it said and its exit code.
func (s *stage) run(text string) (said string, code int) {
	s.t.Helper()
	words := []string{"/bin/bash", "-c", text}
	if s.trace != "" {
		words = append([]string{
			"/usr/bin/strace", "-f", "-qq", "-y", "-s", "4096", "-o", s.trace,
			"--decode-pids=pidns", "-e",
			"trace=clone,clone3,fork,vfork,execve,execveat,open,openat,openat2,creat,truncate,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,mknod,mknodat,link,linkat,symlink,symlinkat", "--",
		}, words...)
	}
	return s.exec(words...)
}

// exec runs a program, and returns what it said and its exit code.
func (s *stage) exec(words ...string) (said string, code int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = s.Repo, s.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // its exit code says it
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return out.String(), cmd.ProcessState.ExitCode()
}

// judge returns the verdict about a command of MAIN, and what runs instead of it.
func (s *stage) judge(command string) (policy.Verdict, string) {
	raw, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		s.t.Fatal(err)
	}
	call := policy.Call{Tool: "Bash", Input: raw, Dir: s.Repo, Confined: true}
	verdict := policy.Judge(policy.MainRules(), true, call, policytest.Case{}.Where(s.Scene), dispatchfolder.Disk{})
	v := &visit{Hook: Hook{Exe: []string{s.hook, confine.Verb}, Env: func(string) string { return "" }}, Event: Event{Dir: s.Repo}}
	return verdict, v.confined(command, verdict, true, 0)
}

// lines reads a table of commands.
func (s *stage) lines(name string) (all []string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("../../core/policy/testdata", name))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
			line = strings.ReplaceAll(line, "{{victim}}", strconv.Itoa(s.victim.Process.Pid))
			all = append(all, s.Expand(strings.ReplaceAll(line, "⏎", "\n")))
		}
	}
	return all
}

// What the stage notices, without a sandbox: otherwise the tests below prove nothing.
func TestStageNotices(t *testing.T) {
	s := newStage(t)
	s.patience = withResult
	for command, want := range map[string]string{
		"echo x > new": "disk", "sed -n '1e touch y' README.md": "executed", "chmod +x README.md; /bin/chmod +x README.md": "disk",
		"evil": "executed", "ls | xargs -n1 evil": "executed", fmt.Sprintf("/usr/bin/renice 19 %d", s.victim.Process.Pid): "scheduling",
	} {
		s.run(command)
		if got := s.harm(); !strings.Contains(got, want) {
			t.Errorf("%s: noticed %q, should be %q", command, got, want)
		}
	}
	segment, err := unix.SysvShmGet(unix.IPC_PRIVATE, 8, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.harm(); !strings.Contains(got, "sysvipc") {
		t.Errorf("an object that outlives its program: noticed %q", got)
	}
	if _, err := unix.SysvShmCtl(segment, unix.IPC_RMID, nil); err != nil {
		t.Error(err)
	}
	if err := s.victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _ = s.victim.Wait(); !strings.Contains(s.harm(), "ended another") {
		t.Error("the end of the victim was not noticed")
	}
}

// Attempts that were written before the parser was looked at, run for real where it lets them through: none
// changes anything outside the sandbox (D8). Those of the third and fourth table run in the sandbox also where the parser denies them: it
// explains, and the kernel is what holds. doc/testing.md has the figures.
func TestAttempts(t *testing.T) {
	for name, every := range map[string]int{
		"attempts.txt": testsize.Pick(8, 2, 1), "attempts-blind.txt": testsize.Pick(16, 4, 1),
		"attempts-third.txt": testsize.Pick(16, 3, 1), "attempts-fourth.txt": testsize.Pick(16, 3, 1),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			attempts := s.lines(name)
			denied, ran, alone, harmful := 0, 0, 0, 0
			both := name == "attempts-third.txt" || name == "attempts-fourth.txt"
			for i, command := range attempts {
				verdict, wrapped := s.judge(command)
				if !verdict.Allow {
					denied++
				}
				switch {
				case i%every != 0, !verdict.Allow && !both:
					continue
				case !verdict.Allow:
					alone++
				}
				ran++
				s.granted = len(verdict.Programs) > 0
				said, code := s.run(wrapped)
				if harm := s.harm(); harm != "" {
					harmful++
					t.Errorf("%q: exit code %d, it said %.300q, and\n\t%s", command, code, said, harm)
				}
			}
			if len(attempts) < 300 {
				t.Errorf("%d attempts; there should be 300", len(attempts))
			}
			t.Logf("%d attempts: %d denied, %d left to the kernel; %d run, %d of them although denied, %d harmful", len(attempts), denied,
				len(attempts)-denied, ran, alone, harmful)
		})
	}
}

// The same attempts by an agent with bounds, whose program is held by the kernel as a whole: it may execute everything
// and has the network, and changes nothing outside the folder that it may write.
func TestAttemptsOfABoundedAgent(t *testing.T) {
	s := newStage(t)
	s.granted, s.online = true, true
	view := sandbox.View{By: sandbox.ByLandlock, Places: []sandbox.Place{{Path: s.temp, Access: sandbox.Write}}}
	for _, p := range []string{s.Root, s.bin, filepath.Dir(s.hook)} {
		view.Places = append(view.Places, sandbox.Place{Path: p, Access: sandbox.Read})
	}
	every, ran := testsize.Pick(16, 3, 1), 0
	for i, command := range s.lines("attempts-fourth.txt") {
		if i%every != 0 || strings.HasPrefix(command, "ipcmk") { // SECURITY.md: agents may use System V IPC, as databases do
			continue
		}
		ran++
		words, err := sandbox.WrapView(s.hook, []string{"/bin/bash", "-c", command}, view)
		if err != nil {
			t.Fatal(err)
		}
		said, code := s.exec(words...)
		if harm := s.harm(); harm != "" {
			t.Errorf("%q: exit code %d, it said %.300q, and\n\t%s", command, code, said, harm)
		}
	}
	t.Logf("%d attempts ran", ran)
}

// The commands of the other table that MAIN may give, in the sandbox.
func TestConfinedCalls(t *testing.T) {
	s := newStage(t)
	every, ran := testsize.Pick(4, 1, 1), 0
	for _, c := range policytest.Calls(t) {
		command := c.Command(s.Scene)
		if !c.Main || command == "" || c.Line%every != 0 || c.Plain || c.Dir != "" {
			continue
		}
		verdict, wrapped := s.judge(command)
		if !verdict.Allow || len(verdict.Programs) > 0 { // the stage's own would run
			continue
		}
		said, code := s.run(wrapped)
		ran++
		if harm := s.harm(); harm != "" {
			t.Errorf("calls.txt:%d: %s: exit code %d, it said %.300q, and\n\t%s", c.Line, command, code, said, harm)
		}
	}
	t.Logf("%d commands ran", ran)
}

// Commands that a coordinator needs: at most 3 in 100 are denied, and in the sandbox they do what they do
// outside.
func TestOrdinaryCommands(t *testing.T) {
	s := newStage(t)
	every := testsize.Pick(4, 1, 1)
	commands := s.lines("ordinary.txt")
	s.patience = withResult
	var denied []string
	for i, command := range commands {
		verdict, wrapped := s.judge(command)
		if !verdict.Allow {
			denied = append(denied, command+": "+verdict.Reason)
			continue
		}
		if i%every != 0 || len(verdict.Programs) > 0 { // the stage's own would run
			continue
		}
		outside, want := s.run(command)
		s.harm() // git refreshes its index outside
		inside, code := s.run(wrapped)
		if harm := s.harm(); code != want || harm != "" {
			t.Errorf("%s: in the sandbox exit code %d, %.300q; outside %d, %.300q; %s", command, code, inside, want, outside, harm)
		}
	}
	if len(denied)*100 > len(commands)*3 {
		t.Errorf("%d of %d ordinary commands are denied; 3 in 100 are the most", len(denied), len(commands))
	}
	t.Logf("%d of %d ordinary commands are denied: %q", len(denied), len(commands), denied)
}

// traced returns what a trace has of programs outside the list that were executed, and of changes outside the
// temporary folder. execs is the number of programs that were executed.
func (s *stage) traced(may map[string]bool) (wrong []string, execs int) {
	s.t.Helper()
	text, err := os.ReadFile(s.trace)
	if err != nil {
		s.t.Fatal(err)
	}
	unfinished, hook, parents := map[string]string{}, map[string]bool{}, map[string]string{}
	for line := range strings.Lines(string(text)) { // the hook makes the view, and starts what is in it
		if pid, call, _ := strings.Cut(strings.TrimSpace(line), " "); strings.Contains(call, "clone") || strings.Contains(call, "fork") {
			if _, result, is := strings.Cut(call, ") "); is {
				if child := childOf.FindStringSubmatch(result); child != nil {
					parents[cmp.Or(child[2], child[1])] = pid
				}
			}
		}
	}
	ofHook := func(pid string) bool {
		for {
			if is, known := hook[pid]; known || parents[pid] == "" {
				return is
			}
			pid = parents[pid]
		}
	}
	for line := range strings.Lines(string(text)) {
		pid, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		if begun, cut := strings.CutSuffix(call, " <unfinished ...>"); cut {
			unfinished[pid] = begun
			continue
		}
		if _, rest, resumed := strings.Cut(call, " resumed>"); resumed && strings.HasPrefix(call, "<... ") {
			call = unfinished[pid] + rest
		}
		at := strings.LastIndex(call, " = ")
		if strings.HasPrefix(call, "clone") || strings.HasPrefix(call, "fork") || strings.HasPrefix(call, "vfork") {
			continue
		}
		if at < 0 || strings.HasPrefix(call[at:], " = -1 ") || strings.HasPrefix(call[at:], " = ?") {
			continue
		}
		name, args, _ := strings.Cut(call[:at], "(")
		_, quoted, _ := strings.Cut(args, `"`)
		path, _, _ := strings.Cut(quoted, `"`)
		if strings.HasPrefix(name, "exec") {
			hook[pid] = path == s.hook || path == "/proc/self/exe" && ofHook(pid)
		}
		switch {
		case ofHook(pid):
		case strings.HasPrefix(name, "exec"):
			if execs++; !may[filepath.Base(path)] || strings.HasPrefix(path, s.bin) {
				wrong = append(wrong, call)
			}
		case strings.HasPrefix(name, "open"):
			_, opened, _ := strings.Cut(call[at:], "<")
			if opened = strings.TrimSuffix(opened, ">"); writes.MatchString(call[:at]) && !strings.HasPrefix(opened, s.temp+"/") &&
				!strings.HasPrefix(opened, s.Home+"/") && !strings.HasPrefix(opened, "/dev/") {
				wrong = append(wrong, call)
			}
		case !strings.Contains(args, s.temp) && !strings.Contains(args, s.Home+"/"): // a view has a home folder of its own there
			wrong = append(wrong, call)
		}
	}
	return wrong, execs
}

// childOf matches the process that a call has started, and its number outside of its view.
var childOf = regexp.MustCompile(`= (\d+)(?: /\* (\d+) in strace's PID NS)?`)

// writes matches the flags of a call that opens a file to write.
var writes = regexp.MustCompile(`\b(O_WRONLY|O_RDWR|O_CREAT|O_TRUNC)\b`)

// Every program that MAIN may run, with arguments in every order, has no effect outside the sandbox. If strace is
// there, no program outside the list runs and no file outside the temporary folder is opened to write.
func TestShuffledArguments(t *testing.T) {
	s := newStage(t)
	if _, err := os.Stat("/usr/bin/strace"); err == nil {
		s.trace, s.patience = filepath.Join(t.TempDir(), "trace"), 2*briefly
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	pool := strings.Fields("-o -e -i -f -w -s -x -n -c -d -p -u -r -t -I -E -P -C -O -T --output=new --in-place -exec -execdir -delete -fprint -ok touch evil new README.md x app.py " +
		"{} ; + -- - --help log diff show status --ext-diff --textconv -ox -inew -wnew 1e s/a/b/w s/a/b/e . / .git BEGIN{system(\"evil\")} BEGIN{print>\"new\"} 1etouch --compress-program=evil --pre=evil --to-command=evil " +
		"--use-compress-program=evil --checkpoint=1 --checkpoint-action=exec=evil -I{} sh -c evil run.sh ./run -a 5 -L1 -s9 --replace --max-lines PATH=. LD_PRELOAD=./x core.pager=evil alias.x=!evil -xf -cf -czf")
	programs := policy.GatheringPrograms()
	may := map[string]bool{"bash": true, "sh": true, "dash": true}
	for _, name := range programs {
		may[name] = true
	}
	if s.trace != "" { // without the sandbox the trace has both kinds
		s.run("/usr/bin/touch new; : > new; /usr/bin/mv new newer; rm newer; /usr/bin/rm newer")
		if wrong, _ := s.traced(may); len(wrong) != 8 { // four programs and four changes
			t.Fatalf("the trace shows %q", wrong)
		}
		_ = s.harm()
	}
	execs := 0
	rounds := testsize.Pick(1, 6, 60)
	ran := 0
	for range rounds {
		var batch []string
		for _, name := range programs {
			if testsize.Pick(1, 0, 0) == 1 && rnd.IntN(3) != 0 {
				continue
			}
			words := []string{name}
			for range 1 + rnd.IntN(6) {
				words = append(words, quote(pool[rnd.IntN(len(pool))]))
			}
			batch = append(batch, strings.Join(words, " ")+" </dev/null")
		}
		for group := range slices.Chunk(batch, 12) { // a sandbox costs more than most commands
			command := strings.Join(group, "\n")
			_, wrapped := s.judge(command)
			s.run(wrapped)
			ran += len(group)
			if harm := s.harm(); harm != "" {
				t.Errorf("one of these:\n%s\n\t%s", command, harm)
			}
			if s.trace != "" {
				wrong, n := s.traced(may)
				if execs += n; len(wrong) > 0 {
					t.Errorf("of these:\n%s\n\t%s", command, strings.Join(wrong, "\n\t"))
				}
			}
		}
	}
	t.Logf("%d commands ran, %d programs were executed", ran, execs)
}

// Where a command ends, the program's shell is afterwards; its exit code and streams are its own.
func TestConfinedCommandIsLikeAnyOther(t *testing.T) {
	s := newStage(t)
	s.patience = withResult
	for command, want := range map[string]string{
		"cd docs":                             "0 docs",
		"cd docs && false":                    "1 docs",
		"cd 'it'\"'\"'s' 2>/dev/null; ls x":   "0 repo",
		"exit 7":                              "7 repo",
		"cat <<'E'\nit's\nE":                  "0 repo",
		"kill -9 $$":                          "137 repo",
		"echo out; echo err >&2":              "0 repo",
		"read -r line; [ \"$line\" = given ]": "0 repo",
	} {
		_, wrapped := s.judge(command)
		said, _ := s.run("out=$(echo given | { " + wrapped + "\ncode=$?; echo; echo \"$code ${PWD##*/}\"; }); echo \"$out\" | tail -n 1")
		if !strings.HasSuffix(strings.TrimSpace(said), want) {
			t.Errorf("%q: %q, should end in %q", command, said, want)
		}
	}
}
