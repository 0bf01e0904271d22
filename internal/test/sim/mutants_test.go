package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// mutant is a deliberate fault: the text old of a file is replaced by new. At least one test must
// fail then.
type mutant struct {
	breaks   string // describes the fault
	file     string // relative to the repository's root
	old, new string
	file2    string // the second guard, if the code guards against the fault twice; else empty
	old2     string
	new2     string
	pkg      string // the package whose tests run; empty: simulated days
	run      string // the pattern of the tests that run
	long     string // the script of cmd/fairlead/testdata/script/long that finds the fault, too; empty: none is known
}

// mutants are all deliberate faults. With -v TestMutants prints what noticed each of them.
var mutants = slices.Concat(ofAgents, ofChannels, ofCrew, ofQuestions, ofTasks, ofHosts, ofStream)

// ofAgents are faults in what concerns a single agent.
var ofAgents = []mutant{
	{
		breaks: "an append is not synced",
		file:   "engine/journal/sqlite/open.go", old: `"synchronous(FULL)"`, new: `"synchronous(OFF)"`,
		pkg: "./engine/journal/sqlite", run: "TestSyncedBeforeAnswered",
	},
	{
		breaks: "effects start and watchers are notified before the append",
		file:   "engine/loop/batch.go", old: "	head := l.head\n	err := l.commit(ctx, &made)\n",
		new: "	l.announce(&made, &touched)\n	head := l.head\n	err := l.commit(ctx, &made)\n",
	},
	{
		breaks: "a request is answered before the append",
		file:   "engine/loop/batch.go", old: "	head := l.head\n	err := l.commit(ctx, &made)\n",
		new: "	head := l.head\n	for i := range batch {\n		if batch[i].answer != nil {\n			batch[i].answer <- answers[i]\n			batch[i].answer = nil\n		}\n	}\n	err := l.commit(ctx, &made)\n",
	},
	{
		breaks: "the append does not check the journal's last version",
		file:   "engine/loop/commit.go", old: "part, journal.Expect{Entity: journal.Whole, Version: l.head})",
		new: "part)",
	},
	{
		breaks: "a shim obeys a daemon that was replaced by a newer one",
		file:   "process/shim/serve.go", old: "	case fence < k.fence:\n", new: "	case fence < k.fence && fence == 0:\n",
		file2: "process/shim/fence.go", old2: "	case fence < seen && PlausibleEpoch(fence, seen):\n",
		new2: "	case fence < seen && fence == 0:\n",
		pkg:  "./process/shim", run: ".",
	},
	{
		breaks: "a daemon continues after a shim has refused it",
		file:   "work/sessions/fence.go", old: "	c.loop.Fail(TakenOver(err))\n	return true",
		new: "	return false",
		pkg: "./app", run: "TestFenced",
	},
	{
		breaks: "a session that was found running is started again",
		file:   "app/starts/adopt.go", old: "	return a.Found == sessionhost.NeverStarted && a.Session.Phase == session.Open",
		new: "	return a.Session.Phase == session.Open",
	},
	{
		breaks: "a running session is treated as one that never started",
		file:   "app/starts/adopt.go", old: "func (a *Adoption) Follows() bool { return a.Proc != nil && a.Found != sessionhost.NeverStarted }",
		new: "func (a *Adoption) Follows() bool { return a.Proc != nil && a.Found == sessionhost.Exited }",
	},
	{
		breaks: "recovery starts paused agents",
		file:   "core/control/classify.go", old: "	case c.State != Resting || !c.Wants():\n		return nil\n	case now.OverLimit",
		new:   "	case c.State != Resting:\n		return nil\n	case !c.Wants():\n		return one(DueContinuous)\n	case now.OverLimit",
		file2: "core/team/action.go", old2: "!a.Control.StillWanted() {", new2: "a.Control.StillWanted() && false {",
	},
	{
		breaks: "the last check before a start ignores whether the start is still wanted",
		file:   "core/team/action.go", old: "!a.Control.StillWanted() {", new: "a.Control.StillWanted() && false {",
	},
	{
		breaks: "the file is not read again before a start",
		file:   "app/starts/start.go", old: "		look = c.parts.Agents.LastLook(m)\n",
		new: "",
	},
	{
		breaks: "recovery starts agents while the team is held",
		file:   "core/control/classify.go",
		old:    "	case now.Held || now.Stopping:\n		return nil\n	case c.programDue() && now.OverLimit",
		new:    "	case now.Stopping:\n		return nil\n	case c.programDue() && now.OverLimit",
		file2:  "core/team/action.go", old2: "	case t.Hold.On:\n		return false, \"the team is held\"\n", new2: "",
	},
	{
		breaks: "the last check before a start ignores limits",
		file:   "core/team/action.go", old: "	if limit := t.OverLimit(a, at); limit != \"\" {\n		return false",
		new: "	if limit := t.OverLimit(a, at); limit != \"\" && false {\n		return false",
		pkg: "./core/team", run: ".",
	},
	{
		breaks: "content that another program wrote counts as recorded before the append",
		file:   "engine/loop/batch.go", old: "	answers := l.decideAll(batch, &made, &touched)\n",
		new: "	for _, req := range batch {\n		if req.After != nil {\n			req.After()\n		}\n	}\n	answers := l.decideAll(batch, &made, &touched)\n",
	},
	{
		breaks: "a file lifts a pause that a person ordered",
		file:   "core/control/classify.go",
		old:    "(c.Desired.Lock == LockedByOrder || c.Desired.Lock == LockedByFile && in.By == \"agent\")",
		new:    "c.Desired.Lock == LockedByFile && in.By == \"agent\"",
		pkg:    "./core/control", run: "TestScripts",
	},
	{
		breaks: "a token is not compared with the session's",
		file:   "work/tools/agentact.go", old: " || !caller.Own && !slices.Contains(s.TokenHashes, caller.TokenHash)",
		new: " || slices.Contains(s.TokenHashes, \"\")",
		pkg: "./app", run: "TestActs|TestAct|Wrong|Over",
	},
	{
		breaks: "an agent that timed out does not get an unanswered message again",
		file:   "core/channel/act.go", old: "	if event != TimedOut || oldest == nil {",
		new: "	if event != TimedOut || oldest != nil {",
		pkg: "./core/channel", run: "TestScripts",
	},
	{
		breaks: "every file counts as written by Fairlead and is overwritten",
		file:   "work/agents/files.go", old: "return slices.Contains(sums, string(sum))",
		new: "return len(sums) > 0 || slices.Contains(sums, string(sum))",
	},
	{
		breaks: "an observation of a replaced file is dropped because of a later observation of the current file",
		file:   "work/agents/files.go", old: "seen.Seq <= m.seen && !seen.FromSwap)",
		new: "seen.Seq <= m.seen)",
	},
	{
		breaks: "after a failed write the file counts as unchanged",
		file:   "work/agents/files.go", old: "		m.Failed, m.unsure = w.err.Error(), true\n",
		new: "		m.Failed = w.err.Error()\n",
	},
	{
		breaks: "a one-shot run with an unknown result is run again",
		file:   "core/control/classify.go", old: "		return OneShotLost\n", new: "		return OneShotAgain\n",
	},
	{
		breaks: "an exit is acknowledged before it is in the journal",
		file:   "work/listen/follow.go", old: "	exit, err := proc.Ended(ctx)\n",
		new: "	_ = proc.Ack(ctx)\n	exit, err := proc.Ended(ctx)\n",
	},
	{
		breaks: "the replay skips the first change after a snapshot",
		file:   "engine/loop/replay.go", old: "journal.Query{After: l.head})",
		new: "journal.Query{After: l.head + l.head/max(l.head, 1)})",
	},
	{
		breaks: "a repeated report is counted twice",
		file:   "core/team/decide_session.go", old: "	if what.Offset <= s.Offset {", new: "	if what.Offset < 0 {",
		pkg: "./core/team", run: ".",
	},
	{
		breaks: "unknown fields of a file are dropped",
		file:   "work/agents/files.go", old: "SetBy: f.By, Note: noteOf(f.Note), Extra: unpackExtra(f.Extra),",
		new: "SetBy: f.By, Note: noteOf(f.Note),",
	},
	{
		breaks: "a write to a foreign loop's file restores an older report of the loop",
		file:   "work/agents/files.go", old: "		newest = m.seen",
		new: "		newest = exchange.AnyLook",
	},
	{
		breaks: "a write does not check that the content which it partly keeps is still current",
		file:   "files/exchange/write.go", old: "	stale := !seen.Own && seen.Seq > newest\n",
		new: "	stale := !seen.Own && seen.Seq > max(newest, AnyLook)\n",
		pkg: "./files/exchange", run: "Write",
	},
	{
		breaks: "the last report of a foreign loop is lost when its file becomes malformed",
		file:   "core/control/act.go", old: "in.(FileBroken); broken {\n		return",
		new: "in.(FileBroken); broken {\n		v.Reported = \"\"\n		return",
	},
	{
		breaks: "an older file version of a foreign loop replaces its newer report",
		file:   "work/agents/files.go", old: "		current = m.State.CurrentState",
		new: "		_ = there",
	},
	{
		breaks: "a report of a foreign loop that Fairlead overwrote is not restored",
		file:   "work/agents/files.go", old: "m.State.CurrentState != file.Current {\n		return true",
		new: "m.State.CurrentState != file.Current {\n		_ = there",
	},
	{
		breaks: "agents start although the daemon is stopping",
		file:   "core/team/action.go", old: "	case t.Stopping:\n		return false, \"fairlead stops\"\n", new: "",
		pkg: "./core/team", run: ".",
	},
	{
		breaks: "a damaged log is treated as a torn one",
		file:   "engine/journal/sqlite/wal.go", old: "		if batches > 1 {", new: "		if batches > 1<<30 {",
		pkg: "./engine/journal/sqlite", run: "Log",
	},
}

