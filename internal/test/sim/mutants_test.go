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
)

// mutant is a fault put into the code on purpose: where old stands in the file there is new
// instead. Some test has to fail then.
type mutant struct {
	breaks   string // what it breaks, in words
	file     string // from the root
	old, new string
	file2    string // where a fault is guarded against twice: the other guard; else empty
	old2     string
	new2     string
	pkg      string // whose tests are run
	run      string // which of them; empty: simulated days
}

// mutants are all of them. With -v the test prints what noticed each fault.
var mutants = slices.Concat(ofAgents, ofChannels, ofCrew, ofQuestions)

// ofAgents are faults in what agents do each for itself.
var ofAgents = []mutant{
	{
		breaks: "an append is not synced",
		file:   "journal/sqlite/conn.go", old: `"synchronous(FULL)"`, new: `"synchronous(OFF)"`,
		pkg: "./journal/sqlite", run: "TestSyncedBeforeAnswered",
	},
	{
		breaks: "effects begin, and watchers are told, before the append",
		file:   "engine/loop.go", old: "	head := e.head\n	err := e.commit(ctx, &made)\n", new: "	e.announce(&made, touched)\n	head := e.head\n	err := e.commit(ctx, &made)\n",
	},
	{
		breaks: "an order is answered before the append",
		file:   "engine/loop.go", old: "	head := e.head\n	err := e.commit(ctx, &made)\n",
		new: "	head := e.head\n	for i := range batch {\n		if batch[i].answer != nil {\n			batch[i].answer <- answers[i]\n			batch[i].answer = nil\n		}\n	}\n	err := e.commit(ctx, &made)\n",
	},
	{
		breaks: "the append expects nothing of the journal's end",
		file:   "engine/commit.go", old: "part, journal.Expect{Entity: journal.Whole, Version: e.head})", new: "part)",
	},
	{
		breaks: "a shim obeys an engine that was overtaken",
		file:   "shim/serve.go", old: "	case fence < k.fence:\n", new: "	case fence < k.fence && fence == 0:\n",
		file2: "shim/record.go", old2: "	case fence < seen:\n", new2: "	case fence < seen && fence == 0:\n",
		pkg: "./shim", run: ".",
	},
	{
		breaks: "an engine that a shim has refused goes on",
		file:   "engine/adopt.go", old: "	e.stopFor(takenOver(err))\n	return true", new: "	return false",
		pkg: "./engine", run: ".",
	},
	{
		breaks: "a session that was found running is started again",
		file:   "engine/adopt.go", old: "	return a.found == NeverStarted && a.session.Phase == team.Opened", new: "	return a.session.Phase == team.Opened",
	},
	{
		breaks: "a session that runs is taken for one that never began",
		file:   "engine/adopt.go", old: "func (a *adoption) follows() bool { return a.proc != nil && a.found != NeverStarted }", new: "func (a *adoption) follows() bool { return a.proc != nil && a.found == Exited }",
	},
	{
		breaks: "recovery starts who is paused",
		file:   "machine/control/classify.go", old: "	case c.State != Resting || !c.Wants():\n		return nil\n	case now.OverLimit", new: "	case c.State != Resting:\n		return nil\n	case !c.Wants():\n		return one(DueContinuous)\n	case now.OverLimit",
		file2: "team/action.go", old2: "!a.Control.StillWanted() {", new2: "a.Control.StillWanted() && false {",
	},
	{
		breaks: "the last look before a start does not ask whether it is still wanted",
		file:   "team/action.go", old: "!a.Control.StillWanted() {", new: "a.Control.StillWanted() && false {",
	},
	{
		breaks: "the file is not looked at once more before a start",
		file:   "engine/start.go", old: "		if err := e.lastLook(ctx, m); err != nil {\n			return\n		}\n", new: "",
	},
	{
		breaks: "recovery starts agents while the team is held",
		file:   "machine/control/classify.go", old: "	case now.Held || now.Stopping:\n		return nil\n	case c.programDue() && now.OverLimit", new: "	case now.Stopping:\n		return nil\n	case c.programDue() && now.OverLimit",
		file2: "team/action.go", old2: "	case t.Hold.On:\n		return false, \"the team is held\"\n", new2: "",
	},
	{
		breaks: "a start over a limit is not refused at the last moment",
		file:   "team/action.go", old: "	if limit := t.OverLimit(a, at); limit != \"\" {\n		return false", new: "	if limit := t.OverLimit(a, at); limit != \"\" && false {\n		return false",
		pkg: "./team", run: ".",
	},
	{
		breaks: "what somebody else wrote counts as kept before the append",
		file:   "engine/loop.go", old: "	made := draft{changes: e.changes[:0], room: len(batch)}\n	answers := make([]answer, len(batch))\n", new: "	made := draft{changes: e.changes[:0], room: len(batch)}\n	for _, req := range batch {\n		if req.seen != nil && e.opts.Files != nil {\n			e.opts.Files.Took(*req.seen)\n		}\n	}\n	answers := make([]answer, len(batch))\n",
	},
	{
		breaks: "every file is taken for one of ours, and written over",
		file:   "engine/files.go", old: "			if s == string(sum) {\n				return true", new: "			if s != \"\" || s == string(sum) {\n				return true",
	},
	{
		breaks: "a look into a swapped-out file is dropped for a later look at its place",
		file:   "engine/files.go", old: "seen.Seq <= m.seen && !seen.FromSwap)", new: "seen.Seq <= m.seen)",
	},
	{
		breaks: "after a failed write the file is believed to be as it was",
		file:   "engine/files.go", old: "		m.failed, m.unsure = w.err.Error(), true\n", new: "		m.failed = w.err.Error()\n",
	},
	{
		breaks: "a one-shot whose end is not known is run again",
		file:   "machine/control/classify.go", old: "		return OneShotLost\n", new: "		return OneShotAgain\n",
	},
	{
		breaks: "an exit is given up before it is in the journal",
		file:   "engine/follow.go", old: "	ending, err := proc.Ended(ctx)\n", new: "	_ = proc.Ack(ctx)\n	ending, err := proc.Ended(ctx)\n",
	},
	{
		breaks: "a snapshot forgets the next change",
		file:   "engine/replay.go", old: "journal.Query{After: e.head})", new: "journal.Query{After: e.head + e.head/max(e.head, 1)})",
	},
	{
		breaks: "a report that comes twice is counted twice",
		file:   "team/decide_session.go", old: "	if what.Offset <= s.Offset {", new: "	if what.Offset < 0 {",
		pkg: "./team", run: ".",
	},
	{
		breaks: "unknown fields of the file are dropped",
		file:   "engine/files.go", old: "SetBy: f.By, Note: f.Note, Extra: unpackExtra(f.Extra),", new: "SetBy: f.By, Note: f.Note,",
	},
	{
		breaks: "what is written for a foreign loop keeps what it said before it said something else",
		file:   "engine/files.go", old: "		newest = m.seen // all but", new: "		newest = agentfile.AnyLook // all but",
	},
	{
		breaks: "a write asks for no newer look at what it keeps parts of",
		file:   "agentfile/write.go", old: "	stale := !seen.Own && seen.Seq > newest\n", new: "	stale := !seen.Own && seen.Seq > max(newest, AnyLook)\n",
		pkg: "./agentfile", run: "Write",
	},
	{
		breaks: "what a foreign loop said last is forgotten where its file was spoiled",
		file:   "machine/control/act.go", old: "		return // what it said last is", new: "		v.Reported = \"\"\n		return // what it said last is",
	},
	{
		breaks: "an old sheet of a foreign loop takes the place of what it said since",
		file:   "engine/files.go", old: "		current = m.state.CurrentState // it has", new: "		_ = there // it has",
	},
	{
		breaks: "what a foreign loop said is not put back where ours went over it",
		file:   "engine/files.go", old: "		return true // it said so while", new: "		_ = there // it said so while",
	},
	{
		breaks: "agents go on after the daemon was told to stop starting",
		file:   "team/action.go", old: "	case t.Stopping:\n		return false, \"fairlead stops\"\n", new: "",
		pkg: "./team", run: ".",
	},
	{
		breaks: "a damaged log is taken for a torn one",
		file:   "journal/sqlite/wal.go", old: "		if batches > 1 {", new: "		if batches > 1<<30 {",
		pkg: "./journal/sqlite", run: "Log",
	},
}

