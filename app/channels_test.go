package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
)

// channelYAML configures two script agents in one channel.
const channelYAML = `
version: 1
turnConfig: {defaultTimeoutSeconds: 30}
agents:
  ada: {driver: script, script: ada.yaml, workspace: ada}
  bob: {driver: script, script: bob.yaml, workspace: bob}
channels:
  reviews: {agents: [ada, bob]}
`

// answeringScript returns a script that records every prompt that it receives, and answers each.
func answeringScript(answers ...string) string {
	var b strings.Builder
	b.WriteString("turn:\n")
	b.WriteString("  - expect_prompt\n")
	b.WriteString("  - run: echo \"$SESSION $PROMPT\" >> ledger\n")
	for _, answer := range answers {
		b.WriteString("  - " + answer + "\n")
	}
	b.WriteString("  - again\nsteps:\n  - say: at work\n")
	return b.String()
}

// channel waits for a condition on a channel, or fails with its last view.
func (w *world) channel(name, what string, ok func(view.ChannelView) bool) view.ChannelView {
	w.t.Helper()
	var last view.ChannelView
	if !wait.Poll(func() (is bool) {
		now, err := w.engine.Channels.Channel(context.Background(), name)
		if err == nil {
			last = now
		}
		return err == nil && ok(now)
	}) {
		w.t.Fatalf("waited until %s; last seen: %+v\n%s", what, last, w.talk(name))
	}
	return last
}

// talk returns the whole conversation of a channel as lines.
func (w *world) talk(name string) string {
	w.t.Helper()
	page, err := w.engine.Channels.ChannelEntries(context.Background(), name, view.EntryQuery{Limit: 500, Moves: true})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, one := range page.Entries {
		switch one.Kind {
		case turns.KindMoved:
			fmt.Fprintf(&b, "  %s %s %s -> %s\n", one.Row, one.Agent, one.From, one.To)
		default:
			fmt.Fprintf(&b, "%s %s: %s\n", one.Kind, one.By, one.Text)
		}
	}
	return b.String()
}

func (w *world) say(channel, text, mode string) view.Spoken {
	w.t.Helper()
	spoken, err := w.engine.Channels.Say(context.Background(), human, channel, text, mode)
	if err != nil {
		w.t.Fatal(err)
	}
	return spoken
}

func (w *world) connected(channel string, agents ...string) {
	w.t.Helper()
	w.channel(channel, "all are connected", func(v view.ChannelView) bool {
		return !slices.ContainsFunc(v.Agents, func(m view.MemberView) bool { return slices.Contains(agents, m.Name) && !m.Connected })
	})
}

// ledger returns what an agent recorded of its prompts.
func (w *world) ledger(agent string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, agent, "ledger"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(text)
}

func parked(v view.ChannelView) bool { return v.Holder == "" && v.Parked != "" }

// SPEC T2, T4, T7, J1: two agents answer a person and each other, each in one session, until their
// rounds are used.
func TestAgentsTalk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, channelYAML, map[string]string{
		"ada.yaml": answeringScript(`say: "I have read it. TURN_COMPLETE"`), "bob.yaml": answeringScript(`say: "So have I. TURN_COMPLETE"`),
	})
	w.connected("reviews", "ada", "bob")
	spoken := w.say("reviews", "please review", "")
	if spoken.MessageID != "reviews/1" || spoken.State != "queued" || spoken.N != 1 {
		t.Errorf("the message is %+v", spoken)
	}
	v := w.channel("reviews", "they have had their rounds", func(v view.ChannelView) bool { return parked(v) && v.Turn == 6 })
	if v.Parked != "rounds" || v.Messages != 7 || len(v.Open) != 0 || v.Last == nil || v.Last.By != "bob" {
		t.Errorf("the channel is %+v, last %+v", v, v.Last)
	}
	for agent, other := range map[string]string{"ada": "So have I.", "bob": "I have read it."} {
		prompts := w.ledger(agent)
		if n := strings.Count(prompts, "Channel reviews, turn "); n != 3 {
			t.Errorf("%s received %d turns:\n%s", agent, n, prompts)
		}
		if strings.Count(prompts, other) < 2 || strings.Count(prompts, "> please review") != 1 {
			t.Errorf("%s received:\n%s", agent, prompts)
		}
		if view := w.until(agent, "it listens", func(v view.AgentView) bool { return v.Session != nil }); view.Session.ID != agent+"-1" ||
			view.Session.For != team.ForChannels || view.Turn["reviews"] != "QUEUED" {
			t.Errorf("%s is %+v, session %+v", agent, view, view.Session)
		}
	}
	page, err := w.engine.Channels.ChannelEntries(t.Context(), "reviews", view.EntryQuery{})
	if err != nil || len(page.Entries) != 8 || page.Entries[7].Kind != "notice" || page.Entries[0].State != "answered" ||
		page.Entries[1].Text != "I have read it." || page.More {
		t.Errorf("the page is %+v, %v", page, err)
	}
	w.took("channel/reviews", "T2", "T4", "T7", "N6", "M1")
}