// TestMutantsStillApply fails for a mutant whose text no longer occurs exactly once in its file, so
// that a change of the code cannot disable a mutant unnoticed.
func TestMutantsStillApply(t *testing.T) {
	for _, m := range slices.Concat(mutants, ofHistory) {
		if err := m.applies(); err != nil {
			t.Errorf("%s: %v; change the mutant to match the code", m.breaks, err)
		}
	}
}

// applies says whether the text that a mutant replaces occurs exactly once in its file.
func (m *mutant) applies() error {
	for _, e := range [][2]string{{m.file, m.old}, {m.file2, m.old2}} {
		file, old := e[0], e[1]
		if file == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		if n := strings.Count(string(text), old); n != 1 {
			return fmt.Errorf("the text that it replaces occurs %d times in %s", n, file)
		}
	}
	return nil
}

// TestMutants runs the tests against each mutant and fails for a mutant that no test notices. It takes
// several minutes: FAIRLEAD_MUTANTS=1 go test -run 'Mutants$' -v -timeout 30m ./internal/test/sim
func TestMutants(t *testing.T) { noticed(t, mutants) }

// TestHistory is TestMutants for faults of the history. With FAIRLEAD_LONG=ci the script of a fault that a long script guarded has to
// notice it, too: FAIRLEAD_LONG=ci FAIRLEAD_MUTANTS=1 go test -run 'History$' -v -timeout 30m ./internal/test/sim
func TestHistory(t *testing.T) { noticed(t, ofHistory) }

