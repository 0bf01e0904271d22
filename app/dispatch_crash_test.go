package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// notifiedSessions are real dispatch folders. The test notifies of changes, because a file watch
// does not work in a bubble.
type notifiedSessions struct{ *dispatchctl.SessionFolders }

func newNotifiedSessions(repo string) notifiedSessions {
	return notifiedSessions{&dispatchctl.SessionFolders{Repo: repo, Changed: make(chan struct{}, 1)}}
}

// hostSessions makes a bubble's agents work for dispatch folders of its repository.
func (b *bubble) hostSessions(dir string) notifiedSessions {
	b.driver.talks = true
	b.conf.Dir, b.conf.Dispatch = dir, config.Dispatch{Main: "coordinator", Sandbox: config.AgentSandbox{Mode: config.SandboxOff}}
	s := newNotifiedSessions(dir)
	b.sessions = s
	return s
}

// crashOnFolderWrite makes the engine crash also at writes into a folder.
func (b *bubble) crashOnFolderWrite() {
	fate := b.crashPoint
	b.engine.Dispatch.FolderState.Decide = func(f *dispatchfolder.Folder, by change.Actor, in dispatch.Input) (now dispatch.Dispatch,
		err error,
	) {
		dead := fate.act(fmt.Sprintf("tell the folder %T", in), func() { now, err = dispatchctl.DecideInFolder(f, by, in) })
		if dead != nil {
			return now, dead
		}
		return now, err
	}
}

// playAgent plays an agent. Its prompt determines its answer.
func playAgent(s *fakeSession) {
	text, _, ok := s.next(time.Hour)
	if !ok {
		return
	}
	s.lasts(time.Second)
	tells := func(lines ...string) {
		for _, line := range lines {
			s.say("%s", line)
			s.lasts(100 * time.Millisecond)
		}
		s.say("stop ok")
	}
	has := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case agentIn(s.id) == "reviewer":
		tells("reviewed well")
	case has("reviewer is done"):
		tells("written and reviewed")
	case has("engineer is done"):
		tells("all in order")
	case has("with help"):
		tells("I ask.", `[DELEGATE] {`, `  "to": "reviewer",`, `  "task": "review it"`, `}`)
	case agentIn(s.id) == "engineer":
		tells("the script is there")
	case has("delegate it"):
		tells("wants Bash {\"command\":\"make all\"}")
		answer, _, _ := s.next(time.Hour)
		_, _, _ = strings.Cut(answer, " ")
		tells(`[DELEGATE] {"to":"engineer","task":"the thing"}`)
	default:
		tells("hello to you")
	}
}

// dispatchScenario plays a dispatch with four inputs, independent of crashes.
func dispatchScenario(b *bubble, s notifiedSessions, f *dispatchfolder.Folder) {
	b.host.play = playAgent
	pass := func() {
		for range 8 {
			s.Say()
			b.after(2 * time.Second)
			b.restartIfDead()
		}
	}
	b.restartIfDead()
	tell := func(text, agent string) {
		in := dispatch.UserInput{Text: text}
		if agent != "" {
			in.Match = &dispatch.Match{Agent: agent, Terms: []string{"script"}}
		}
		if _, _, err := f.Do(time.Now(), change.Actor{Kind: "human", ID: "tester"}, in); err != nil {
			b.t.Fatal(err)
		}
		pass()
	}
	tell("good morning", "")
	tell("a script, please", "engineer")
	tell("a script with help", "engineer")
	tell("this one you delegate it", "")
}