// SPEC T22, T8, T19, T10, T12: an agent passes; a single agent rests; an agent waits and continues.
func TestAgentsPassAndWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(channelYAML, "[ada, bob]", "[ada]", 1), map[string]string{
		"ada.yaml": answeringScript(
			`say: "I build it. TURN_WAIT"`,
			`run: "while [ ! -e go ]; do sleep 0.02; done"`,
			`say: "It is green."`, `say: TURN_COMPLETE`),
		"bob.yaml": answeringScript(`say: TURN_PASS`),
	})
	w.connected("reviews", "ada")
	w.say("reviews", "is it green?", "")
	v := w.channel("reviews", "ada waits", func(v view.ChannelView) bool { return v.State == "WAITING" })
	if v.Why != "I build it." || v.Deadline == nil {
		t.Errorf("the turn waits for %q until %v", v.Why, v.Deadline)
	}
	w.write("ada/go", "")
	v = w.channel("reviews", "ada rests", parked)
	if got := w.talk("reviews"); !strings.Contains(got, "turn ada: It is green.\n  T8 ada ACTIVE -> IDLE\n") &&
		!strings.Contains(got, "turn ada: It is green.\n") {
		t.Errorf("messages:\n%s", got)
	}
	w.took("channel/reviews", "T10", "T12", "T8")
	if v.Turn != 1 || strings.Count(w.ledger("ada"), "Channel reviews") != 1 {
		t.Errorf("the agent had %d turns and received:\n%s", v.Turn, w.ledger("ada"))
	}
	if _, err := w.engine.Channels.Assign(t.Context(), human, "reviews", "bob"); err != nil {
		t.Fatal(err)
	}
	w.say("reviews", "and now?", "")
	w.channel("reviews", "bob has passed",
		func(v view.ChannelView) bool { return parked(v) && strings.Contains(w.talk("reviews"), "T22 bob") })
}

// Of several words at the end of what an agent has written so far only the last one may end its turn, and only if
// nothing follows. While that is open, the words before it are text.
func TestWordBeforeTheLast(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]string{
		"with text":    {`say: "Hear me.\nTURN_COMPLETE"`, `say: TURN_PASS`},
		"without text": {`say: "Hear me."`, `run: "while [ ! -e heard ]; do sleep 0.02; done"`, `say: TURN_COMPLETE`, `say: TURN_PASS`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, channelYAML, map[string]string{
				"ada.yaml": answeringScript(slices.Concat(steps, []string{
					`run: "while [ ! -e go ]; do sleep 0.02; done"`, `say: "I am done."`, `say: TURN_COMPLETE`,
				})...),
				"bob.yaml": answeringScript(`say: "I am here. TURN_COMPLETE"`),
			})
			w.connected("reviews", "ada", "bob")
			w.say("reviews", "please review", "queue")
			w.channel("reviews", "the first words are posted",
				func(view.ChannelView) bool { return strings.Contains(w.talk("reviews"), "turn ada: Hear me.") })
			w.write("ada/heard", "")
			w.until("ada", "the last word is held back", func(view.AgentView) (is bool) {
				err := w.engine.Loop.View(t.Context(), func(now *team.Team) {
					is = slices.ContainsFunc(now.Agents["ada"].Sessions(),
						func(s *team.Session) bool { return s.Delivery != nil && s.Delivery.Held == "TURN_PASS\n" })
				})
				return err == nil && is
			})
			w.write("ada/go", "")
			w.channel("reviews", "bob has answered",
				func(view.ChannelView) bool { return strings.Contains(w.talk("reviews"), "turn bob: I am here.") })
			got, _, _ := strings.Cut(w.talk("reviews"), "turn bob: ") // there may be a second round
			if strings.Count(got, " ada ACTIVE -> QUEUED") != 1 || strings.Contains(got, "without TURN_COMPLETE") ||
				!strings.Contains(got, "I am done.\n") || strings.Contains(got, "late ada") {
				t.Errorf("messages:\n%s", got)
			}
		})
	}
}

