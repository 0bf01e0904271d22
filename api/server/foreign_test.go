package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// The reference's example of a foreign agent in a channel, line by line, with a real engine:
// what is written there is asked, and what stands below it is in the answer.
func TestForeignAgentByTheBook(t *testing.T) {
	yaml, lines := inBook(referenceMember)
	c := dial(t, serveTeam(t, memory.New(), newWorkspace(t), yaml))
	asked, said := 0, ""
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "ask "):
			asked++
			said = askAsWritten(t, c, line)
		case strings.HasPrefix(line, "{"):
			var want, got any
			if err := json.Unmarshal([]byte(line), &want); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if err := json.Unmarshal([]byte(said), &got); err != nil {
				t.Fatalf("%s: %v", said, err)
			}
			if why := holds(got, want); why != "" {
				t.Fatalf("%s\nis answered, and not\n%s\n%s", said, line, why)
			}
		}
	}
	if asked != strings.Count(referenceMember, "\nask ") {
		t.Errorf("%d requests were made", asked)
	}
	page, err := c.Channels.Entries(t.Context(), "reviews", view.EntryQuery{})
	var told []string
	for _, e := range page.Entries {
		if e.N > 0 {
			told = append(told, fmt.Sprintf("%d %s", e.N, e.Text))
		}
	}
	if want := "1 What do you see?|2 A fault in main.go.|3 Can you fix it?|4 It is fixed."; err != nil || strings.Join(told, "|") != want {
		t.Errorf("%q, %v", told, err)
	}
}

// inBook is what a chapter of the reference has in its blocks: a configuration, and lines.
func inBook(chapter string) (yaml string, lines []string) {
	blocks := strings.Split(chapter, "```")
	for i := 1; i < len(blocks); i += 2 {
		if rest, is := strings.CutPrefix(blocks[i], "yaml\n"); is {
			yaml = "version: 1\n" + rest
			continue
		}
		lines = append(lines, strings.Split(blocks[i], "\n")...)
	}
	return yaml, lines
}

// askAsWritten does what a line of the example does, and gives the answer.
func askAsWritten(t *testing.T, c *client.Client, line string) string {
	t.Helper()
	line, body, hasBody := strings.Cut(strings.TrimPrefix(line, "ask "), " -d '")
	method := http.MethodGet
	if rest, is := strings.CutPrefix(line, "-X POST "); is {
		line, method = rest, http.MethodPost
	}
	path := strings.TrimPrefix(strings.Trim(line, `"`), "$API")
	if hasBody != strings.HasSuffix(body, "'") || !strings.HasPrefix(path, "/") {
		t.Fatalf("this line cannot be read: %s", line)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://fairlead"+api.Base+path,
		strings.NewReader(strings.TrimSuffix(body, "'")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DialContext: c.DialContext}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s is answered with %s: %s %v", method, path, resp.Status, text, err)
	}
	return string(text)
}

// holds says what of want is not in got. A text that ends with an ellipsis is a beginning.
func holds(got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		is, _ := got.(map[string]any)
		for name, value := range want {
			if why := holds(is[name], value); why != "" {
				return name + ": " + why
			}
		}
		return ""
	case []any:
		is, _ := got.([]any)
		if len(is) != len(want) {
			return fmt.Sprintf("has %d, want %d", len(is), len(want))
		}
		for i := range want {
			if why := holds(is[i], want[i]); why != "" {
				return fmt.Sprintf("%d: %s", i, why)
			}
		}
		return ""
	case string:
		begin, cut := strings.CutSuffix(want, "…")
		if is, _ := got.(string); cut && strings.HasPrefix(is, begin) {
			return ""
		}
	}
	if got != want {
		return fmt.Sprintf("is %v, want %v", got, want)
	}
	return ""
}

const twoScouts = `version: 1
agents:
  coder: {description: Writes code, driver: exec, command: ["true"]}
  scout: {description: Looks around, loop: foreign}
  pilot: {description: Finds the way, loop: foreign}
channels:
  reviews: {agents: [scout, pilot, coder], maxRounds: 2}
`

