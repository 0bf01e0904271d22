package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// The six edge cases of seed 003, played with the real program by what people type. Each test
// reads as the seed does: the scenario, and what is to become of it.

// meeting is a channel #reviews of real agents, watched by `fairlead watch`.
type meeting struct {
	*rig
	seen int // lines of the conversation that the story has come past
}

// aMeeting has pm, dev and qa in #reviews; each is a talker. Channel, turnConfig and
// ofPM are what fairlead.yaml says of the channel, of all turns, and of pm beside that.
func aMeeting(t *testing.T, channel, turnConfig, ofPM string) *meeting {
	t.Helper()
	t.Parallel()
	files := talkers("channels:\n  reviews: {"+channel+"}\nturnConfig: {"+turnConfig+"}\n", "pm", "dev", "qa")
	files["fairlead.yaml"] = strings.Replace(files["fairlead.yaml"], "workspace: pm", "workspace: pm"+ofPM, 1)
	return &meeting{rig: newRig(t, files)}
}

// lines is the conversation as `fairlead watch` prints it for programs.
func (m *meeting) lines() (lines []string) {
	m.t.Helper()
	out := m.must("watch", "reviews", "--no-follow", "--moves", "--last", "500", "--json")
	for line := range strings.Lines(out) {
		var e view.ChannelEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			m.t.Fatalf("fairlead watch --json prints %q: %v", line, err)
		}
		lines = append(lines, entryLine(e))
	}
	return lines
}

// reads waits until the conversation goes on like this: these lines, in this order, others
// between them. A line is meant that begins so.
func (m *meeting) reads(want ...string) {
	m.t.Helper()
	defer func() {
		if m.t.Failed() {
			m.t.Log(m.must("events"))
		}
	}()
	wait.Until(m.t, fmt.Sprintf("the lines %q in the conversation", want), func() bool {
		lines := m.lines()
		from, found := m.seen, 0
		for i := m.seen; i < len(lines) && found < len(want); i++ {
			if strings.HasPrefix(lines[i], want[found]) {
				from, found = i+1, found+1
			}
		}
		if found == len(want) {
			m.seen = from
		}
		return found == len(want)
	})
}

// neverReads wants no such line in the conversation, from its beginning to now.
func (m *meeting) neverReads(bad string) {
	m.t.Helper()
	for _, line := range m.lines() {
		if strings.Contains(line, bad) {
			m.t.Errorf("the conversation has %q", line)
		}
	}
}

// channel is what `fairlead channel list reviews --json` says.
func (m *meeting) channel() (v view.ChannelView) {
	m.t.Helper()
	if err := json.Unmarshal([]byte(m.must("channel", "list", "reviews", "--json")), &v); err != nil {
		m.t.Fatal(err)
	}
	return v
}

// becomes waits until the channel is so.
func (m *meeting) becomes(what string, so func(view.ChannelView) bool) view.ChannelView {
	m.t.Helper()
	var v view.ChannelView
	m.poll(what, func() bool { v = m.channel(); return so(v) })
	return v
}

// stands wants each agent's state, in words like "pm ACTIVE, dev QUEUED".
func (m *meeting) stands(want string) {
	m.t.Helper()
	m.becomes(want, func(v view.ChannelView) bool {
		for one := range strings.SplitSeq(want, ", ") {
			name, state, _ := strings.Cut(one, " ")
			if member(v, name).State != state {
				return false
			}
		}
		return true
	})
}

// pid is the process in which an agent talks, as `fairlead ps --json` has it.
func (m *meeting) pid(agent string) (pid int) {
	m.t.Helper()
	m.poll(agent+" runs", func() bool {
		var view view.TeamView
		if err := json.NewDecoder(bytes.NewReader([]byte(m.must("ps", "--json")))).Decode(&view); err != nil {
			m.t.Fatal(err)
		}
		for _, a := range view.Agents {
			if a.Name == agent && a.Session != nil && a.Session.Phase == "running" {
				pid = a.Session.PID
			}
		}
		return pid > 0
	})
	return pid
}

// takes lets an agent work on what it is told until done; it begins when the books say so.
func (m *meeting) busy(agent string) { m.put(agent+"/busy", "") }
func (m *meeting) done(agent string) { m.drop(agent + "/busy") }

func (m *meeting) works(agent string) {
	m.t.Helper()
	m.becomes(agent+" works", func(v view.ChannelView) bool { return member(v, agent).Working })
}

