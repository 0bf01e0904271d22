package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// needView makes the agents of a test run in a view.
func needView(t testing.TB) {
	t.Helper()
	if a := sandbox.Abilities(); a.By != sandbox.ByNamespaces {
		t.Skipf("there is no view here: %v", a.Why)
	}
	t.Setenv(viewVar, "1")
}

// TestInView runs tests of this package with agents in a view.
func TestInView(t *testing.T) {
	needView(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"StartOutputExit", TestStartOutputExit},
		{"OneFolderOneAgent", TestOneFolderOneAgent},
		{"NoSurvivor", TestNoSurvivor},
		{"LeftBehind", TestLeftBehind},
		{"ShedMark", TestShedMark},
		{"ShimKilled", TestShimKilled},
		{"Strays", TestStrays},
		{"ForkBomb", TestForkBomb},
		{"Deaf", TestDeaf},
		{"EndAgain", TestEndAgain},
		{"Interrupt", TestInterrupt},
		{"CrashAnywhere", TestCrashAnywhere},
		{"ShimStopped", TestShimStopped},
		{"DaemonKilled", TestDaemonKilled},
		{"DaemonKilledAtTheStart", TestDaemonKilledAtTheStart},
	} {
		t.Run(test.name, test.run)
	}
}

// outside returns the number outside of a process of a session that has a number inside.
func outside(t testing.TB, shim int, inside string) (pid int) {
	t.Helper()
	if !inView() {
		pid, _ = strconv.Atoi(inside)
		return pid
	}
	number, err := strconv.Atoi(inside)
	ok(t, err)
	wait.Until(t, "process "+inside+" is found", func() bool {
		pid = insideAs(descendants(shim), number).PID
		return pid != 0
	})
	return pid
}

// shell is a spec of a shell command.
func shell(t testing.TB, command string) Spec {
	spec := agent(t)
	spec.Launch.Argv = []string{"/bin/sh", "-c", command}
	return spec
}

