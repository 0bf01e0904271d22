package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
)

const writerEnv = "FAIRLEAD_TEST_JOURNAL_WRITER" // set: this process appends to that file until it is killed

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		os.Exit(appendForEver(path))
	}
	if how := os.Getenv(compactEnv); how != "" {
		os.Exit(compactAndDie(how))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // every program here would wait a second at its end
	os.Exit(leaktest.Main(m))
}

// appendForEver says each batch's last seq after Append returned.
func appendForEver(path string) int {
	ctx := context.Background()
	j, err := Open(ctx, path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for n := 1; ; n++ {
		last, err := j.Append(ctx, journaltest.MadeBatch(n%7+1))
		if err != nil {
			fmt.Fprintln(os.Stderr, errors.Join(err, j.Close()))
			return 1
		}
		fmt.Println(last)
	}
}

// TestKilled kills a process while it appends, several times on one file, while a handle
// here reads and appends too. What it had said is there, batches are whole, the
// chain holds.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	here := opened(t, path)
	for round := range 4 {
		said := killedAfter(t, path, 20+round*7)
		if _, err := here.Append(t.Context(), journaltest.MadeBatch(2)); err != nil {
			t.Fatal(err)
		}
		if seq, _, err := here.Head(t.Context()); err != nil || seq < said+2 {
			t.Errorf("head is %d (%v), but %d was said to be stored", seq, err, said)
		}
		if err := journal.Verify(t.Context(), here); err != nil {
			t.Error(err)
		}
	}
	if found := Check(t.Context(), path); !healthy(found) {
		t.Errorf("%+v", found)
	}
}

// killedAfter runs a writer, kills it after some batches, and gives the last seq it said.
func killedAfter(t *testing.T, path string, batches int) (said uint64) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), writerEnv+"="+path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for n := 0; ; n++ {
		if n == batches {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if said, err = strconv.ParseUint(strings.TrimSpace(line), 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
		t.Errorf("the writer was to be killed: %v %s", err, stderr.String())
	}
	return said
}