// Two agents that join by requests talk in turns until their rounds are over, each
// receives what the other has said; no message appears twice, and no agent speaks without the turn.
func TestForeignAgentsTalk(t *testing.T) {
	c := dial(t, serveTeam(t, memory.New(), newWorkspace(t), strings.Replace(twoScouts, ", coder]", "]", 1)))
	ctx, cancel := context.WithCancel(t.Context())
	var agents sync.WaitGroup
	defer agents.Wait()
	defer cancel()
	for _, name := range []string{"scout", "pilot"} {
		if _, err := client.Post[api.Joined](ctx, c, "/agents/"+name+"/ready", api.EmptyBody{}); err != nil {
			t.Fatal(err)
		}
		agents.Go(func() {
			if err := talk(ctx, c, name); ctx.Err() == nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if _, err := c.Channels.Say(ctx, "reviews", "Which way?", ""); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "their rounds are over", func() bool {
		view, err := c.Channels.Show(ctx, "reviews")
		return err == nil && view.Parked == "rounds"
	})
	page, err := c.Channels.Entries(ctx, "reviews", view.EntryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range page.Entries {
		if e.N > 0 {
			told = append(told, e.Kind+" "+e.Text)
		}
	}
	want := "human Which way?|turn scout 1|turn pilot 2|turn scout 3|turn pilot 4"
	if got := strings.Join(told, "|"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// talk is an agent that says the number of every turn it gets. It ends with ctx, or a fault.
func talk(ctx context.Context, c *client.Client, name string) error {
	for {
		list, err := actionsOf(ctx, c, name, time.Minute)
		if err != nil {
			return err
		}
		for _, action := range list {
			if _, err := client.Post[api.Ordered](ctx, c, "/agents/"+name+"/actions/done", api.ConfirmBody{Key: action.Key}); err != nil {
				return err
			}
			if action.Do != "tell_turn" {
				continue
			}
			speech := view.Speech{
				Channel: action.Channel, Agent: name, Turn: action.Turn, Text: fmt.Sprint(name, " ", action.Turn),
				Complete: true,
			}
			if _, err := speak(ctx, c, speech); err != nil {
				return err
			}
		}
	}
}

// What agents and people may not do is refused in words, with a real engine.
func TestChannelRefusals(t *testing.T) {
	c := dial(t, serveTeam(t, memory.New(), newWorkspace(t), twoScouts))
	ctx := t.Context()
	_, ours := client.Post[api.Joined](ctx, c, "/agents/coder/ready", api.EmptyBody{})
	early := second(client.Post[api.Beaten](ctx, c, "/agents/scout/heartbeat", api.EmptyBody{}))
	_, noTurn := client.Post[api.Ordered](ctx, c, "/channels/reviews/pass", api.TurnBody{Agent: "scout", Turn: 1})
	_, offline := c.Channels.Grant(ctx, "reviews", "scout", false)
	_, still := c.Channels.Override(ctx, "reviews", true)
	_, empty := c.Channels.Skip(ctx, "reviews", 0)
	for what, err := range map[string]error{
		"one of ours joins": ours, "alive before it is there": early, "passes without a turn": noTurn,
		"the turn to who is away": offline, "nobody waits": still, "nothing to skip": empty,
	} {
		var refused *client.Refused
		if !errors.As(err, &refused) || refused.Refusal.Reason == "" && len(refused.Refusal.Takes) == 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !strings.Contains(ours.Error(), "[J3]") || !strings.Contains(early.Error(), "[T1]") {
		t.Errorf("the rules that forbid it are not named: %v; %v", ours, early)
	}
	_, noAgent := client.Post[api.Joined](ctx, c, "/agents/unknown/ready", api.EmptyBody{})
	_, noChannel := c.Channels.Say(ctx, "nowhere", "x", "")
	_, noMember := c.Channels.Assign(ctx, "reviews", "unknown")
	_, noAction := client.Post[api.Ordered](ctx, c, "/agents/scout/actions/done", api.ConfirmBody{Key: "a key of no action"})
	_, another := client.Post[api.Ordered](ctx, c, "/agents/scout/actions/done", api.ConfirmBody{Key: "tell_turn/reviews/pilot/1"})
	for what, err := range map[string]error{
		"agent": noAgent, "channel": noChannel, "member": noMember, "action": noAction,
		"another's action": another,
	} {
		var p *api.Problem
		if !errors.As(err, &p) || p.Status != 404 {
			t.Errorf("no such %s: %v", what, err)
		}
	}
	if _, err := client.Post[api.Joined](ctx, c, "/agents/scout/ready", api.EmptyBody{}); err != nil {
		t.Fatal(err)
	}
	if err := second(client.Post[api.Beaten](ctx, c, "/agents/scout/heartbeat", api.EmptyBody{})); err != nil {
		t.Error(err)
	}
	if _, err := speak(ctx, c, view.Speech{Channel: "reviews", Agent: "scout", Turn: 7, Text: "too late", Complete: true}); err != nil {
		t.Error(err)
	}
	page, err := c.Channels.Entries(ctx, "reviews", view.EntryQuery{})
	if err != nil ||
		!slices.ContainsFunc(page.Entries, func(e view.ChannelEntry) bool { return e.Kind == "late" && e.Text == "too late" }) {
		t.Errorf("what is said without the turn: %+v, %v", page.Entries, err)
	}
	done, err := c.Channels.Disable(ctx, "scout")
	if err != nil || done.Agent.Name != "scout" {
		t.Errorf("%+v, %v", done, err)
	}
}
