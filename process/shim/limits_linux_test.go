package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// eat takes n bytes, or n processes, of something.
func eat(what string, n int) {
	self, _ := os.Executable()
	must := func(err error) {
		if err != nil {
			fmt.Println("cannot eat:", err)
			os.Exit(1)
		}
	}
	fill := func(memory []byte, err error) {
		must(err)
		for at := 0; at < len(memory); at += 4096 {
			memory[at] = 1
		}
		kept = append(kept, memory)
	}
	switch what {
	case "heap":
		fill(make([]byte, n), nil)
	case "heaps": // of two processes
		must(exec.Command(self, "__agent", "eat", "heap", strconv.Itoa(n/2)).Start())
		fill(make([]byte, n/2), nil)
	case "mapped": // shared, without a file
		fill(unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS))
	case "shared": // by ten processes, all of which have all of its pages
		fd, err := unix.MemfdCreate("eaten", 0)
		must(err)
		must(unix.Ftruncate(fd, int64(n)))
		for range 9 {
			cmd := exec.Command(self, "__agent", "eat", "inherited", strconv.Itoa(n))
			cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(fd), "eaten")}
			out, err := cmd.StdoutPipe()
			must(err)
			must(cmd.Start())
			_, err = out.Read(make([]byte, 16))
			must(err)
		}
		fill(unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
	case "inherited":
		fill(unix.Mmap(3, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
	case "memfd": // that no process maps
		fd, err := unix.MemfdCreate("eaten", 0)
		must(err)
		f := os.NewFile(uintptr(fd), "eaten")
		_, err = f.Write(make([]byte, n))
		must(err)
		files = append(files, f)
	case "segment": // of System V, which no process has attached, and as much heap
		fill(make([]byte, n/2), nil)
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, n/2, 0o600)
		must(err)
		memory, err := unix.SysvShmAttach(id, 0, 0)
		fill(memory, err)
		must(unix.SysvShmDetach(memory))
	case "tmpfs", "run":
		dir := map[string]string{"tmpfs": "/dev/shm", "run": sandbox.RuntimeDir}[what]
		for i := range 4 {
			if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), make([]byte, n/4), 0o600); err != nil {
				break // the file system is full
			}
		}
	case "processes":
		for range n {
			if err := exec.Command("sleep", "3600").Start(); err != nil {
				fmt.Println("refused")
				break
			}
		}
	case "threads":
		for range n {
			go func() {
				runtime.LockOSThread()
				_ = unix.Nanosleep(&unix.Timespec{Sec: 3600}, nil)
			}()
		}
	case "flood": // of a disk, also when it is full
		f, err := os.Create("eaten")
		must(err)
		for {
			if _, err := f.Write(make([]byte, mib)); err != nil {
				wait.Pause(10 * time.Millisecond)
			}
		}
	case "spill":
		for {
			_, err := os.Stdout.Write(make([]byte, mib))
			must(err)
		}
	case "disk":
		must(os.WriteFile("eaten", make([]byte, n), 0o600))
	case "rewrite": // what is there is written again: nothing grows
		must(os.WriteFile("before", make([]byte, n), 0o600))
	case "deleted":
		f, err := os.Create("eaten")
		must(err)
		must(os.Remove("eaten"))
		_, err = f.Write(make([]byte, n))
		must(err)
		files = append(files, f)
	}
}

var (
	kept  [][]byte
	files []*os.File
)

// limited is an agent with limits.
func limited(t *testing.T, l spawn.Limits, args ...string) Spec {
	spec := agent(t, args...)
	spec.Launch.Limits = l
	return spec
}

// TestLimits: the session that reaches a limit ends, and says which; its neighbour with the same limits lives, and so does one that
// uses as much as the limit allows.
func TestLimits(t *testing.T) { testLimits(t, false) }

// TestLimitsInView is TestLimits in a view, which has file systems in memory and System V segments of its own.
func TestLimitsInView(t *testing.T) {
	needView(t)
	testLimits(t, true)
}

func testLimits(t *testing.T, view bool) {
	memory, processes := spawn.Limits{Memory: 96 * mib}, spawn.Limits{Processes: 60}
	for _, test := range []struct {
		name   string
		limits spawn.Limits
		eats   string
		n      int
		want   session.Limit // empty: it goes on
		inView bool
	}{
		{"a little heap", memory, "heap", 8 * mib, "", false},
		{"heap", memory, "heap", 160 * mib, session.LimitMemory, false},
		{"heap of two processes", memory, "heaps", 160 * mib, session.LimitMemory, false},
		{"shared memory", memory, "mapped", 160 * mib, session.LimitMemory, false},
		{"pages of ten processes", spawn.Limits{Memory: 288 * mib}, "shared", 64 * mib, "", false},
		{"memfd", memory, "memfd", 160 * mib, session.LimitMemory, false},
		{"segment", memory, "segment", 160 * mib, session.LimitMemory, true},
		{"/dev/shm", memory, "tmpfs", 160 * mib, session.LimitMemory, true},
		{"/run", memory, "run", 160 * mib, session.LimitMemory, true},
		{"a few processes", processes, "processes", 1, "", false},
		{"processes", processes, "processes", 120, session.LimitProcesses, false}, // where forks fail, it stays at the limit
		{"threads", processes, "threads", 120, session.LimitProcesses, false},
	} {
		held := view && os.Getuid() != 0                            // the kernel lets no more processes start
		if test.inView && !view || held && test.eats == "threads" { // a program in Go ends without its thread
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			beside := limited(t, test.limits, "hang")
			beside.Session = "t-2"
			neighbour := start(t, t.TempDir(), beside)
			eater := start(t, t.TempDir(), limited(t, test.limits, "eat", test.eats, strconv.Itoa(test.n)))
			if test.want == "" {
				lines(t, eater, 1)
				var st Status
				wait.Until(t, "a look after it has eaten", func() bool {
					var err error
					st, err = eater.Status(t.Context())
					return err != nil || st.Use.MemoryBytes >= min(int64(test.n), 8*mib) && st.Use.Processes > 1
				})
				if st.Phase != Running || st.Ending || test.limits.Memory > 0 && st.Use.MemoryBytes > test.limits.Memory {
					t.Fatalf("%+v: %s", st, output(t, eater, 0))
				}
				return
			}
			st := done(t, eater)
			if st.Exit == nil || st.Exit.Limit != test.want || st.Exit.Why != "" || st.Exit.OfTeam {
				t.Fatalf("%+v", st)
			}
			if refused := strings.Contains(string(output(t, eater, 0)), "refused"); held && test.eats == "processes" && !refused {
				t.Fatal("all its processes were started")
			}
			if use := st.Exit.Use; test.want == session.LimitMemory && use.MemoryBytes <= test.limits.Memory ||
				test.want == session.LimitProcesses && use.Processes < test.limits.Processes {
				t.Fatalf("%+v", use)
			}
			if st, err := neighbour.Status(t.Context()); err != nil || st.Phase != Running || st.Ending {
				t.Fatalf("its neighbour: %+v %v", st, err)
			}
		})
	}
}

