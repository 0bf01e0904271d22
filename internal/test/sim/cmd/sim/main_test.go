package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/sim"
)

// The test binary is executed again as the command: [sim.Play] starts a test of its
// own and cannot run inside a test.
func TestMain(m *testing.M) {
	if os.Getenv("SIM_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), "SIM_MAIN=1", "TMPDIR="+t.TempDir())
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), log.String(), cmd.ProcessState.ExitCode()
}

func TestOneDayPrintsItsTrace(t *testing.T) {
	out, log, code := command(t, "--seed", "1", "--steps", "20")
	if code != 0 || !strings.Contains(out, "start") || !strings.Contains(out, "seed 1: every promise held") ||
		strings.Contains(out, "PASS") {
		t.Errorf("exit code %d\n%s%s", code, out, log)
	}
}

func TestOneDayAsJSON(t *testing.T) {
	out, log, code := command(t, "--seed", "1", "--steps", "20", "--json")
	var r sim.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Seed != 1 || len(r.Trace) == 0 {
		t.Errorf("exit code %d, %v\n%s%s", code, err, out, log)
	}
}

func TestManyDaysPrintOneLine(t *testing.T) {
	out, log, code := command(t, "--runs", "2", "--steps", "5")
	if code != 0 || out != "2 days from seed 0 on: every promise held\n" {
		t.Errorf("exit code %d\n%s%s", code, out, log)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"--steps", "0"}, {"--runs", "0"}, {"surplus"}} {
		if _, log, code := command(t, args...); code != 2 || !strings.Contains(log, "from 1 on") {
			t.Errorf("%q: exit code %d, %s", args, code, log)
		}
	}
}
