package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/read/view"
)

// foreignTeam starts a team of foreign agents in #talk that have all connected; the test acts for each of them
// over HTTP.
func foreignTeam(t *testing.T, more string, names ...string) (*rig, *apiclient.Client) {
	t.Helper()
	t.Parallel()
	yaml := "version: 1\nagents:\n"
	for _, name := range names {
		yaml += fmt.Sprintf("  %s: {driver: exec, command: [\"true\"], workspace: %s, loop: foreign}\n", name, name)
	}
	s := newRig(t,
		map[string]string{"fairlead.yaml": yaml + "channels:\n  talk: {agents: [" + strings.Join(names, ", ") + more +
			"}\nturnConfig: {defaultTimeoutSeconds: 3600}\n"})
	client := s.client()
	for _, name := range names {
		if _, err := apiclient.Post[api.Joined](t.Context(), client, "/agents/"+name+"/ready", api.EmptyBody{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Channels.Assign(t.Context(), "talk", name); err != nil {
			t.Fatal(err)
		}
	}
	return s, client
}

// action waits for the one thing that an agent is to do.
func action(t *testing.T, client *apiclient.Client, agent string) view.ActionView {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rigWait)
	defer cancel()
	for ctx.Err() == nil {
		all, err := actionsOf(ctx, client, agent, 10*time.Second)
		if err != nil {
			t.Fatalf("actions of %s: %v", agent, err)
		}
		if len(all) > 0 {
			return all[0]
		}
	}
	t.Fatalf("nothing is to be done by %s", agent)
	return view.ActionView{}
}

// refused wants a no with words in it.
func refused(t *testing.T, what string, err error, words string) {
	t.Helper()
	var no *apiclient.Refused
	if !errors.As(err, &no) || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, words)
	}
}

// lateWords are texts that were kept as late.
func lateWords(all []view.ChannelEntry) (texts []string) {
	for _, e := range all {
		if e.Kind == channels.EntryLate {
			texts = append(texts, e.By+": "+e.Text)
		}
	}
	return texts
}

// A turn is a lease with a number: who speaks under another's, under one that is over, or under
// one that never was, is kept and marked, and moves nothing.
func TestForeignSpeaksOutOfTurn(t *testing.T) {
	s, client := foreignTeam(t, "]", "ann", "ben")
	s.must("channel", "say", "talk", "begin")
	turn := action(t, client, "ann")
	if turn.Do != "tell_turn" || turn.Turn == 0 || !strings.Contains(turn.Text, "begin") {
		t.Fatalf("ann's action is %+v", turn)
	}
	before := s.floor("talk")
	say := func(agent string, turn uint64, text string) {
		t.Helper()
		if _, err := speak(t.Context(), client,
			view.Speech{Channel: "talk", Agent: agent, Turn: turn, Text: text, Complete: true, Ended: true}); err != nil {
			t.Errorf("%s says %q: %v", agent, text, err)
		}
	}
	say("ben", turn.Turn, "under ann's number")
	say("ben", turn.Turn+1, "under one that may come")
	say("ann", turn.Turn+7, "under one that never was")
	for what, err := range map[string]error{
		"ben passes ann's turn": second(apiclient.Post[api.Ordered](t.Context(), client, "/channels/talk/pass",
			api.TurnBody{Agent: "ben", Turn: turn.Turn})),
		"ben waits in ann's turn": second(apiclient.Post[api.Ordered](t.Context(), client, "/channels/talk/wait",
			api.WaitBody{Agent: "ben", Turn: turn.Turn, Why: "for fun"})),
		"ben goes on in ann's turn": second(apiclient.Post[api.Ordered](t.Context(), client, "/channels/talk/go-on",
			api.TurnBody{Agent: "ben", Turn: turn.Turn})),
		"ann passes one that is none": second(apiclient.Post[api.Ordered](t.Context(), client, "/channels/talk/pass",
			api.TurnBody{Agent: "ann", Turn: turn.Turn + 1})),
	} {
		refused(t, what, err, "it does not have turn")
	}
	if after := s.floor("talk"); after.Holder != "ann" || after.Turn != before.Turn || !after.Deadline.Equal(*before.Deadline) {
		t.Errorf("the turn was %+v and is %+v", before, after)
	}

	say("ann", turn.Turn, "I am done")
	say("ann", turn.Turn, "no, I am not") // stale
	refused(t, "a stale pass",
		second(apiclient.Post[api.Ordered](t.Context(), client, "/channels/talk/pass", api.TurnBody{Agent: "ann", Turn: turn.Turn})),
		"it does not have turn")
	if v := s.floor("talk"); v.Holder != "ben" || v.Turn != turn.Turn+1 {
		t.Errorf("ben should have the turn: %+v", v)
	}
	want := []string{"ben: under ann's number", "ben: under one that may come", "ann: under one that never was", "ann: no, I am not"}
	if got := lateWords(s.entries("talk")); !slices.Equal(got, want) {
		t.Errorf("late are %q, want %q", got, want)
	}
	refusedFor(t, client)
}

