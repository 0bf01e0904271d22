package shim

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

func TestMain(m *testing.M) {
	Intercept()
	if len(os.Args) > 2 && os.Args[1] == "__agent" {
		agentMain(os.Args[2], os.Args[3:])
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "__daemon" {
		daemonMain(os.Args[2], os.Args[3:])
		return
	}
	dir, err := os.MkdirTemp("", "fl") // for sockets that no other test uses
	if err != nil {
		panic(err)
	}
	os.Setenv(runtimedir.Var, dir)
	os.Setenv("GORACE", "atexit_sleep_ms=0") // every shim and agent here would wait a second at its end
	code := leaktest.Main(m)
	os.RemoveAll(dir)
	os.Exit(code)
}

// agentMain is what the tests start as an agent.
func agentMain(mode string, args []string) {
	switch mode {
	case "exit":
		n, _ := strconv.Atoi(args[0])
		os.Exit(n)
	case "usurp": // acts as a daemon: its shim's folder, the epoch that it claims, and "alone" to leave its tree first
		usurp(args[0], args[1], len(args) > 2)
	case "compact":
		compactAndDie(args[0], args[1])
	case "bytes": // so many bytes of a known stream
		n, _ := strconv.ParseInt(args[0], 10, 64)
		io.CopyN(os.Stdout, stream(), n)
	case "line":
		n, _ := strconv.Atoi(args[0])
		os.Stdout.Write(append(bytes.Repeat([]byte{'x'}, n), '\n'))
	case "ports": // the leased ports, one a line
		for n := 1; os.Getenv(portVar+strconv.Itoa(n)) != ""; n++ {
			fmt.Println(os.Getenv(portVar + strconv.Itoa(n)))
		}
		forever()
	case "listen": // at its port, after some work
		listens()
	case "cat":
		io.Copy(os.Stdout, os.Stdin)
	case "count": // numbered lines until told to stop
		i := 0
		for ; ; wait.Pause(200 * time.Microsecond) {
			fmt.Println("line", i)
			i++
		}
	case "deaf": // ignores what it can
		ignoreTerm()
		fmt.Println("ready")
		forever()
	case "costs":
		costs(args[0])
	case "hang":
		fmt.Println("ready")
		forever()
	case "note": // records in a file that it ran; a second run writes a second line
		f, _ := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintln(f, os.Getpid())
		f.Close()
		fmt.Println("ready")
		forever()
	case "tree": // a child, one with its own session, and one forked twice
		self, _ := os.Executable()
		for _, how := range []string{"child", "setsid", "double"} {
			cmd := exec.Command(self, "__agent", "leaf", how)
			cmd.Stdout = os.Stdout
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: how != "child"}
			if err := cmd.Start(); err != nil {
				panic(err)
			}
			if how == "double" {
				cmd.Wait() // its parent ends at once, so that it is an orphan
			}
		}
		if len(args) > 0 && args[0] == "leave" {
			return
		}
		forever()
	case "leaf":
		if args[0] == "double" {
			self, _ := os.Executable()
			cmd := exec.Command(self, "__agent", "leaf", "orphan")
			cmd.Stdout = os.Stdout
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				panic(err)
			}
			return
		}
		ignoreTerm()
		fmt.Println("leaf", args[0], os.Getpid())
		forever()
	case "shed": // an orphan in a session of its own that forgot every mark
		self, _ := os.Executable()
		cmd := exec.Command(self, "__agent", "leaf", "double")
		cmd.Env, cmd.Stdout = []string{"GORACE=atexit_sleep_ms=0"}, os.Stdout
		if err := cmd.Run(); err != nil {
			panic(err)
		}
		forever()
	case "bomb": // forks without end
		self, _ := os.Executable()
		fmt.Println("ready")
		for range 40 {
			cmd := exec.Command(self, "__agent", "bomb")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if cmd.Start() == nil {
				return
			}
		}
	}
}

// listens listens at the first leased port, after some work.
func listens() {
	for used := time.Duration(0); used < 30*time.Millisecond; { // of the processor: on a busy machine, other programs have the rest
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			panic(err)
		}
		used = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv(portVar+"1"))
	if err != nil {
		panic(err)
	}
	fmt.Println(os.Getpid(), os.Getenv(portVar+"1"))
	for {
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
	}
}