// Edge case 1: Agent Crashes Mid-Turn. Agent is ACTIVE, process dies unexpectedly.
func TestSeedEdgeCase1AgentCrashesMidTurn(t *testing.T) {
	m := aMeeting(t, "agents: [pm, dev, qa], maxRounds: 1", "defaultTimeoutSeconds: 3600", "")
	m.busy("pm")
	m.must("channel", "say", "reviews", "please", "begin")
	m.reads("a person: please begin", "pm QUEUED -> ACTIVE T4")
	m.works("pm")
	if err := syscall.Kill(m.pid("pm"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The crash is logged with context, pm is OFFLINE, the notice is posted, the next one has the turn.
	m.reads("pm ACTIVE -> OFFLINE T11", "dev QUEUED -> ACTIVE T4", "dev (turn): turn dev-1", "dev ACTIVE -> QUEUED T7",
		"qa QUEUED -> ACTIVE T4", "qa (turn): turn qa-1")
	m.hasNotice("⚠️ pm disconnected, skipping turn")
	if why := m.must("why", "pm"); !strings.Contains(why, "SIGKILL") {
		t.Errorf("how it went is not said: %s", why)
	}
	// Recovery: it returns to IDLE, not re-queued by itself.
	m.stands("pm IDLE")
	m.becomes("the others go on without it", func(v view.ChannelView) bool { return settled(v) })
	if got := turnsTaken(m.entries("reviews")); strings.Count(strings.Join(got, " "), "pm") != 1 {
		t.Errorf("the turns went to %q", got)
	}
	m.done("pm")
	m.must("channel", "assign", "reviews", "pm")
	m.reads("pm IDLE -> QUEUED T2")
}

// hasNotice wants an announcement in the channel.
func (m *meeting) hasNotice(text string) {
	m.t.Helper()
	m.poll("the notice "+text, func() bool {
		for _, line := range m.lines() {
			if line == "notice: "+text {
				return true
			}
		}
		return false
	})
}

// Edge case 2: Timeout During ACTIVE. Agent has turn but doesn't respond within timeout period.
func TestSeedEdgeCase2TimeoutDuringActive(t *testing.T) {
	m := aMeeting(t, "agents: [pm, dev, qa], maxRounds: 2", "", ", turn_timeout: 6s")
	m.busy("pm")
	m.must("channel", "say", "reviews", "please begin")
	before := m.becomes("pm's time is running", func(v view.ChannelView) bool {
		return v.Holder == "pm" && v.Deadline != nil && member(v, "pm").Working
	})
	if left := time.Until(*before.Deadline); left > 6*time.Second {
		t.Errorf("pm has %s for a turn of 6 s", left)
	}
	// Logged, posted to the channel, forced back into the queue, the next one has the turn.
	m.reads("pm QUEUED -> ACTIVE T4", "pm ACTIVE -> QUEUED T9", "dev QUEUED -> ACTIVE T4")
	m.hasNotice("⏱️ pm turn timed out")
	m.done("pm")
	// It keeps its place: it gets the turn again in the next cycle.
	m.reads("qa QUEUED -> ACTIVE T4", "pm QUEUED -> ACTIVE T4", "pm (turn): turn")
}

// Edge case 3: Human Interrupts Mid-Turn. Human posts message while agent is ACTIVE.
func TestSeedEdgeCase3HumanInterruptsMidTurn(t *testing.T) {
	t.Parallel()
	t.Run("queue", func(t *testing.T) { // queued, delivered after turn ends
		m := aMeeting(t, "agents: [pm, dev, qa], maxRounds: 1, humanInterruptMode: queue", "defaultTimeoutSeconds: 3600", "")
		m.busy("pm")
		m.must("channel", "say", "reviews", "begin")
		m.works("pm")
		if out := m.must("channel", "say", "reviews", "and mind the tests"); !strings.Contains(out, "message 2 in reviews is queued") {
			t.Errorf("it says %q", out)
		}
		m.done("pm")
		m.reads("a person: and mind the tests", "pm (turn): turn pm-1", "pm ACTIVE -> QUEUED T7", "dev QUEUED -> ACTIVE T4")
		m.answered("and mind the tests")
		if heard := m.books("pm").heard["pm"]; strings.HasSuffix(strings.Join(heard[:1], " "), " 2") {
			t.Errorf("pm had it in its turn: %q", heard)
		}
	})
	t.Run("interrupt", func(t *testing.T) { // agent's turn pauses, human gets priority
		m := aMeeting(t, "agents: [pm, dev], lead: qa, maxRounds: 1, humanInterruptMode: interrupt", "defaultTimeoutSeconds: 3600", "")
		m.busy("pm")
		m.must("channel", "say", "reviews", "begin")
		m.works("pm")
		m.must("channel", "say", "reviews", "stop, what are you doing?")
		m.reads("a person: stop, what are you doing?", "pm ACTIVE -> WAITING T17", "qa (aside): aside qa-1", "pm WAITING -> ACTIVE T12")
		m.done("pm")
		m.reads("pm (turn): turn", "pm ACTIVE -> QUEUED T7", "dev QUEUED -> ACTIVE T4")
		m.answered("stop, what are you doing?")
	})
	t.Run("inject", func(t *testing.T) { // delivered to the active agent immediately; the default
		m := aMeeting(t, "agents: [pm, dev, qa], maxRounds: 1", "defaultTimeoutSeconds: 3600", "")
		m.busy("pm")
		m.must("channel", "say", "reviews", "begin")
		m.works("pm")
		m.must("channel", "say", "reviews", "in English, please")
		m.becomes("pm has it in the middle of its turn", func(v view.ChannelView) bool {
			return v.Holder == "pm" && len(v.Open) == 2 && v.Open[1].State == "delivered"
		})
		m.done("pm")
		m.reads("a person: in English, please", "pm (turn): turn pm-1", "pm ACTIVE -> QUEUED T7")
		m.answered("in English, please")
	})
	t.Run("parallel", func(t *testing.T) { // always goes through
		m := aMeeting(t, "agents: [pm, dev, qa], maxRounds: 1, humanInterruptMode: parallel", "defaultTimeoutSeconds: 3600", "")
		m.must("channel", "say", "reviews", "begin", "--mode", "queue")
		m.reads("qa (turn): turn", "qa ACTIVE -> QUEUED T7")
		m.must("channel", "say", "reviews", "who is there?")
		for _, name := range []string{"pm", "dev", "qa"} {
			m.poll(name+" answers without a turn",
				func() bool { return strings.Contains(strings.Join(m.lines(), "\n"), name+" (aside): apart "+name) })
		}
		m.answered("who is there?")
	})
}

// answered waits until a person's message is; it is none of those that are still open then.
func (m *meeting) answered(text string) {
	m.t.Helper()
	m.poll("the message is answered", func() bool {
		for _, e := range m.entries("reviews") {
			if e.Text == text && e.Kind == channels.EntryHuman {
				return e.State == "answered"
			}
		}
		return false
	})
}

// Edge case 4: Agent Never Signals Done. Agent responds but forgets TURN_COMPLETE.
func TestSeedEdgeCase4AgentNeverSignalsDone(t *testing.T) {
	t.Parallel()
	forgets := func(t *testing.T, config string) *meeting {
		t.Parallel()
		files := talkers("  pm: {driver: script, script: forgets.script.yaml, workspace: pm}\nchannels:\n  reviews: {agents: [pm, dev], maxRounds: 1}\nturnConfig: {"+config+"}\n", "dev")
		files["forgets.script.yaml"] = "sessions: [[{say: work}]]\nturn: [expect_prompt, {say: I have looked at it and it is fine}, again]\n"
		return &meeting{rig: newRig(t, files)}
	}
	t.Run("timeout acts as safety net", func(t *testing.T) {
		m := forgets(t, "defaultTimeoutSeconds: 6")
		m.must("channel", "say", "reviews", "begin")
		m.reads("pm (turn): I have looked at it", "warning: Agent completed response without TURN_COMPLETE", "pm ACTIVE -> QUEUED T9",
			"dev QUEUED -> ACTIVE T4")
		m.hasNotice("⏱️ pm turn timed out")
	})
	t.Run("auto-detect natural completion", func(t *testing.T) {
		m := forgets(t, "defaultTimeoutSeconds: 3600, autoDetectTurnEnd: true, autoDetectSilenceSeconds: 1")
		m.must("channel", "say", "reviews", "begin")
		m.reads("pm (turn): I have looked at it", "warning: Agent completed response without TURN_COMPLETE", "pm ACTIVE -> QUEUED T7",
			"dev QUEUED -> ACTIVE T4")
		m.neverReads("timed out")
	})
	// A command that forgets the word and ends keeps the turn until its time is over: every view says so, and how to end it.
	t.Run("its process has ended", func(t *testing.T) {
		t.Parallel()
		files := talkers("  pm: {driver: exec, command: [sh, -c, 'echo I have looked at it'], workspace: pm}\nchannels:\n  reviews: {agents: [pm, dev], maxRounds: 1}\nturnConfig: {defaultTimeoutSeconds: 3600}\n", "dev")
		m := &meeting{rig: newRig(t, files)}
		m.must("channel", "say", "reviews", "begin")
		m.reads("pm (turn): I have looked at it", "warning: Agent completed response without TURN_COMPLETE")
		const matter = "it answered without TURN_COMPLETE and its session has ended"
		m.becomes("the matter", func(v view.ChannelView) bool { return v.State == "ACTIVE" && strings.HasPrefix(v.Why, matter) })
		for _, words := range [][]string{{"why", "pm"}, {"channel", "list", "reviews"}} {
			if out := strings.Join(strings.Fields(m.must(words...)), " "); !strings.Contains(out,
				matter+"; `fairlead channel skip reviews` ends its turn") {
				t.Errorf("%v prints\n%s", words, out)
			}
		}
		if out := m.must("ps"); !strings.Contains(out, "in #reviews it answered without TURN_COMPLETE") {
			t.Errorf("ps prints\n%s", out)
		}
		if testsize.CI() && !testsize.Race {
			p := uitest.Browse(t)
			p.OpenTeam(m.url)
			p.Open(m.url + "#/channels/reviews")
			p.WaitText(".standing", matter)
			p.Open(m.url + "#/agents/pm")
			p.WaitText(".turn-chips", matter)
		}
		m.must("channel", "skip", "reviews")
		m.stands("pm QUEUED, dev QUEUED")
	})
}

// Edge case 5: All Agents Go Offline. Every agent in a channel disconnects.
func TestSeedEdgeCase5AllAgentsGoOffline(t *testing.T) {
	m := aMeeting(t, "agents: [pm, dev], maxRounds: 1", "defaultTimeoutSeconds: 3600", "")
	m.must("channel", "disable", "pm", "dev")
	m.stands("pm OFFLINE, dev OFFLINE")
	m.hasNotice("⚠️ No agents available in this channel")
	// Messages are logged but not routed.
	if out := m.must("channel", "say", "reviews", "is anybody there?"); !strings.Contains(out, "message 1 in reviews is queued") {
		t.Errorf("it says %q", out)
	}
	if v := m.channel(); v.Holder != "" || v.Parked != "nobody" || len(v.Open) != 1 || v.Open[0].State != "queued" {
		t.Errorf("the channel is %+v", v)
	}
	// The first one that comes back and is assigned is ACTIVE at once, and gets them.
	m.must("channel", "enable", "dev")
	m.must("channel", "assign", "reviews", "dev")
	m.reads("a person: is anybody there?", "dev IDLE -> QUEUED T2", "dev QUEUED -> ACTIVE T4", "dev (turn): turn dev-1")
	m.answered("is anybody there?")
}

// Edge case 6: Queue Order Changes Mid-Sprint. New agent added or agent removed while turns are
// in progress.
func TestSeedEdgeCase6QueueOrderChangesMidSprint(t *testing.T) {
	m := aMeeting(t, "agents: [pm, dev], maxRounds: 2", "defaultTimeoutSeconds: 3600", "")
	m.busy("pm")
	m.busy("dev")
	m.busy("qa")
	m.must("channel", "say", "reviews", "begin")
	m.works("pm")
	// Added: at the end of the queue, its turn comes after the current cycle.
	m.must("channel", "assign", "reviews", "qa")
	if v := m.channel(); strings.Join(v.Queue, " ") != "dev qa" {
		t.Errorf("the queue is %q", v.Queue)
	}
	m.done("pm")
	m.reads("pm ACTIVE -> QUEUED T7", "dev QUEUED -> ACTIVE T4")
	m.works("dev")
	// Removed while ACTIVE: its turn ends, and the next one has it.
	m.must("channel", "remove", "reviews", "dev")
	m.reads("dev ACTIVE -> IDLE T16", "qa QUEUED -> ACTIVE T4")
	m.done("dev")
	// Removed while QUEUED: out of the queue, the others move up.
	m.must("channel", "assign", "reviews", "dev")
	m.becomes("somebody has the turn, and two are behind", func(v view.ChannelView) bool { return v.Holder == "qa" && len(v.Queue) == 2 })
	m.must("channel", "remove", "reviews", "pm")
	if v := m.channel(); strings.Join(v.Queue, " ") != "dev" {
		t.Errorf("the queue is %q", v.Queue)
	}
	m.done("qa")
	m.reads("qa ACTIVE -> QUEUED T7", "dev QUEUED -> ACTIVE T4", "dev (turn): turn dev")
}
