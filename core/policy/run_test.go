package policy_test

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

const commandTimeMax = 2 * time.Minute // for a loaded machine; each needs some milliseconds

// Every command that MAIN may run without a kernel sandbox is really run, one after the other, and nothing on
// disk may change: no file, no mode, no change time, not in .git either (D8). A program that is not installed
// changes nothing, and is counted. Package sandbox runs the others, in the sandbox.
func TestAllowedCommandsChangeNothing(t *testing.T) {
	scene := policytest.Build(t)
	disk := dispatchfolder.Disk{}
	var ran, missing int
	before := policytest.TreeOf(t, scene.Root)
	for _, c := range policytest.Calls(t) {
		command := c.Command(scene)
		c.Plain = true
		if !c.Main || command == "" || !policy.Judge(c.Rules(), c.Main, c.Call(scene), c.Where(scene), disk).Allow {
			continue
		}
		if c.Attempt {
			t.Errorf("calls.txt:%d: %s: is allowed without a sandbox, and is an attempt", c.Line, c.Text)
			continue
		}
		out := runShell(t, scene, command)
		if strings.Contains(out, "command not found") {
			missing++
		}
		ran++
		after := policytest.TreeOf(t, scene.Root)
		if diff := policytest.Differences(before, after); diff != "" {
			t.Errorf("calls.txt:%d: %s\n\tchanged what is on disk:\n%s\n\tit said: %s", c.Line, c.Text, diff, out)
			before = after
		}
	}
	if ran < 100 {
		t.Errorf("only %d commands were run; the table should hold more that MAIN may give", ran)
	}
	t.Logf("%d commands ran, %d of them met a program that is not installed", ran, missing)
}

// endless calls never end, and are stopped after a moment.
var endless = regexp.MustCompile(`^tail .*(-f|--follow)|/dev/zero|cat zero|cat pipe`)

func runShell(t *testing.T, scene policytest.Scene, command string) string {
	t.Helper()
	patience := commandTimeMax
	if endless.MatchString(command) {
		patience = 200 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = scene.Repo, scene.Env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil && patience == commandTimeMax {
		t.Errorf("%s: did not end: %v", command, err)
	}
	return string(out)
}