func noticed(t *testing.T, all []mutant) {
	t.Helper()
	if os.Getenv("FAIRLEAD_MUTANTS") == "" {
		t.Skip("set FAIRLEAD_MUTANTS=1 to run it")
	}
	for _, m := range all {
		t.Run(strings.ReplaceAll(m.breaks, " ", "_"), func(t *testing.T) {
			caught, out := m.caught(t)
			if !caught {
				t.Fatalf("no test noticed the fault:\n%s", out)
			}
			t.Logf("| %s | %s |", m.breaks, by(out))
			if m.long == "" || !testsize.CI() {
				return
			}
			if caught, out := m.caughtByScript(t); !caught {
				t.Fatalf("the script %s did not notice the fault:\n%s", m.long, out)
			}
		})
	}
}

// caught builds the tests with the mutant through an overlay and runs them. It changes no file of the
// repository.
func (m *mutant) caught(t *testing.T) (bool, string) {
	t.Helper()
	root, dir := rootFolder(t), t.TempDir()
	pkg, run := m.pkg, m.run
	if pkg == "" {
		pkg, run = "./internal/test/sim", "TestDays"
	}
	exe := filepath.Join(dir, "mutant.test")
	inRoot(t, root, "go", "test", "-c", "-overlay", m.overlay(t, root, dir), "-o", exe, pkg)
	return failing(t, filepath.Join(root, filepath.FromSlash(pkg)), exe, exe, run, "FAIRLEAD_SIM_SEEDS=3000", "FAIRLEAD_MUTANTS=", "FAIRLEAD_LONG=")
}

