package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli/doctor"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/read/view"
)

func needSandbox(t testing.TB) {
	t.Helper()
	if _, why := sandbox.Supported(); why != "" {
		t.Skip("skipped, the kernel has no sandbox: ", why)
	}
}

func TestDoctorLooksAtTheSandbox(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	if f := doctor.LookAtSandbox(t.Context()); !f.OK || f.About != "sandbox" || !strings.Contains(f.What, "tried just now") {
		t.Errorf("%+v", f)
	}
}

// roamer leaves a child in a session of its own behind, tries to write where it may not, says who
// it is, and waits to be ended.
const roamer = `setsid sleep 3600 &
echo > outside
echo $$ $! "$FAIRLEAD_MARK" > "$1/said"
wait
`

// TestSandboxUnderTheShim: what a shim promises of an agent's tree holds for a sandboxed one.
func TestSandboxUnderTheShim(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	for name, end := range map[string]func(h *shim.Handle, st shim.Status){
		"ended":              func(h *shim.Handle, _ shim.Status) { _ = h.End(t.Context(), 50*time.Millisecond) },
		"the shim is killed": func(_ *shim.Handle, st shim.Status) { _ = syscall.Kill(st.ShimPID, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			in := filepath.Join(dir, "in")
			if err := os.Mkdir(in, 0o700); err != nil {
				t.Fatal(err)
			}
			argv := held(t, program, []string{"/bin/sh", "-c", roamer, "sh", in},
				sandbox.View{Places: []sandbox.Place{{Path: dir, Access: sandbox.Read}, {Path: in, Access: sandbox.Write}}})
			h, err := shim.Start(t.Context(), filepath.Join(dir, "session"), shim.Spec{
				Session: "coder-17", Workspace: dir, Fence: 1,
				Launch: spawn.Launch{Argv: argv, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			var pid, child int
			var mark string
			wait.Until(t, "it has said who it is", func() bool {
				b, _ := os.ReadFile(filepath.Join(in, "said"))
				n, _ := fmt.Sscan(string(b), &pid, &child, &mark)
				return n == 3
			})
			st, err := h.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if st.AgentPID != pid || !strings.HasSuffix(mark, ".coder-17") {
				t.Errorf("the shim knows it as %d, it is %d and has the mark %q", st.AgentPID, pid, mark)
			}
			for _, p := range []int{pid, child} {
				if session, ok := shim.SessionOf(dir, p); !ok || session != "coder-17" {
					t.Errorf("process %d is in session %q, %v", p, session, ok)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "outside")); err == nil {
				t.Error("it wrote outside")
			}
			end(h, st)
			<-h.Done() // with the parent-death signal, where the shim was killed
			for _, p := range []int{pid, child} {
				if _, _, lives := shim.Lineage(p); lives {
					t.Errorf("process %d survived", p)
				}
			}
		})
	}
}

// X10: the daemon identifies the caller on its socket in a sandbox too; without Sockets, a sandboxed program
// cannot connect.
func TestSandboxedClimber(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const ask = `for what in unhold "start ada" "down --now" ps; do env -i XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" "$1" $what --dir .. >> words 2>&1; echo "$what: $?" >> codes; done`
	agent := func(name string, sockets ...string) string {
		view := sandbox.View{Sockets: sockets, Places: []sandbox.Place{
			{Path: dir, Access: sandbox.Read},
			{Path: filepath.Dir(program), Access: sandbox.Read},
			{Path: filepath.Join(dir, name), Access: sandbox.Write},
		}}
		return fmt.Sprintf("  %s: {driver: exec, workspace: %s, command: [%s]}\n", name, name,
			quoted(held(t, program, []string{"sh", "../ask.sh", program}, view)))
	}
	s := newRigIn(t, dir, map[string]string{
		"ask.sh": ask, "ada/.keep": "", "bob/.keep": "",
		"fairlead.yaml": "version: 1\nagents:\n" + agent("ada", "/run/fairlead") + agent("bob"),
	})
	for _, name := range []string{"ada", "bob"} {
		s.must("once", name)
		s.until(name, "it rests again", func(v view.WhyView) bool { return v.Agent.Session == nil && len(v.Sessions) > 0 })
	}
	for name, want := range map[string][]string{
		"ada": {"unhold: 3", "start ada: 3", "down --now: 3", "ps: 0"},
		"bob": {"unhold: 1", "start ada: 1", "down --now: 1", "ps: 1"},
	} {
		if got := s.lines(name + "/codes"); !slices.Equal(got, want) {
			t.Errorf("%s was answered %q, want %q: %s", name, got, want, strings.Join(s.lines(name+"/words"), "\n"))
		}
	}
}

// held is a command that Landlock alone holds to a view.
func held(t testing.TB, exe string, argv []string, view sandbox.View) []string {
	t.Helper()
	view.By = sandbox.ByLandlock
	argv, err := sandbox.WrapView(exe, argv, view)
	if err != nil {
		t.Fatal(err)
	}
	return argv
}

// quoted are words as a YAML list has them.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(out, ", ")
}

// BenchmarkSandbox measures a program that does nothing, in a sandbox and free.
func BenchmarkSandbox(b *testing.B) {
	needSandbox(b)
	fairlead, empty := built(b)
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	argv := held(b, fairlead, []string{empty},
		sandbox.View{Places: []sandbox.Place{{Path: dir, Access: sandbox.Write}, {Path: filepath.Dir(empty), Access: sandbox.Read}}})
	var p pairs
	for b.Loop() {
		p.measure(
			func() time.Duration { return timed(b, argv...) },
			func() time.Duration { return timed(b, empty) })
	}
	p.report(b, "sandboxed", "free")
	b.ReportMetric(millis(middle(p.ours)-middle(p.bare)), "ms/view")
}