// daemonMain is a daemon that a test may kill: it starts an agent, says so, and hangs.
func daemonMain(folder string, argv []string) {
	_, err := Start(context.Background(), folder,
		Spec{Session: "t-1", Workspace: folder, Fence: 1, Launch: spawn.Launch{Argv: argv, Env: os.Environ(), View: viewOf(folder)}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	forever()
}

// forever is not select{}: the runtime would call that a deadlock.
func forever() { wait.Pause(time.Hour) }

func stream() io.Reader { return rand.NewChaCha8([32]byte{7}) }

func self(t testing.TB) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func agent(t testing.TB, args ...string) Spec {
	return Spec{
		Session: "t-1", Workspace: t.Name(), Fence: 1, Grace: 5 * time.Second,
		Launch: spawn.Launch{
			Argv: append([]string{self(t), "__agent"}, args...), Env: os.Environ(), View: viewOf(t.TempDir()),
		},
	}
}

// costs runs an agent in a folder as a shim does, and prints how often it synced and read the process table.
func costs(folder string) {
	n, looks := 0, 0
	fsync = func(f *os.File) error { n++; return f.Sync() }
	processTable = func() ([]Process, error) { looks++; return processes() }
	s := Spec{Session: "t-1", Fence: 1, Launch: spawn.Launch{Argv: []string{"/bin/sleep", "3600"}}}
	k := &keeper{folder: folder, peers: map[*peer]bool{}, sooner: make(chan struct{}, 1)}
	err := k.start(&s)
	started := n
	_ = k.end(0)
	<-k.ended
	k.sweep()
	k.bury()
	fmt.Println(started, n-started, looks, err)
}

func start(t testing.TB, folder string, s Spec) *Handle {
	t.Helper()
	h, err := Start(t.Context(), folder, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.End(context.Background(), 0)
		h.Close()
		noSurvivor(t, folder)
	})
	return h
}

// patience is a bound for the hopeless case, on machines with much other work.
const patience = 2 * time.Minute

func done(t testing.TB, h *Handle) Status {
	t.Helper()
	select {
	case <-h.Done():
	case <-time.After(patience):
		st, err := h.Status(context.Background())
		t.Fatalf("not done: %+v %v", st, err)
	}
	st, err := h.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func output(t testing.TB, h *Handle, offset int64) []byte {
	t.Helper()
	r, err := h.Output(t.Context(), offset)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lines reads n lines of output.
func lines(t testing.TB, h *Handle, n int) []string {
	t.Helper()
	r, err := h.Output(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := readLines(r, n)
	if len(got) < n {
		t.Fatalf("only %d lines: %q", len(got), got)
	}
	return got
}

// readLines reads n lines, or fewer if the agent ends before.
func readLines(r io.Reader, n int) (got []string) {
	for s := bufio.NewScanner(r); len(got) < n && s.Scan(); {
		got = append(got, s.Text())
	}
	return got
}

// noSurvivor proves that no process carries the mark of the session in folder.
func noSurvivor(t testing.TB, folder string) {
	t.Helper()
	r, err := readAgent(folder)
	if err != nil || r == nil {
		return
	}
	wait.Until(t, "the shim is gone", func() bool { return !alive(r.ShimPID, r.ShimStart) })
	wait.Until(t, "the tree is gone", func() bool {
		all, err := processes()
		return err == nil && len(marked(all, r.Mark, 0)) == 0 && !alive(r.AgentPID, r.AgentStart)
	})
}

func TestStartOutputExit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s", "t-1")
	spec := agent(t, "cat")
	spec.Launch.Input = []byte("hello\n")
	h := start(t, dir, spec)
	if got := string(output(t, h, 0)); got != "hello\n" {
		t.Fatalf("output %q", got)
	}
	st := done(t, h)
	if st.Phase != Exited || st.Exit == nil || st.Exit.Code != 0 || st.SpoolBytes != 6 || st.AgentPID == 0 || st.BootID == "" ||
		st.StartTime == 0 {
		t.Fatalf("%+v", st)
	}
	if !st.Holds.ParentDeath || !st.Holds.Subreaper || !st.Holds.Mark {
		t.Fatalf("%+v", st.Holds)
	}
	if err := h.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	h2, st2, err := Adopt(t.Context(), dir, 2)
	if err != nil || st2.Phase != Exited || !st2.Acked || st2.Exit.Code != 0 {
		t.Fatalf("%+v %v", st2, err)
	}
	if got := string(output(t, h2, 2)); got != "llo\n" {
		t.Fatalf("output %q", got)
	}
	if _, err := Start(t.Context(), dir, spec); !errors.As(err, new(*spawn.AlreadyStarted)) && !errors.As(err, new(*Fenced)) {
		t.Fatal(err)
	}
	r, err := Output(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(r); string(got) != "ello\n" {
		t.Fatalf("%q", got)
	}
	r.Close()
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