func second[T any](_ T, err error) error { return err }

// speak says something in a channel as a program does for its agent.
func speak(ctx context.Context, c *apiclient.Client, s view.Speech) (api.Ordered, error) {
	return apiclient.Post[api.Ordered](ctx, c, "/channels/"+s.Channel+"/said", api.SaidBody{
		Agent: s.Agent, Turn: s.Turn, Re: s.Re, Text: s.Text, Complete: s.Complete, Ended: s.Ended,
	})
}

// actionsOf is what an agent is to do, after a wait if there is nothing yet.
func actionsOf(ctx context.Context, c *apiclient.Client, agent string, wait time.Duration) ([]view.ActionView, error) {
	query := url.Values{"wait": {fmt.Sprintf("%dms", min(wait, api.PollMax).Milliseconds())}}
	all, err := apiclient.Get[api.Actions](ctx, c, "/agents/"+agent+"/actions", query)
	return all.Actions, err
}

// refusedFor checks that requests in the name of an unknown agent are refused with a message.
func refusedFor(t *testing.T, client *apiclient.Client) {
	t.Helper()
	var problem *api.Problem
	for what, err := range map[string]error{
		"ready": func() error {
			_, err := apiclient.Post[api.Joined](t.Context(), client, "/agents/nobody/ready", api.EmptyBody{})
			return err
		}(),
		"heartbeat": second(apiclient.Post[api.Beaten](t.Context(), client, "/agents/nobody/heartbeat", api.EmptyBody{})),
		"actions":   func() error { _, err := actionsOf(t.Context(), client, "nobody", time.Minute); return err }(),
		"told": second(apiclient.Post[api.Ordered](t.Context(), client, "/agents/nobody/actions/done",
			api.ConfirmBody{Key: "tell_turn/talk/nobody/1"})),
		"said":       second(speak(t.Context(), client, view.Speech{Channel: "talk", Agent: "nobody", Turn: 1, Text: "boo"})),
		"no channel": second(speak(t.Context(), client, view.Speech{Channel: "nowhere", Agent: "ann", Turn: 1, Text: "boo"})),
	} {
		if !errors.As(err, &problem) || problem.Status != http.StatusNotFound {
			t.Errorf("%s: %v, want 404", what, err)
		}
	}
}