// TestOutputLimit: at the limit of its output the session ends if that was said, and its exit counts what is kept.
func TestOutputLimit(t *testing.T) {
	spec := limited(t, spawn.Limits{Output: 100_000, EndAtOutput: true}, "line", "1000000")
	st := done(t, start(t, t.TempDir(), spec))
	if st.Exit == nil || st.Exit.Limit != session.LimitOutput || st.Exit.SpoolBytes != 100_000 {
		t.Fatalf("%+v", st)
	}
}

// TestEndAt: a session that ends for a limit of the team says so, and leaves nothing behind.
func TestEndAt(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "tree"))
	lines(t, h, 3)
	ok(t, h.EndAt(t.Context(), session.LimitDisk))
	if st := done(t, h); st.Exit == nil || st.Exit.Limit != session.LimitDisk || !st.Exit.OfTeam || st.Exit.Signal != "SIGKILL" {
		t.Fatalf("%+v", st)
	}
	ok(t, h.EndAt(t.Context(), session.LimitMemory)) // it has ended
}

// TestGrowth: what a session writes counts, and what was there before does not, nor what it writes again in its place.
func TestGrowth(t *testing.T) {
	for what, want := range map[string]int64{"disk": 8 * mib, "rewrite": 0, "deleted": 8 * mib} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			ok(t, os.WriteFile(filepath.Join(dir, "before"), make([]byte, 8*mib), 0o600))
			d := newDisk([]string{dir})
			d.begin(time.Now().Add(time.Second), func() bool { return false })
			t.Chdir(dir)
			eat(what, 8*mib)
			defer func() { // the other cases have it open, too
				for _, f := range files {
					f.Close()
				}
				files = nil
			}()
			got := d.walk(func() bool { return false })
			s := (&keeper{}).newSight()
			s.files([]string{"/proc/self"})
			for _, n := range s.gone {
				got += n
			}
			if got < want || got > want+mib {
				t.Fatalf("%d bytes, want %d", got, want)
			}
		})
	}
}

// TestWritable: the folders of a launch that count, each once.
func TestWritable(t *testing.T) {
	place := func(path, from string, access sandbox.Access) sandbox.Place {
		return sandbox.Place{Path: path, From: from, Access: access, Upper: map[bool]string{true: "/u"}[access == sandbox.Overlay]}
	}
	l := Spec{Launch: spawn.Launch{Dir: "/w", View: &sandbox.View{Home: "/own/home", Temp: "/own/tmp", Places: []sandbox.Place{
		place("/w", "", sandbox.Write), place("/w/a", "", sandbox.Write), place("/r", "", sandbox.Read), place("/c", "", sandbox.Overlay),
		place("/x", "/y", sandbox.Write), place("/own", "", sandbox.Hide),
	}}}}
	if got := strings.Join(writable(&l), " "); got != "/own/home /own/tmp /u /w /y" {
		t.Fatal(got)
	}
	l.Launch.View = nil
	if got := strings.Join(writable(&l), " "); got != "/w" {
		t.Fatal(got)
	}
}

// TestVictims: what an agent starts is what the kernel ends first when memory is short, and its shim is not.
func TestVictims(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "tree"))
	lines(t, h, 3)
	st, err := h.Status(t.Context())
	ok(t, err)
	scoreOf := func(pid int) string {
		score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		ok(t, err)
		return strings.TrimSpace(string(score))
	}
	if shim, own := scoreOf(st.ShimPID), scoreOf(os.Getpid()); shim != own {
		t.Errorf("the shim has %s, and what started it %s", shim, own)
	}
	all := descendants(st.ShimPID)
	if len(all) < 4 {
		t.Fatalf("%+v", all)
	}
	for _, p := range all {
		if score := scoreOf(p.PID); score != "1000" {
			t.Errorf("%+v has %s", p, score)
		}
	}
}

// TestSharedIn: the most that the shared memory of the machine can be.
func TestSharedIn(t *testing.T) {
	if got := sharedIn([]byte("MemTotal: 9 kB\nShmem:  10 kB\nSwapTotal: 8 kB\nSwapFree: 3 kB\n")); got != 15<<10 {
		t.Fatal(got)
	}
}
