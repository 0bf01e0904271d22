package shim

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

func FuzzStat(f *testing.F) {
	own, _ := os.ReadFile("/proc/self/stat")
	f.Add(own)
	f.Add([]byte("7 (a) b) (c) Z 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	f.Add([]byte("7 () S"))
	f.Add([]byte(")("))
	f.Add([]byte("7 (a) S 1 (b) S 99 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	f.Add([]byte("7 (a\nb) Z -1"))
	f.Add([]byte("7 (a) S -1 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p, ok := parseStat(raw); ok && (p.PID <= 0 || p.parent < 0) {
			t.Fatalf("%+v", p)
		}
	})
}

func TestStat(t *testing.T) {
	p, ok := parseStat([]byte("7 (a) b) (c) Z 1 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	if !ok || p.PID != 7 || p.Command != "a) b) (c" || p.parent != 1 || p.group != 5 || p.Start != 99 || !p.zombie {
		t.Fatalf("%+v", p)
	}
	if self, ok := readProcess(os.Getpid()); !ok || self.parent != os.Getppid() || self.Start == 0 {
		t.Fatalf("%+v", self)
	}
}

// A name with a bracket in it moves nothing: a process chooses its own.
func TestForgedName(t *testing.T) {
	p, ok := parseStat([]byte("7 (x) S 1 1 (y) S 42 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0"))
	if !ok || p.parent != 42 || p.Start != 99 {
		t.Errorf("%+v, %v", p, ok)
	}
	if p, ok := parseStat([]byte("7 (x) S -1 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0")); ok {
		t.Errorf("a parent below 0: %+v", p)
	}
}

// A status counts the same tree as a scan of the whole table, without reading it.
func TestDescendants(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & sleep 60 & echo ready; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	pids := func(ps []Process) []int {
		var all []int
		for _, p := range ps {
			all = append(all, p.PID)
		}
		slices.Sort(all)
		return all
	}
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	got, want := pids(descendants(cmd.Process.Pid)), pids(below(all, cmd.Process.Pid))
	if len(want) != 2 || !slices.Equal(got, want) {
		t.Errorf("descendants are %v, the table has %v", got, want)
	}
	stat := []byte("7 (sleep) S 1 5 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 99 0 0")
	if n := testing.AllocsPerRun(100, func() { parseStat(stat) }); n > 1 {
		t.Errorf("%v objects for each process of the table; its name is one", n)
	}
}