// Seed 003, edge case 1: the agent that has the turn crashes. The next one gets the turn at once.
func TestAgentCrashesInItsTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, channelYAML, map[string]string{
		"ada.yaml": answeringScript(`say: "I begin"`, `crash`), "bob.yaml": answeringScript(`say: "I am here. TURN_COMPLETE"`),
	})
	w.connected("reviews", "ada", "bob")
	w.say("reviews", "please review", "")
	v := w.channel("reviews", "bob has answered", func(v view.ChannelView) bool { return parked(v) && v.Turn == 2 })
	got := w.talk("reviews")
	for _, want := range []string{
		"turn ada: I begin", "T11 ada ACTIVE -> OFFLINE", "⚠️ ada disconnected, skipping turn",
		"turn bob: I am here.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	w.channel("reviews", "ada is there again",
		func(v view.ChannelView) bool { return v.Agents[0].Connected && v.Agents[0].State == "IDLE" })
	w.took("turn/ada", "T18")
	if len(v.Queue) != 0 && v.Queue[0] == "ada" {
		t.Errorf("ada is queued again: %v", v.Queue)
	}
}

// Seed 003, edge case 2: an agent does not complete its turn. Its time runs out and its work is
// stopped. The next agent has enough time, also on a slow machine, because the short time limit
// ends with a restart as soon as one turn has timed out.
func TestAgentIsTooSlow(t *testing.T) {
	t.Parallel()
	patient := strings.Replace(strings.Replace(channelYAML, "defaultTimeoutSeconds: 30", "defaultTimeoutSeconds: 3600", 1),
		"agents: [ada, bob]}", "agents: [ada, bob], maxRounds: 1000}", 1)
	hasty := strings.Replace(patient, "3600", "1", 1)
	w := newWorld(t, hasty, map[string]string{
		"ada.yaml": answeringScript(`say: "hm"`, `{run: "[ ! -e patient ] || echo TURN_PASS", says: true}`,
			`{run: "[ -e patient ] || sleep 600"}`),
		"bob.yaml": answeringScript(`say: "I am here. TURN_COMPLETE"`),
	})
	w.connected("reviews", "ada", "bob")
	w.say("reviews", "please review", "queue")
	w.channel("reviews", "the turn of ada has timed out", func(view.ChannelView) bool {
		return strings.Contains(w.talk("reviews"), "T9 ada ACTIVE -> QUEUED")
	})
	w.until("ada", "its work was stopped", func(v view.AgentView) bool { return v.Session == nil || v.Session.ID != "ada-1" })
	w.stop()
	w.write("ada/patient", "")
	w.write("fairlead.yaml", patient)
	w.start()
	w.channel("reviews", "bob has answered",
		func(v view.ChannelView) bool { return strings.Contains(w.talk("reviews"), "turn bob: I am here.") })
	if got := w.talk("reviews"); !strings.Contains(got, "⏱️ ada turn timed out") {
		t.Errorf("messages:\n%s", got)
	}
	w.took("channel/reviews", "T9", "T4")
}

// Seed 003, edge case 3: a person interrupts and gets an answer first, then the turn continues.
func TestPersonInterrupts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, channelYAML, map[string]string{
		"ada.yaml": `
turn:
  - expect_prompt
  - run: 'echo "$SESSION $PROMPT" >> ledger'
  - {run: "case \"$PROMPT\" in *'stop this'*) touch asked;; *'goes on'*) touch goes;; esac"}
  - {run: "if [ -e goes ]; then echo 'I am done. TURN_COMPLETE'; elif [ -e asked ]; then echo 'I have stopped.'; else echo 'I begin'; touch began; fi", says: true}
  - {run: "[ -e asked ] || sleep 60"}
steps: [{say: x}]
`, "bob.yaml": answeringScript(`say: "I am here. TURN_COMPLETE"`),
	})
	w.connected("reviews", "ada", "bob")
	w.say("reviews", "please review", "queue")
	w.channel("reviews", "ada has begun", func(v view.ChannelView) bool { return strings.Contains(w.talk("reviews"), "turn ada: I begin") })
	w.say("reviews", "stop this", "interrupt")
	w.channel("reviews", "it went on", func(v view.ChannelView) bool { return strings.Contains(w.talk("reviews"), "turn ada: I am done.") })
	got := w.talk("reviews")
	for _, want := range []string{"T17 ada ACTIVE -> WAITING", "aside ada: I have stopped.", "turn ada: I am done."} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	prompts, _, _ := strings.Cut(w.ledger("ada"), "Channel reviews, turn 3") // bob may have had turn 2 by now
	if n := strings.Count(prompts, "Channel reviews"); n != 3 {
		t.Errorf("ada received %d prompts:\n%s", n, prompts)
	}
}