// TestMutantsStillApply keeps the list true: each text stands in its file, once.
func TestMutantsStillApply(t *testing.T) {
	for _, m := range mutants {
		err := m.applies()
		switch {
		case err != nil && !staleMutants[m.breaks]:
			t.Errorf("%s: %v; write the mutant anew", m.breaks, err)
		case err == nil && staleMutants[m.breaks]:
			t.Errorf("%s applies again; remove it from staleMutants", m.breaks)
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

// staleMutants are the mutants whose code was moved or renamed and that have to be written anew. The
// list only shrinks: TestMutantsStillApply fails for an entry that applies.
var staleMutants = map[string]bool{
	"effects begin, and watchers are told, before the append":                             true,
	"an order is answered before the append":                                              true,
	"the append expects nothing of the journal's end":                                     true,
	"an engine that a shim has refused goes on":                                           true,
	"a session that was found running is started again":                                   true,
	"a session that runs is taken for one that never began":                               true,
	"the file is not looked at once more before a start":                                  true,
	"what somebody else wrote counts as kept before the append":                           true,
	"every file is taken for one of ours, and written over":                               true,
	"a look into a swapped-out file is dropped for a later look at its place":             true,
	"after a failed write the file is believed to be as it was":                           true,
	"an exit is given up before it is in the journal":                                     true,
	"a snapshot forgets the next change":                                                  true,
	"unknown fields of the file are dropped":                                              true,
	"what is written for a foreign loop keeps what it said before it said something else": true,
	"what a foreign loop said last is forgotten where its file was spoiled":               true,
	"an old sheet of a foreign loop takes the place of what it said since":                true,
	"what a foreign loop said is not put back where ours went over it":                    true,
	"what an agent has ahead is given to it again":                                        true,
	"an agent is given one message too few with its turn":                                 true,
	"what was typed before a crash is not looked for after it":                            true,
	"what is said and the place in the output are two appends":                            true,
	"words that an agent says while it is being told something count for that":            true,
	"nobody asks once more whether a prompt is wanted before it is typed":                 true,
	"an agent is told the next thing in the middle of its answer":                         true,
	"the timers of channels are not set after a start":                                    true,
	"a channel that moves keeps the timer that it had":                                    true,
	"a person who puts the team to sleep is told so, and nothing comes of it":             true,
	"who wakes is handed what the lead said":                                              true,
	"the timers of the team are not set":                                                  true,
	"a marker that is under way is forgotten with the daemon that heard its beginning":    true,
	"a lead's marker is shown as conversation, too":                                       true,
	"whoever talks in a channel can speak for the team":                                   true,
	"what somebody wrote into a document counts as kept before it is":                     true,
	"what lies in a document's place is taken for ours, and written over":                 true,
	"an answer is noted as told, and nobody tells it":                                     true,
	"an answer waits until somebody asks for it":                                          true,
	"what a session was denied does not stand in its result":                              true,
	"a question that its program takes back waits on":                                     true,
}

// TestMutants runs the tests against each mutant, and fails for one that lives. It takes some
// minutes: FAIRLEAD_MUTANTS=1 go test -run 'Mutants$' -v -timeout 30m ./internal/test/sim
func TestMutants(t *testing.T) {
	if os.Getenv("FAIRLEAD_MUTANTS") == "" {
		t.Skip("set FAIRLEAD_MUTANTS=1 to run it")
	}
	for _, m := range mutants {
		if staleMutants[m.breaks] {
			t.Logf("not played, since its code was moved: %s", m.breaks)
			continue
		}
		t.Run(strings.ReplaceAll(m.breaks, " ", "_"), func(t *testing.T) {
			caught, out := m.caught(t)
			if !caught {
				t.Fatalf("it lives:\n%s", out)
			}
			t.Logf("| %s | %s |", m.breaks, by(out))
		})
	}
}

// caught runs the tests with the mutant in place of the file; nothing in the tree changes.
func (m *mutant) caught(t *testing.T) (bool, string) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for n, e := range [][3]string{{m.file, m.old, m.new}, {m.file2, m.old2, m.new2}} {
		if e[0] == "" {
			continue
		}
		path := filepath.Join(root, filepath.FromSlash(e[0]))
		from := path
		if before, again := replaced[path]; again { // both are in one file
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
	pkg, run := m.pkg, m.run
	if pkg == "" {
		pkg, run = "./internal/test/sim", "TestDays"
	}
	exe := filepath.Join(dir, "mutant.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlayFile, "-o", exe, pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("it does not compile:\n%s", out)
	}
	defer endAll(exe)
	cmd := exec.CommandContext(t.Context(), exe, "-test.timeout=5m", "-test.run", run)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), "FAIRLEAD_SIM_SEEDS=3000", "FAIRLEAD_MUTANTS=")
	cmd.WaitDelay = 10 * time.Second // what a mutant leaves behind may hold its output open
	out, err := cmd.CombinedOutput()
	return err != nil, string(out)
}

// endAll ends what a mutant has left behind: shims that obey nobody, and their agents. They
// are known by the program that they run, which is nobody else's.
func endAll(exe string) {
	running, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is ours
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

// by is what caught it: the day and the promise, or the test.
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
