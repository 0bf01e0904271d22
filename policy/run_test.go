package policy_test

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/policy/policytest"
)

const commandTimeMax = 2 * time.Minute // for a loaded machine; each needs some milliseconds

// Every command that MAIN may run is really run, one after the other, and nothing on disk may change: no
// file, no mode, no change time, not in .git either (D8). A program that is not installed changes nothing,
// and is counted.
func TestAllowedCommandsChangeNothing(t *testing.T) {
	scene := policytest.Build(t)
	disk := policytest.Real()
	var ran, missing int
	before := treeOf(t, scene.Root)
	for _, c := range policytest.Calls(t) {
		command := c.Command(scene)
		if !c.Main || c.Verdict != "allow" || command == "" {
			continue
		}
		judgeAll(t, []policytest.Case{c}, scene, disk)
		out := runShell(t, scene, command)
		if strings.Contains(out, "command not found") {
			missing++
		}
		ran++
		after := treeOf(t, scene.Root)
		if diff := differences(before, after); diff != "" {
			t.Errorf("calls.txt:%d: %s\n\tchanged what is on disk:\n%s\n\tit said: %s", c.Line, c.Text, diff, out)
			before = after
		}
	}
	if ran < 100 {
		t.Errorf("only %d commands were run; the table should hold more that MAIN may give", ran)
	}
	t.Logf("%d commands ran, %d of them met a program that is not installed", ran, missing)
}

// The whole table again, on a real disk with a real repository.
func TestCallsOnRealDisk(t *testing.T) {
	scene := policytest.Build(t)
	judgeAll(t, policytest.Calls(t), scene, policytest.Real())
}

func runShell(t *testing.T, scene policytest.Scene, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = scene.Repo, scene.Env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("%s: did not end: %v", command, err)
	}
	return string(out)
}

// treeOf describes everything below a folder, so that any change shows. The kernel sets the change time
// (ctime), and no program can set it back, so content need not be read.
func treeOf(t *testing.T, root string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(p, &stat); err != nil {
			return fmt.Errorf("stat %s: %w", p, err)
		}
		tree[p] = fmt.Sprintf("inode %d, mode %o, %d bytes, written %d.%09d, changed %d.%09d", stat.Ino, stat.Mode, stat.Size,
			stat.Mtim.Sec, stat.Mtim.Nsec, stat.Ctim.Sec, stat.Ctim.Nsec)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func differences(before, after map[string]string) string {
	var b strings.Builder
	for p, said := range after {
		if before[p] != said {
			fmt.Fprintf(&b, "\t%s: %s, was %s\n", p, said, before[p])
		}
	}
	for p := range before {
		if _, ok := after[p]; !ok {
			fmt.Fprintf(&b, "\t%s: gone\n", p)
		}
	}
	return b.String()
}