// SPEC T, mode inject: a message is delivered during an answer.
func TestPersonInjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, channelYAML, map[string]string{
		"ada.yaml": answeringScript(`say: "I begin"`, `expect_prompt`, `run: 'echo "$SESSION $PROMPT" >> ledger'`,
			`say: "I have heard it. TURN_COMPLETE"`),
		"bob.yaml": answeringScript(`say: TURN_PASS`),
	})
	w.connected("reviews", "ada", "bob")
	w.say("reviews", "please review", "queue")
	w.channel("reviews", "ada has begun", func(v view.ChannelView) bool { return strings.Contains(w.talk("reviews"), "turn ada: I begin") })
	w.say("reviews", "mind the tests", "inject")
	w.channel("reviews", "ada has heard it", func(v view.ChannelView) bool {
		return strings.Contains(w.talk("reviews"), "turn ada: I have heard it.")
	})
	if prompts := w.ledger("ada"); !strings.Contains(prompts, "a person said something while you have the turn") ||
		!strings.Contains(prompts, "> mind the tests") {
		t.Errorf("ada received:\n%s", prompts)
	}
	w.channel("reviews", "all is answered", func(v view.ChannelView) bool { return len(v.Open) == 0 })
}

// Seed 003, edge cases 4 to 6: an agent joins a conversation, one leaves it, and all disconnect.
func TestAgentsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, channelYAML, map[string]string{
		"ada.yaml": answeringScript(`say: "I begin"`, `{hang: it thinks}`), "bob.yaml": answeringScript(`say: "I am here. TURN_COMPLETE"`),
	})
	ctx := t.Context()
	w.connected("reviews", "ada", "bob")
	if _, err := w.engine.Channels.Unassign(ctx, human, "reviews", "bob"); err != nil {
		t.Fatal(err)
	}
	w.say("reviews", "please review", "queue")
	w.channel("reviews", "ada has begun", func(v view.ChannelView) bool { return strings.Contains(w.talk("reviews"), "turn ada: I begin") })
	if _, err := w.engine.Channels.Assign(ctx, human, "reviews", "bob"); err != nil {
		t.Fatal(err)
	}
	if v := w.channel("reviews", "bob stands in the queue", func(v view.ChannelView) bool { return len(v.Queue) == 1 }); v.Holder != "ada" {
		t.Errorf("the channel is %+v", v)
	}
	var refusal *table.Refusal
	if _, err := w.engine.Channels.Grant(ctx, human, "reviews", "bob", false); !errors.As(err, &refusal) || refusal.Row != "T23" {
		t.Errorf("a grant while ada has the turn: %v", err)
	}
	if _, err := w.engine.Channels.Unassign(ctx, human, "reviews", "ada"); err != nil {
		t.Fatal(err)
	}
	w.channel("reviews", "bob has answered",
		func(v view.ChannelView) bool { return strings.Contains(w.talk("reviews"), "turn bob: I am here.") })
	w.until("ada", "its work was stopped", func(v view.AgentView) bool { return v.Session == nil })
	for _, agent := range []string{"ada", "bob"} {
		if _, err := w.engine.Channels.Disable(ctx, human, agent); err != nil {
			t.Fatal(err)
		}
	}
	w.say("reviews", "anybody?", "")
	v := w.channel("reviews", "nobody is there", func(v view.ChannelView) bool { return v.Parked == "nobody" })
	if got := w.talk("reviews"); !strings.Contains(got, "⚠️ No agents available in this channel") || len(v.Open) != 1 {
		t.Errorf("without agents the messages are:\n%s", got)
	}
	if _, err := w.engine.Channels.Enable(ctx, human, "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.engine.Channels.Assign(ctx, human, "reviews", "bob"); err != nil {
		t.Fatal(err)
	}
	w.channel("reviews", "bob has answered that, too", func(v view.ChannelView) bool { return len(v.Open) == 0 })
	var unknown *team.Unknown
	if _, err := w.engine.Channels.Channel(ctx, "reviewz"); !errors.As(err, &unknown) || unknown.What != "channel" {
		t.Errorf("an unknown channel: %v", err)
	}
	if _, err := w.engine.Channels.AgentReady(ctx, "ada"); !errors.As(err, &refusal) || refusal.Row != "J3" {
		t.Errorf("ada reports that it is ready: %v", err)
	}
}

