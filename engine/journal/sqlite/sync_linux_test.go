package sqlite

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSyncedBeforeAnswered looks at the system calls of a process that appends: between what
// it writes into the log and its answer there is a sync of the log. A kill cannot show that,
// since what was written and not synced outlives it.
func TestSyncedBeforeAnswered(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("strace is not installed; it shows whether an append is synced")
		}
		t.Skip("strace is not installed: apt-get install strace")
	}
	const answersWanted = 50
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "calls")
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-y", "-e", "trace=pwrite64,write,fsync,fdatasync", "-o", calls, exe)
	cmd.Env = append(os.Environ(), writerEnv+"="+filepath.Join(dir, "journal.db"))
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	n := 0
	for n < answersWanted && lines.Scan() {
		n++
	}
	if err := said.Close(); err != nil { // the next answer ends the process and is not delivered
		t.Error(err)
	}
	out := cmd.Wait()
	if n < answersWanted {
		t.Skipf("it cannot be looked at here: %v", out)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	checkSyncs(t, string(text), answersWanted)
}

var (
	callLine    = regexp.MustCompile(`^(\d+)\s+(\w+)\(\d+<([^>]*)>`)
	resumedLine = regexp.MustCompile(`^(\d+)\s+<\.\.\. (\w+) resumed>`)
)

func checkSyncs(t *testing.T, calls string, wanted int) {
	t.Helper()
	dirty, syncing := false, map[string]bool{} // threads that are in a sync of the log
	answers, syncs := 0, 0
	for line := range strings.Lines(calls) {
		if m := resumedLine.FindStringSubmatch(line); m != nil {
			if syncing[m[1]] {
				delete(syncing, m[1])
				dirty, syncs = false, syncs+1
			}
			continue
		}
		m := callLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		log := strings.HasSuffix(m[3], "journal.db-wal")
		switch under := strings.Contains(line, "<unfinished"); {
		case log && m[2] == "pwrite64":
			dirty = true
		case log && under:
			syncing[m[1]] = true
		case log:
			dirty, syncs = false, syncs+1
		case m[2] == "write" && strings.HasPrefix(m[3], "pipe:") && answers < wanted:
			answers++
			if dirty {
				t.Fatalf("answer %d was given, and what was written into the log before it is not synced", answers)
			}
		}
	}
	t.Logf("%d answers, %d syncs of the log", answers, syncs)
	if answers < wanted || syncs < wanted {
		t.Errorf("%d answers and %d syncs were seen, want %d of each at least", answers, syncs, wanted)
	}
}