// caughtByScript runs the mutant's long script with a program that has the fault.
func (m *mutant) caughtByScript(t *testing.T) (bool, string) {
	t.Helper()
	root, dir := rootFolder(t), t.TempDir()
	program, tests := filepath.Join(dir, "fairlead"), filepath.Join(dir, "scripts.test")
	inRoot(t, root, "go", "build", "-overlay", m.overlay(t, root, dir), "-o", program, "./cmd/fairlead")
	inRoot(t, root, "go", "test", "-c", "-o", tests, "./cmd/fairlead")
	return failing(t, filepath.Join(root, "cmd", "fairlead"), program, tests, "TestLongScripts/"+m.long+"$",
		"FAIRLEAD_TEST_PROGRAM="+program, "FAIRLEAD_LONG=ci")
}

// overlay writes the mutant's files to dir. It returns the path of a file for the flag -overlay of the go command.
func (m *mutant) overlay(t *testing.T, root, dir string) string {
	t.Helper()
	replaced := map[string]string{}
	for n, e := range [][3]string{{m.file, m.old, m.new}, {m.file2, m.old2, m.new2}} {
		if e[0] == "" {
			continue
		}
		path := filepath.Join(root, filepath.FromSlash(e[0]))
		from := path
		if before, again := replaced[path]; again { // both texts are in the same file
			from = before
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		replaced[path] = filepath.Join(dir, fmt.Sprintf("mutant%d.go", n))
		if err := os.WriteFile(replaced[path], []byte(strings.Replace(string(text), e[1], e[2], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlayFile
}

func rootFolder(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// inRoot runs a command that builds something with the mutant.
func inRoot(t *testing.T, root string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the mutant does not compile:\n%s", out)
	}
}

// failing reports whether tests fail, and what they print. Afterwards no process of the program runs.
func failing(t *testing.T, dir, program, tests, run string, env ...string) (bool, string) {
	t.Helper()
	defer endAll(program)
	cmd := exec.CommandContext(t.Context(), tests, "-test.timeout=5m", "-test.run", run)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.WaitDelay = 10 * time.Second // processes that a mutant left running may keep its output open
	out, err := cmd.CombinedOutput()
	return err != nil, string(out)
}

// endAll kills the processes that a mutant left running: shims and their agents. It finds them by
// their executable, which is unique to the mutant.
func endAll(exe string) {
	running, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is valid
	for _, link := range running {
		if to, err := os.Readlink(link); err != nil || strings.TrimSuffix(to, " (deleted)") != exe {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}

// by returns what noticed the fault: the simulated day and the promise, or the test.
func by(out string) string {
	test := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if i := strings.Index(line, "seed "); i >= 0 && strings.Contains(line, "sim_test.go") {
			seed, rest, _ := strings.Cut(line[i:], ": ")
			promise, _, _ := strings.Cut(rest, " (")
			return fmt.Sprintf("day %s: `%s`", strings.TrimPrefix(seed, "seed "), promise)
		}
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok && test == "" {
			test, _, _ = strings.Cut(name, " (")
		}
	}
	if test == "" {
		return "a panic"
	}
	return "`" + test + "`"
}