// TestHostedCrashAtEveryStep crashes the engine at every act of a dispatch. Every input is answered
// once, no agent is started or receives a prompt twice, and the journal and the folder agree.
func TestHostedCrashAtEveryStep(t *testing.T) {
	play := func(t *testing.T, dir string, c cut) (acts int) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, dir, "coordinator", "engineer", "reviewer")
			defer b.end()
			s := b.hostSessions(dir)
			f := beginSession(t, dir, dispatch.Interactive)
			b.open(c.last, c.undone)
			b.crashOnFolderWrite()
			first := b.crashPoint
			b.run()
			dispatchScenario(b, s, f)
			b.checkDispatch(f)
			acts = first.count()
		})
		return acts
	}
	acts := play(t, t.TempDir(), cut{})
	if acts < 30 {
		t.Fatalf("only %d acts: the scenario does nothing", acts)
	}
	t.Logf("%d acts", acts)
	step := 1
	if !testsize.Long() { // neighboring acts often give the same result
		step = 19
		if testsize.CI() && !testsize.Race {
			step = 7
		}
	}
	for last := 1; last <= acts; last += step {
		for _, undone := range []bool{false, true} {
			t.Run(fmt.Sprintf("act=%d,undone=%v", last, undone), func(t *testing.T) { play(t, t.TempDir(), cut{last, undone}) })
		}
	}
}

// checkDispatch checks the results of the dispatch, and that each is stored once.
func (b *bubble) checkDispatch(f *dispatchfolder.Folder) {
	t := b.t
	t.Helper()
	b.restartIfDead()
	now, err := f.Session()
	if err != nil {
		t.Fatal(err)
	}
	if now.Open != nil || now.Made != 4 || now.Denied != 1 {
		t.Errorf("in the end the dispatch is %+v, open %+v", now.Now, now.Open)
	}
	for agent, want := range map[string]int{"coordinator": 3, "engineer": 4, "reviewer": 1} {
		if n := b.host.startsOf(agent); n != want {
			t.Errorf("%s was started %d times, want %d", agent, n, want)
		}
	}
	said := map[int]map[string]int{
		1: {"good morning": 1, "hello to you": 1},
		2: {"the script is there": 2}, // as the result, and as the answer
		3: {"reviewed well": 1, "written and reviewed": 2},
		4: {"make all": 1, "the script is there": 1, "all in order": 1},
	}
	for n, words := range said {
		text, err := f.Dialogue(n)
		if err != nil {
			t.Fatal(err)
		}
		for word, want := range words {
			if got := strings.Count(string(text), word); got != want {
				t.Errorf("conversation %d has %q %d times, want %d:\n%s", n, word, got, want, text)
			}
		}
	}
	index, err := os.ReadFile(filepath.Join(f.Path(), "conversations", "messages.jsonl"))
	if err != nil || strings.Count(string(index), "\n") != 4 {
		t.Errorf("messages.jsonl says %q, %v", index, err)
	}
	b.checkFolder(f)
}

// checkFolder checks that the journal has each line of the folder once, and that both give the same
// dispatch.
func (b *bubble) checkFolder(f *dispatchfolder.Folder) {
	t := b.t
	t.Helper()
	b.sessions.(notifiedSessions).Say()
	b.settle()
	lines, end, err := f.Lines(0)
	if err != nil {
		t.Fatal(err)
	}
	var kept []change.Change
	for _, rec := range b.history() {
		ch, err := loop.ChangeOf(rec)
		if err != nil {
			t.Fatal(err)
		}
		if body := change.As[team.DispatchSet](ch.Body); body != nil && body.Body != nil {
			kept = append(kept, ch)
		}
	}
	if len(kept) != len(lines) {
		t.Fatalf("the folder has %d lines, the journal %d", len(lines), len(kept))
	}
	for i := range lines {
		if kept[i].Row != lines[i].Change.Row || change.As[team.DispatchSet](kept[i].Body).Read != lines[i].End ||
			uint64(i+1) != change.As[dispatch.Body](lines[i].Change.Body).Now.Line {
			t.Errorf("line %d is %s to byte %d in the folder, %s to byte %d in the journal", i+1, lines[i].Change.Row, lines[i].End,
				kept[i].Row, change.As[team.DispatchSet](kept[i].Body).Read)
		}
	}
	is := b.replayed().Dispatches[f.Name()]
	last := change.As[dispatch.Body](lines[len(lines)-1].Change.Body)
	if is == nil || is.Read != end || is.State.Phase != last.Now.Phase || len(is.Ends) != 0 {
		t.Errorf("the replayed dispatch is %+v", is)
	}
}
