package shim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
)

// usurp adopts a session with an epoch, as a daemon does, and prints the result. alone does so in an orphan
// without environment.
func usurp(folder, epoch string, alone bool) {
	if alone {
		cmd := exec.Command("sh", "-c", `"$0" __agent usurp "$@" &`, os.Args[0], folder, epoch)
		cmd.Env = []string{runtimedir.Var + "=" + os.Getenv(runtimedir.Var)}
		out, err := cmd.CombinedOutput() // until the process in the background has closed it
		fmt.Printf("%s%v\n", out, err)
		return
	}
	fence, _ := strconv.ParseUint(epoch, 10, 64)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h, st, err := Adopt(ctx, folder, fence)
	if err == nil {
		h.Close()
	}
	fmt.Printf("usurped: %v %v\n", st.Phase, err)
}

// An agent that connects to a shim of its workspace or of another one is refused, whatever epoch it claims: its own shim and
// another session's, also from an orphan without environment.
func TestAgentIsNoDaemon(t *testing.T) {
	victim := t.TempDir()
	spec := agent(t, "hang")
	spec.Fence, spec.Workspace, spec.Session = 5, "/ws", "coder-1"
	h := start(t, victim, spec)
	lines(t, h, 1)
	for workspace, want := range map[string]string{
		"/ws":        "runs in session reviewer-1:",
		"/elsewhere": "runs in session reviewer-1 of another repository:",
	} {
		for name, args := range map[string][]string{"in its tree": nil, "left behind": {"alone"}} {
			for _, epoch := range []uint64{5, 6, 1 << 62, math.MaxUint64} {
				t.Run(fmt.Sprint(workspace, " ", name, " ", epoch), func(t *testing.T) {
					own := t.TempDir()
					spec := agent(t, append([]string{"usurp", victim, fmt.Sprint(epoch)}, args...)...)
					spec.Fence, spec.Workspace, spec.Session = 5, workspace, "reviewer-1"
					attacker := start(t, own, spec)
					done(t, attacker)
					if out := string(output(t, attacker, 0)); !strings.Contains(out, want) {
						t.Errorf("the agent was not refused: %s", out)
					}
				})
			}
		}
	}
	st, err := h.Status(t.Context())
	if err != nil || st.Fence != 5 {
		t.Fatalf("the daemon lost its session: %+v, %v", st, err)
	}
	ok(t, h.End(t.Context(), 0))
	done(t, h)
}

// A running shim refuses an epoch that no daemon can have reached, and goes on obeying its daemon.
func TestImplausibleEpoch(t *testing.T) {
	dir := t.TempDir()
	spec := agent(t, "hang")
	spec.Fence = 5
	h := start(t, dir, spec)
	lines(t, h, 1)
	for _, epoch := range []uint64{5 + epochJumpMax + 1, 1 << 62, math.MaxUint64} {
		_, _, err := Adopt(t.Context(), dir, epoch)
		if err == nil || errors.As(err, new(*Fenced)) || !strings.Contains(err.Error(), "is not a daemon's") {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
	if st, err := h.Status(t.Context()); err != nil || st.Fence != 5 {
		t.Fatalf("%+v, %v", st, err)
	}
	next, _, err := Adopt(t.Context(), dir, 5+epochJumpMax) // the greatest that is plausible
	ok(t, err)
	defer next.Close()
	ok(t, next.End(t.Context(), 0))
	done(t, next)
}

// A fence file that another program wrote does not lock the daemon out: neither of a session that is over nor
// of one whose shim is gone.
func TestForgedFenceFile(t *testing.T) {
	for name, mode := range map[string]string{"over": "exit", "never started": ""} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if mode != "" {
				spec := agent(t, mode, "0")
				spec.Fence = 5
				h := start(t, dir, spec)
				done(t, h)
				h.Close()
			}
			if err := os.WriteFile(filepath.Join(dir, fenceFile), []byte("18446744073709551615\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			h, st, err := Adopt(t.Context(), dir, 6)
			if err != nil || mode != "" && st.Phase != Exited {
				t.Fatalf("%+v, %v", st, err)
			}
			if h != nil {
				h.Close()
			}
		})
	}
}