// TestViewStatus: how the wall was made and what it does not hold is known to the daemon that starts a session, to one that
// adopts it, and to one that only looks.
func TestViewStatus(t *testing.T) {
	needView(t)
	h := start(t, t.TempDir(), agent(t, "hang"))
	lines(t, h, 1)
	st, err := h.Status(t.Context())
	ok(t, err)
	h2, adopted, err := Adopt(t.Context(), h.Folder(), 2)
	ok(t, err)
	defer h2.Close()
	look, err := Look(t.Context(), h.Folder())
	ok(t, err)
	for name, st := range map[string]Status{"begun": h.Begun(), "status": st, "adopted": adopted, "look": look.Status} {
		if st.Wall != sandbox.ByNamespaces || !slices.Contains(st.Unheld, sandbox.RowNetwork) || st.Children != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
	ok(t, h2.End(t.Context(), 0))
	done(t, h2)
}

// TestViewExit: the end of an agent is recorded as without a view, also where a process outlives it.
func TestViewExit(t *testing.T) {
	for command, want := range map[string]session.Exit{
		"exit 0":                        {},
		"exit 7":                        {Code: 7},
		"exit 137":                      {Code: 137},
		"kill -9 $$":                    {Code: -1, Signal: "SIGKILL"},
		"kill -USR1 $$":                 {Code: -1, Signal: "SIGUSR1"},
		"sleep 600 & exit 3":            {Code: 3, Swept: 1},
		"setsid sleep 600 & kill -9 $$": {Code: -1, Signal: "SIGKILL", Swept: 1},
	} {
		for _, view := range []string{"", "1"} {
			t.Run(command+"/view="+view, func(t *testing.T) {
				if view != "" {
					needView(t)
				}
				st := done(t, start(t, t.TempDir(), shell(t, command)))
				if e := *st.Exit; e.Code != want.Code || e.Signal != want.Signal || e.Swept != want.Swept || e.Ordered || st.AgentPID == 0 {
					t.Errorf("%+v, want %+v", e, want)
				}
			})
		}
	}
}

// TestViewFirstKilled: what is known of a session whose process 1 is killed is what is known of one whose program is.
func TestViewFirstKilled(t *testing.T) {
	needView(t)
	h := start(t, t.TempDir(), shell(t, "setsid sleep 600 & echo ready; wait"))
	lines(t, h, 1)
	st, err := h.Status(t.Context())
	ok(t, err)
	ok(t, syscall.Kill(st.AgentPID, syscall.SIGKILL)) // it is the child of the shim
	st = done(t, h)
	if e := *st.Exit; e.Code != -1 || e.Signal != "SIGKILL" || e.Ordered || st.Wall != sandbox.ByNamespaces ||
		!slices.Contains(st.Unheld, sandbox.RowNetwork) {
		t.Errorf("%+v %+v", st, e)
	}
	if got := string(output(t, h, 0)); got != "ready\n" {
		t.Errorf("its output is %q", got)
	}
	if left, err := Strays(t.Name()); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// TestViewGrace: what outlives an agent has its grace after an ordered end. SIGTERM and SIGINT reach it, and do not end
// process 1.
func TestViewGrace(t *testing.T) {
	needView(t)
	h := start(t, t.TempDir(),
		shell(t, `trap "exit 5" TERM; (trap "sleep 0.2; echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done) & wait`))
	lines(t, h, 1)
	ok(t, h.End(t.Context(), time.Minute))
	st := done(t, h)
	if got := string(output(t, h, 0)); !strings.HasSuffix(got, "saved\n") || st.Exit.Code != 5 || st.Exit.Swept != 0 {
		t.Errorf("%q %+v", got, st.Exit)
	}
}

// TestViewCannotStart: what keeps an agent from its view, or from its program in it, is recorded, and nothing is left.
func TestViewCannotStart(t *testing.T) {
	needView(t)
	for want, change := range map[string]func(*Spec){
		`no program "no-such-agent" in PATH`: func(s *Spec) { s.Launch.Argv = []string{"no-such-agent"} },
		"does not hold \"network\"":          func(s *Spec) { s.Launch.View.Required = []sandbox.Row{sandbox.RowNetwork} },
		"cannot be a place of a view": func(s *Spec) {
			s.Launch.View.Places = append(s.Launch.View.Places, sandbox.Place{Path: "/proc/1", Access: sandbox.Read})
		},
		"home: no such file or directory": func(s *Spec) { s.Launch.View.Home = "/no/such/home" },
		"make /no/such/place/below for a view": func(s *Spec) {
			s.Launch.View.Places = append(s.Launch.View.Places, sandbox.Place{Path: "/no/such/place/below", Access: sandbox.Read, Make: true})
		},
	} {
		t.Run(want, func(t *testing.T) {
			dir, spec := t.TempDir(), agent(t, "hang")
			if change(&spec); strings.HasPrefix(want, "make") { // a folder cannot be made in a file
				file := filepath.Join(filepath.Dir(dir), "file")
				ok(t, os.WriteFile(file, nil, 0o600))
				spec.Launch.View.Places[len(spec.Launch.View.Places)-1].Path = filepath.Join(file, "below")
				want = "make " + filepath.Join(file, "below")
			}
			for range 2 { // the second time from the record
				var cannot *spawn.CannotStart
				if _, err := Start(t.Context(), dir, spec); !errors.As(err, &cannot) ||
					!strings.Contains(err.Error(), strings.TrimPrefix(want, "home: ")) {
					t.Errorf("%v, want %q", err, want)
				}
			}
			noSurvivor(t, dir)
		})
	}
}

// TestViewTerminal: a terminal inside has its size, its job control and its Ctrl-C, and the interrupt reaches the program.
func TestViewTerminal(t *testing.T) {
	needView(t)
	spec := agent(t)
	spec.Launch.Argv, spec.PTY, spec.Launch.KeepStdin = []string{"/bin/bash", "--norc", "--noprofile", "-i"}, true, true
	spec.Launch.Env = append(spec.Launch.Env, "PS1=", "HISTFILE=")
	h := start(t, t.TempDir(), spec)
	r, err := h.Output(t.Context(), 0)
	ok(t, err)
	defer r.Close()
	var seen []byte
	at, offset := 0, int64(0)
	say := func(text, want string) {
		t.Helper()
		ok(t, h.Send(t.Context(), offset, []byte(text)))
		offset += int64(len(text))
		buf := make([]byte, 4096)
		for !strings.Contains(string(seen[at:]), want) {
			n, err := r.Read(buf)
			if err != nil {
				t.Fatalf("%v after %q, %q was said and %q is missing", err, seen, text, want)
			}
			seen = append(seen, buf[:n]...)
		}
		at += strings.Index(string(seen[at:]), want) + len(want)
	}
	say("stty size\n", "24 80\r\n")
	say("echo t''ty > /dev/tty\n", "tty\r\n")
	say("tty\n", "/dev/console\r\n") // the terminals inside are others, so it has a name of its own
	say("echo na''med > $(tty); echo again=$?\n", "named\r\nagain=0\r\n")
	say("echo st''ream > /dev/stdout; echo again=$?\n", "stream\r\nagain=0\r\n")
	say("sh -c 'echo u''p; exec sleep 600'\n", "up\r\n") // then it has the terminal
	say("\x03", "^C")
	say("echo after=$?\n", "after=130")
	say("sh -c 'trap \"echo caught\" INT; echo rea''dy; while :; do sleep 0.05; done'\n", "ready\r\n")
	ok(t, h.Interrupt(t.Context())) // the group of bash, which ignores it
	say("\x03", "caught")
	say("\x1a", "Stopped")
	say("exec sh -c 'exit 9'\n", "9") // exit would ask about the stopped job
	if st := done(t, h); st.Exit.Code != 9 {
		t.Errorf("%+v", st.Exit)
	}
}

// TestViewIdentity: a process inside is known as the session's, by its numbers outside; so are its port and its processor time.
func TestViewIdentity(t *testing.T) {
	needView(t)
	spec := agent(t, "listen")
	spec.Launch.Ports, spec.Launch.PortsFor = 1, t.Name()
	spec.Session = "t-2"
	h := start(t, t.TempDir(), spec)
	said := strings.Fields(lines(t, h, 1)[0]) // its number inside, and its port
	st, err := h.Status(t.Context())
	ok(t, err)
	pid := outside(t, st.ShimPID, said[0])
	if session, is := SessionOf(spec.Workspace, pid); !is || session != "t-2" {
		t.Errorf("process %d is of session %q", pid, session)
	}
	if is := Caller(spec.Workspace, pid); is.Session != "t-2" || is.Unseen {
		t.Errorf("as a caller: %+v", is)
	}
	if len(st.Ports) != 1 || strconv.Itoa(st.Ports[0]) != said[1] {
		t.Errorf("it listens at %s, and leases %v", said[1], st.Ports)
	}
	c, err := net.Dial("tcp", "127.0.0.1:"+said[1])
	ok(t, err)
	c.Close()
	wait.Until(t, "its processor time is known", func() bool { used, known := ProcessorTime(st.AgentPID); return known && used > 0 })
	if s, err := Strays(spec.Workspace); err != nil || len(s) != 0 {
		t.Errorf("%v %v", s, err)
	}
}

// TestViewReapsAll: of thousands of processes that are forked twice no zombie is left, neither inside nor below the shim.
func TestViewReapsAll(t *testing.T) {
	needView(t)
	orphans := strconv.Itoa(testsize.Pick(2_000, 10_000, 10_000))
	h := start(t, t.TempDir(), shell(t, "i=0; while [ $i -lt "+orphans+" ]; do (: &); i=$((i+1)); done; echo ready; exec sleep 600"))
	lines(t, h, 1)
	st, err := h.Status(t.Context())
	ok(t, err)
	wait.Until(t, "only process 1 and the agent are left", func() bool {
		all, err := processes()
		if err != nil {
			return false
		}
		n := 0
		for _, p := range all { // zombies too
			if p.parent == st.ShimPID || p.parent == st.AgentPID {
				n++
			}
		}
		return n == 2
	})
}

// treeOf lists names, modes and times below a folder.
func treeOf(t testing.TB, folder string) (all []string) {
	t.Helper()
	ok(t, filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all = append(all, fmt.Sprint(p, info.Mode(), info.ModTime().UnixNano()))
		}
		return err
	}))
	return all
}