// numbered says a text with the agent's name and the number of its turn.
func numbered(text string) string {
	return `{run: 'echo "$NAME $(grep -c "it is your turn to speak" ledger) ` + text + `"', says: true}`
}

// TestRestartsInAConversation restarts the supervisor again and again during a conversation of real
// agents. Every turn is delivered once and every message is stored once.
func TestRestartsInAConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(channelYAML, "reviews: {agents: [ada, bob]}", "reviews: {agents: [ada, bob], maxRounds: 6}", 1),
		map[string]string{
			"ada.yaml": answeringScript(`sleep: 60ms`, numbered("begins"), `sleep: 60ms`, numbered("ends. TURN_COMPLETE")),
			"bob.yaml": answeringScript(`sleep: 60ms`, numbered("begins"), `sleep: 60ms`, numbered("ends. TURN_COMPLETE")),
		})
	w.connected("reviews", "ada", "bob")
	w.say("reviews", "please review", "")
	for n := range 8 {
		wait.Pause(time.Duration(31*n%90) * time.Millisecond) // a different moment of the turn each time
		w.stop()
		w.start()
		w.channel("reviews", "it is there again", func(view.ChannelView) bool { return true })
	}
	v := w.channel("reviews", "they have had their rounds", parked)
	if v.Parked != "rounds" || v.Turn != 12 {
		t.Errorf("the channel is %+v\n%s", v, w.talk("reviews"))
	}
	for _, agent := range []string{"ada", "bob"} {
		prompts := w.ledger(agent)
		for n := 1; n <= 12; n++ {
			if c := strings.Count(prompts, fmt.Sprintf("Channel reviews, turn %d:", n)); c > 1 {
				t.Errorf("%s received turn %d %d times", agent, n, c)
			}
		}
		if c := strings.Count(prompts, "it is your turn to speak"); c != 6 {
			t.Errorf("%s received %d turns", agent, c)
		}
		said := w.talk("reviews")
		for n := 1; n <= 6; n++ {
			for _, what := range []string{"begins", "ends."} {
				if c := strings.Count(said, fmt.Sprintf("%s %d %s", agent, n, what)); c != 1 {
					t.Errorf("%s %d %s occurs %d times", agent, n, what, c)
				}
			}
		}
	}
}

// TestAgentsWithoutInputTalk checks an agent whose program takes no input. It receives each turn in
// a new session. A person's message during its turn is delivered at the turn's end (SPEC, Turn,
// decided pairs).
func TestAgentsWithoutInputTalk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
version: 1
agents:
  ada: {driver: exec, workspace: ada, command: [sh, -c, 'cat >> ledger; echo "I begin"; while [ ! -e go ]; do sleep 0.02; done; echo "I am in $FAIRLEAD_CHANNEL, turn $FAIRLEAD_TURN."; echo TURN_COMPLETE']}
  bob: {driver: exec, workspace: bob, command: [sh, -c, 'cat >> ledger; echo TURN_PASS']}
channels:
  reviews: {agents: [ada, bob]}
`, nil)
	w.connected("reviews", "ada", "bob")
	w.say("reviews", "please review", "")
	w.channel("reviews", "ada has begun", func(view.ChannelView) bool { return strings.Contains(w.talk("reviews"), "turn ada: I begin") })
	w.say("reviews", "mind the tests", "inject")
	if v := w.channel("reviews", "it waits", func(v view.ChannelView) bool { return len(v.Open) == 2 }); v.Open[1].State != "queued" {
		t.Errorf("the message is %+v", v.Open[1])
	}
	w.write("ada/go", "")
	w.channel("reviews", "all is answered", func(v view.ChannelView) bool { return parked(v) && len(v.Open) == 0 })
	if got := w.talk("reviews"); !strings.Contains(got, "turn ada: I am in reviews, turn 1.\n") || !strings.Contains(got, "T22 bob") {
		t.Errorf("messages:\n%s", got)
	}
	for agent, prompts := range map[string]string{"ada": w.ledger("ada"), "bob": w.ledger("bob")} {
		if strings.Count(prompts, "> mind the tests") != 1 || strings.Count(prompts, "> please review") != 1 {
			t.Errorf("%s received:\n%s", agent, prompts)
		}
	}
}