// Two programs that use one agent's name are one agent, whichever acts first. No action happens twice,
// and no other agent's turn is affected.
func TestTwoClientsOfOneForeignAgent(t *testing.T) {
	s, client := foreignTeam(t, "]", "ann", "ben")
	twin := s.client()
	s.must("channel", "say", "talk", "begin")
	one, two := action(t, client, "ann"), action(t, twin, "ann")
	if one.Key != two.Key || one.Turn != two.Turn {
		t.Errorf("they are told %q and %q", one.Key, two.Key)
	}
	for _, c := range []*apiclient.Client{client, twin} {
		if _, err := apiclient.Post[api.Joined](t.Context(), c, "/agents/ann/ready", api.EmptyBody{}); err != nil {
			t.Errorf("ready once more: %v", err)
		}
		if _, err := apiclient.Post[api.Ordered](t.Context(), c, "/agents/ann/actions/done", api.ConfirmBody{Key: one.Key}); err != nil {
			t.Errorf("told once more: %v", err)
		}
	}
	var done sync.WaitGroup
	for i, c := range []*apiclient.Client{client, twin} {
		done.Go(func() {
			if _, err := speak(t.Context(), c,
				view.Speech{Channel: "talk", Agent: "ann", Turn: one.Turn, Text: fmt.Sprintf("twin %d", i), Complete: true}); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	kinds := map[string]int{}
	for _, e := range s.entries("talk") {
		if e.By == "ann" && e.Kind != channels.EntryMoved {
			kinds[e.Kind]++
		}
	}
	if kinds[channels.EntryTurn] != 1 || kinds[channels.EntryLate] != 1 {
		t.Errorf("one of them is in time and one late: %v\n%s", kinds, s.conversation("talk"))
	}
	if v := s.floor("talk"); v.Holder != "ben" || v.Turn != one.Turn+1 {
		t.Errorf("ben should have the next turn: %+v", v)
	}
	if all, err := actionsOf(t.Context(), client, "ann", 0); err != nil || len(all) != 0 {
		t.Errorf("ann is to do %+v, %v", all, err)
	}
}

// A client with the token may act only for foreign agents: it cannot keep one of Fairlead's own agents alive,
// or end it.
func TestNobodySpeaksForOurOwn(t *testing.T) {
	t.Parallel()
	s := newRig(t, talkers("channels:\n  talk: {agents: [ada]}\n", "ada"))
	client := s.client()
	_, err := apiclient.Post[api.Joined](t.Context(), client, "/agents/ada/ready", api.EmptyBody{})
	refused(t, "ready", err, "ada")
	refused(t, "heartbeat", second(apiclient.Post[api.Beaten](t.Context(), client, "/agents/ada/heartbeat", api.EmptyBody{})), "ada")
	refused(t, "leave", second(apiclient.Post[api.Ordered](t.Context(), client, "/agents/ada/leave", api.EmptyBody{})), "ada")
	if v := s.floor("talk"); !member(v, "ada").Connected {
		t.Errorf("ada is %+v", member(v, "ada"))
	}
}

// After a crash of the daemon a foreign agent asks again and is given the same action, under the
// same key, with the same deadline; what it did before is not done again.
func TestForeignAgentOutlivesTheDaemon(t *testing.T) {
	s, client := foreignTeam(t, ", ], humanInterruptMode: queue", "ann", "ben")
	s.must("channel", "say", "talk", "begin")
	before := action(t, client, "ann")
	shown := s.floor("talk")
	s.kill()
	s.up()
	client = s.client()
	after := action(t, client, "ann")
	if after.Key != before.Key || after.Turn != before.Turn || after.Text != before.Text {
		t.Errorf("the action was\n%+v\nand is\n%+v", before, after)
	}
	if now := s.floor("talk"); now.Holder != "ann" || now.Deadline == nil || !now.Deadline.Equal(*shown.Deadline) {
		t.Errorf("the turn was %+v and is %+v", shown, now)
	}
	if _, err := apiclient.Post[api.Ordered](t.Context(), client, "/agents/ann/actions/done", api.ConfirmBody{Key: after.Key}); err != nil {
		t.Error(err)
	}
	s.kill()
	s.up()
	client = s.client()
	if all, err := actionsOf(t.Context(), client, "ann", 0); err != nil || len(all) != 0 {
		t.Errorf("it was told, and is to do %+v, %v", all, err)
	}
	if err := second(apiclient.Post[api.Beaten](t.Context(), client, "/agents/ann/heartbeat", api.EmptyBody{})); err != nil {
		t.Errorf("it lives, and is not believed after the crash: %v", err)
	}
	if _, err := speak(t.Context(), client,
		view.Speech{Channel: "talk", Agent: "ann", Turn: before.Turn, Text: "done", Complete: true}); err != nil {
		t.Error(err)
	}
	if next := action(t, client, "ben"); next.Do != "tell_turn" || !strings.Contains(next.Text, "done") {
		t.Errorf("ben's action is %+v", next)
	}
}

// A person, or a program of his, that says thousands of things in a moment: some are taken, the
// others are refused in words, each one that was taken is there once, and others are served.
func TestFloodOfMessages(t *testing.T) {
	s, _ := foreignTeam(t, "]", "ann", "ben")
	all := 2000
	if long() {
		all = 10_000
	}
	var taken, refusals atomic.Int64
	var mu sync.Mutex
	var sent []string
	begun := time.Now()
	var done sync.WaitGroup
	for hand := range 8 {
		client := s.client()
		done.Go(func() {
			for i := range all / 8 {
				text := fmt.Sprintf("flood-%d-%d", hand, i)
				_, err := client.Channels.Say(t.Context(), "talk", text, "queue")
				var no *apiclient.Refused
				switch {
				case err == nil:
					taken.Add(1)
					mu.Lock()
					sent = append(sent, text)
					mu.Unlock()
				case errors.As(err, &no) && strings.Contains(err.Error(), "wait for an answer, which is the limit"):
					refusals.Add(1)
				default:
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
	done.Wait()
	t.Logf("%d messages in %s: %d taken, %d refused", all, time.Since(begun).Round(time.Millisecond), taken.Load(), refusals.Load())
	if taken.Load() == 0 || refusals.Load() == 0 {
		t.Errorf("%d taken, %d refused: the limit was not met", taken.Load(), refusals.Load())
	}
	if f := (books{}).audit(s.entries("talk"), sent); len(f.lostWords)+len(f.twiceWords)+len(f.moves) > 0 {
		wrong := slices.Concat(f.lostWords, f.twiceWords, f.moves)
		t.Errorf("%d faults: %.20q", len(wrong), wrong)
	}
	// Stop and interrupt never wait behind messages: there is room for them beyond the limit.
	if out, code := s.fairlead("channel", "say", "talk", "stop", "--mode", "interrupt"); code != cli.ExitDone {
		t.Errorf("an interruption is refused (%d): %s", code, out)
	}
	if out, code := s.fairlead("channel", "skip", "talk"); code != cli.ExitDone {
		t.Errorf("a skip is refused (%d): %s", code, out)
	}
}

// A message has 128 KiB at most. One that has all of them arrives whole, also at an agent's.
func TestLongestMessage(t *testing.T) {
	s, client := foreignTeam(t, "]", "ann", "ben")
	longest := strings.Repeat("0123456789abcde\n", 128<<10/16)
	if _, err := client.Channels.Say(t.Context(), "talk", longest, ""); err != nil {
		t.Errorf("128 KiB: %v", err)
	}
	for what, text := range map[string]string{
		"one byte more":                   longest + "x",
		"as many letters, and more bytes": strings.Repeat("ä", 128<<10),
		"nothing":                         "",
	} {
		_, err := client.Channels.Say(t.Context(), "talk", text, "")
		var problem *api.Problem
		var no *apiclient.Refused
		if !errors.As(err, &problem) && !errors.As(err, &no) {
			t.Errorf("%s: %v, want a no", what, err)
		}
		if err != nil && len(err.Error()) > 2000 {
			t.Errorf("%s: the answer has %d bytes", what, len(err.Error()))
		}
	}
	all := s.entries("talk")
	last := all[len(all)-1]
	for _, e := range all {
		if e.Kind == channels.EntryHuman {
			last = e
		}
	}
	if last.Text != longest || last.N != 1 {
		t.Errorf("message %d has %d bytes", last.N, len(last.Text))
	}
	turn := action(t, client, "ann")
	if strings.Count(turn.Text, "> 0123456789abcde\n") != 128<<10/16 || len(turn.Text) > 300<<10 {
		t.Errorf("ann is told %d bytes of it", len(turn.Text))
	}
	for what, text := range map[string]string{"one byte more": longest + "x", "much more": strings.Repeat(longest, 12)} {
		if _, err := speak(t.Context(), client, view.Speech{Channel: "talk", Agent: "ann", Turn: turn.Turn, Text: text}); err == nil {
			t.Errorf("an agent says %s", what)
		}
	}
	if v := s.floor("talk"); v.Messages != 1 || v.Holder != "ann" {
		t.Errorf("what was refused has moved something: %+v", v)
	}
	// What is no text is none: it is shown as replaced, or refused, and never breaks a line of JSON.
	_, err := speak(t.Context(), client, view.Speech{Channel: "talk", Agent: "ann", Turn: turn.Turn, Text: "a\xff\xfe\x00b" + evil})
	for _, e := range s.entries("talk") {
		if !utf8.ValidString(e.Text) {
			t.Errorf("%q is shown (%v)", e.Text, err)
		}
	}
}

// Every command refuses unknown channels and agents with a message that cannot control the terminal.
func TestEvilChannelNames(t *testing.T) {
	s, _ := foreignTeam(t, "]", "ann", "ben")
	names := []string{
		"..", "../../etc/passwd", "a/b", "talk\n", "%2e%2e", "-rf", "talk" + evil, strings.Repeat("a", 5000), "TALK",
		"#talk ", "",
	}
	for _, name := range names {
		for _, words := range [][]string{
			{"channel", "list", "--", name},
			{"channel", "say", "--", name, "hello"},
			{"watch", "--no-follow", "--", name},
			{"channel", "grant", "--", name, "ann"},
			{"channel", "grant", "--", "talk", name},
			{"channel", "skip", "--", name},
			{"channel", "override", "--resume", "--", name},
			{"channel", "assign", "--", "talk", name},
			{"channel", "remove", "--", name, "ann"},
			{"channel", "disable", "--", name},
		} {
			seen, code := s.onTerminal(words...)
			what := fmt.Sprintf("%.60q", words)
			harmless(t, what, seen)
			if code != cli.ExitFailed && code != cli.ExitUsage && code != cli.ExitRefused || len(seen) == 0 || len(seen) > 2000 {
				t.Errorf("%s: exit code %d, %d bytes are shown: %.200q", what, code, len(seen), seen)
			}
		}
	}
	if v := s.floor("talk"); v.Messages != 0 || len(v.Agents) != 2 {
		t.Errorf("something has come through: %+v", v)
	}
}

// A thousand requests wait for actions at once (a hundred in the ordinary tests), and read nothing
// of the answer: the limits are said, everybody else is served, and when they go nothing of them
// stays.
func TestThousandLongPolls(t *testing.T) {
	agents := 20 // with four each; more are tried than are let in
	if long() {
		agents = 250
	}
	names := make([]string, agents+10)
	for i := range names {
		names[i] = fmt.Sprintf("agent-%03d", i)
	}
	yaml := "version: 1\nagents:\n"
	for _, name := range names {
		yaml += fmt.Sprintf("  %s: {driver: exec, command: [\"true\"], workspace: w/%s, loop: foreign}\n", name, name)
	}
	t.Parallel()
	s := newRig(t, map[string]string{"fairlead.yaml": yaml + "channels:\n  talk: {agents: [agent-000, agent-001]}\n"})
	client := s.client()
	if _, err := apiclient.Post[api.Joined](t.Context(), client, "/agents/"+names[0]+"/ready", api.EmptyBody{}); err != nil {
		t.Fatal(err)
	}
	daemon, err := workspace.FindDaemon(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	// Written by hand: a client that never reads.
	poll := func(name string) net.Conn {
		conn, err := net.Dial("unix", daemon.Socket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET /api/v1/agents/%s/actions?wait=60s HTTP/1.1\r\nHost: localhost\r\n\r\n", name); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	var waiting []net.Conn
	defer func() {
		for _, conn := range waiting {
			conn.Close()
		}
	}()
	for _, name := range names[:agents+9] {
		for range 5 {
			waiting = append(waiting, poll(name))
		}
	}
	tooMany := func(name, words string) {
		t.Helper()
		s.poll("a request more is refused: "+words, func() bool {
			_, err := actionsOf(t.Context(), client, name, 0)
			waiting = append(waiting, poll(name)) // this one may have kept another out
			return err != nil && strings.Contains(err.Error(), words)
		})
	}
	tooMany(names[0], "4 requests already wait for actions of agent-000")
	if long() {
		tooMany(names[agents+9], "1000 requests already wait for actions")
	}
	begun := time.Now()
	s.must("channel", "say", "talk", "begin") // agent-000 has the turn: four of them are answered, and no client reads the answers
	s.must("ps")
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("two verbs took %s meanwhile", took)
	}
	if turn, err := actionsOf(t.Context(), client, names[0], 0); err != nil || len(turn) != 1 {
		t.Errorf("who reads is told %+v, %v", turn, err)
	}
	for _, conn := range waiting {
		conn.Close()
	}
	s.poll("they are forgotten", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := actionsOf(ctx, client, names[agents+9], 10*time.Millisecond)
		return err == nil
	})
}

// What a foreign agent says of why it waits is text to a terminal, like all that it says.
func TestEvilReasonToWait(t *testing.T) {
	s, client := foreignTeam(t, "]", "ann", "ben")
	s.must("channel", "say", "talk", "begin")
	turn := action(t, client, "ann")
	if _, err := apiclient.Post[api.Ordered](t.Context(), client, "/channels/talk/wait",
		api.WaitBody{Agent: "ann", Turn: turn.Turn, Why: "for you " + evil + "\r12:00:00  ben  #99\nTURN_COMPLETE"}); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"channel", "list"},
		{"channel", "list", "talk"},
		{"watch", "talk", "--no-follow", "--moves"},
		{"why", "ann"},
		{"ps"},
		{"events"},
		{"channel", "override", "talk", "--resume"},
	} {
		seen, code := s.onTerminal(words...)
		harmless(t, strings.Join(words, " "), seen)
		if code != cli.ExitDone || len(seen) == 0 {
			t.Errorf("%q: exit code %d, %q", words, code, seen)
		}
		for line := range strings.Lines(seen) {
			if strings.HasPrefix(line, "12:00:00") {
				t.Errorf("%q shows a line of ours that is none: %q", words, line)
			}
		}
	}
	if again := action(t, client, "ann"); again.Do != "tell_go_on" {
		t.Errorf("ann is to do %+v", again)
	}
}

// A foreign agent that says more than anybody reads, in its turn and without one, is refused in
// words before the journal fills.
func TestForeignFloods(t *testing.T) {
	s, client := foreignTeam(t, "]", "ann", "ben")
	s.must("channel", "say", "talk", "begin")
	turn := action(t, client, "ann")
	before := s.stateBytes()
	text := strings.Repeat("0123456789abcde\n", 128<<10/16)
	for _, name := range []string{"ann", "ben"} {
		var err error
		for i := 0; i < 200 && err == nil; i++ {
			_, err = speak(t.Context(), client, view.Speech{Channel: "talk", Agent: name, Turn: turn.Turn, Text: text})
		}
		refused(t, name+" says 25 MiB", err, "the limit is")
	}
	if grown := s.stateBytes() - before; grown > postedMax {
		t.Errorf("the journal has grown by %d bytes", grown)
	}
	if _, err := speak(t.Context(), client,
		view.Speech{Channel: "talk", Agent: "ann", Turn: turn.Turn, Complete: true, Ended: true}); err != nil {
		t.Errorf("its turn cannot be ended any more: %v", err)
	}
	if v := s.floor("talk"); v.Holder != "ben" {
		t.Errorf("ben should have the turn: %+v", v)
	}
}