// TestViewPoints: a folder that a view needs is there while a session uses it, and gone with the last one, with the names, modes
// and times around as before; also after a kill of everything.
func TestViewPoints(t *testing.T) {
	needView(t)
	for name, end := range map[string]func(t *testing.T, h *Handle, st Status){
		"ended": func(t *testing.T, h *Handle, _ Status) { ok(t, h.End(t.Context(), 0)) },
		"the agent is killed": func(t *testing.T, _ *Handle, st Status) {
			ok(t, syscall.Kill(st.AgentPID, syscall.SIGKILL))
		},
		"all is killed": func(t *testing.T, h *Handle, st Status) {
			ok(t, h.Close())
			ok(t, syscall.Kill(st.ShimPID, syscall.SIGKILL))
			wait.Until(t, "its process 1 is gone", func() bool { return !alive(st.AgentPID, st.StartTime) })
			_, st, err := Adopt(t.Context(), h.Folder(), 2)
			if err != nil || st.Phase != Lost {
				t.Fatalf("%+v %v", st, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			work, sessions := t.TempDir(), t.TempDir()
			ok(t, os.Mkdir(filepath.Join(work, "persons"), 0o700))
			ok(t, os.Chtimes(work, time.Unix(1, 0), time.Unix(2, 5)))
			before := treeOf(t, work)
			places := []sandbox.Place{
				{Path: work, Access: sandbox.Write},
				{Path: filepath.Join(work, "made", "below"), Access: sandbox.Read, Make: true},
				{Path: filepath.Join(work, "persons"), Access: sandbox.Read, Make: true},
			}
			var handles []*Handle
			for _, session := range []string{"t-1", "t-2"} {
				spec := shell(t, "echo > "+work+"/made/below/x; mkdir "+work+"/made/y; echo ready; exec sleep 600")
				spec.Session, spec.Launch.View.Places = session, append(spec.Launch.View.Places, places...)
				h, err := Start(t.Context(), filepath.Join(sessions, session), spec)
				ok(t, err)
				defer h.Close()
				if got := lines(t, h, 2); !strings.Contains(got[0], "Read-only") {
					t.Fatalf("%q", got)
				}
				ok(t, os.RemoveAll(filepath.Join(work, "made", "y")))
				handles = append(handles, h)
			}
			for i, h := range handles {
				st, err := h.Status(t.Context())
				ok(t, err)
				end(t, h, st)
				if name != "all is killed" {
					done(t, h)
				}
				_, gone := os.Lstat(filepath.Join(work, "made"))
				if last := i == len(handles)-1; errors.Is(gone, fs.ErrNotExist) != last {
					t.Errorf("after the end of session %d: %v", i+1, gone)
				}
			}
			ok(t, os.Chtimes(work, time.Unix(1, 0), time.Unix(2, 5))) // the agents have written there
			if after := treeOf(t, work); !slices.Equal(before, after) {
				t.Errorf("%q, was %q", after, before)
			}
		})
	}
}
