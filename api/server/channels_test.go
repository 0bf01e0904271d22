package server

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/google/go-cmp/cmp"
)

// channelsAsked is a call of every route about channels.
var channelsAsked = []askedOnce{
	{"join-turns", "POST", "/agents/scout/ready", "", `"seq" "heartbeat_ms":10000 "missed_max":3`},
	{"send-heartbeat", "POST", "/agents/scout/heartbeat", "", `"heartbeat_ms":10000`},
	{"join-turns", "POST", "/agents/pilot/ready", "", `"seq"`},
	{
		"say-message", "POST", "/channels/reviews/messages", `{"text":"hello","mode":"queue"}`,
		`"message_id":"reviews/1" "n":1 "state":"queued" "seq"`,
	},
	{
		"list-channels", "GET", "/channels", "",
		`"channels" "head" "name":"reviews" "queue":["pilot"] "holder":"scout" "state":"ACTIVE" "deadline":" "messages":1 "turn":1 "since" "why" "parked" "mode":"inject" "lead" "rounds_max":3 "timeout_ms":60000 "aside":null "agents":[{ "open":[{ "configured":true`,
	},
	{"get-channel", "GET", "/channels/reviews", "", `"name":"reviews" "queue":["pilot"] "aside":null`},
	{
		"fetch-actions", "GET", "/agents/scout/actions?wait=30s", "",
		`"key":"tell_turn/reviews/scout/1" "do":"tell_turn" "channel":"reviews" "agent" "turn":1 "text" "deadline":"`,
	},
	{"confirm-action", "POST", "/agents/scout/actions/done", `{"key":"tell_turn/reviews/scout/1"}`, `"seq"`},
	{"ask-wait", "POST", "/channels/reviews/wait", `{"agent":"scout","turn":1,"why":"tests"}`, `"seq"`},
	{"resume-turn", "POST", "/channels/reviews/go-on", `{"agent":"scout","turn":1}`, `"seq"`},
	{"ask-wait", "POST", "/channels/reviews/wait", `{"agent":"scout","turn":1,"why":"tests"}`, `"seq"`},
	{"override-wait", "POST", "/channels/reviews/override", `{"go_on":true}`, `"seq" "channel" "state":"ACTIVE"`},
	{"say-turn", "POST", "/channels/reviews/said", `{"agent":"scout","turn":1,"text":"x","complete":true}`, `"seq"`},
	{"pass-turn", "POST", "/channels/reviews/pass", `{"agent":"pilot","turn":2}`, `"seq"`},
	{"say-message", "POST", "/channels/reviews/messages", `{"text":"more"}`, `"message_id":"reviews/3"`},
	{"grant-turn", "POST", "/channels/reviews/grant", `{"agent":"scout"}`, `"seq" "channel" "name":"reviews" "holder":"scout"`},
	{"skip-turn", "POST", "/channels/reviews/skip", "", `"seq" "channel" "holder":"pilot"`},
	{"remove-agent", "DELETE", "/channels/reviews/members/pilot", "", `"seq" "channel" "holder":"scout"`},
	{"assign-agent", "POST", "/channels/reviews/members", `{"agent":"pilot"}`, `"seq" "channel" "queue":["pilot"]`},
	{"disable-agent", "POST", "/agents/coder/disable", "", `"seq" "agent" "name":"coder" "disabled":true`},
	{"enable-agent", "POST", "/agents/coder/enable", "{}", `"seq" "agent" "disabled":false`},
	{"leave-turns", "POST", "/agents/scout/leave", "", `"seq"`},
	{
		"read-channel", "GET", "/channels/reviews/entries?limit=5&moves=true", "",
		`"entries" "more":true "head" "seq" "at" "kind":"moved" "by":"sam "trigger":"assigned"`,
	},
}

// serveGuests serves a team whose channel has two agents that have joined.
func serveGuests(t testing.TB) (*served, *client.Client) {
	t.Helper()
	s := serveTeam(t, memory.New(), newWorkspace(t), guests)
	c := dial(t, s)
	for _, name := range []string{"scout", "pilot"} {
		if _, err := client.Post[api.Joined](t.Context(), c, "/agents/"+name+"/ready", api.EmptyBody{}); err != nil {
			t.Fatal(err)
		}
	}
	return s, c
}

// Every order of a person about a channel does what it says, in the name of the person.
func TestChannelOrders(t *testing.T) {
	s, c := serveGuests(t)
	ctx := t.Context()
	before := len(s.sup.changes(t))
	spoken, err := c.Channels.Say(ctx, "reviews", "look at <b>this</b>\n", "interrupt")
	if err != nil || spoken.MessageID != "reviews/1" || spoken.N != 1 || spoken.State != "queued" || spoken.Seq == 0 {
		t.Errorf("said: %+v, %v", spoken, err)
	}
	if page, err := c.Channels.Entries(ctx, "reviews", view.EntryQuery{}); err != nil || len(page.Entries) != 1 ||
		page.Entries[0].Text != "look at <b>this</b>\n" || page.Entries[0].Mode != "interrupt" || page.Entries[0].By != "sam" {
		t.Errorf("%+v, %v", page, err)
	}
	holder := func(what, want string, got api.ChannelOrdered, err error) {
		t.Helper()
		if err != nil || got.Seq == 0 || got.Channel.Holder != want {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	got, err := c.Channels.Grant(ctx, "reviews", "pilot", true)
	holder("the turn for pilot", "pilot", got, err)
	got, err = c.Channels.Skip(ctx, "reviews", got.Channel.Turn)
	holder("pilot is skipped", "scout", got, err)
	var refused *client.Refused
	if _, err := c.Channels.Skip(ctx, "reviews", got.Channel.Turn-1); !errors.As(err, &refused) {
		t.Errorf("a turn that is over is skipped: %v", err)
	}
	for _, goOn := range []bool{true, false} {
		if _, err := client.Post[api.Ordered](ctx, c, "/channels/reviews/wait",
			api.WaitBody{Agent: "scout", Turn: got.Channel.Turn, Why: "tests"}); err != nil {
			t.Fatal(err)
		}
		over, err := c.Channels.Override(ctx, "reviews", goOn)
		holder("the wait ends", map[bool]string{true: "scout", false: "pilot"}[goOn], over, err)
	}
	got, err = c.Channels.Unassign(ctx, "reviews", "pilot")
	if err != nil || len(got.Channel.Agents) != 1 {
		t.Errorf("pilot is removed: %+v, %v", got, err)
	}
	if got, err = c.Channels.Assign(ctx, "reviews", "pilot"); err != nil || len(got.Channel.Agents) != 2 {
		t.Errorf("pilot is assigned: %+v, %v", got, err)
	}
	able, err := c.Channels.Disable(ctx, "coder")
	if err != nil || !able.Agent.Disabled {
		t.Errorf("disabled: %+v, %v", able, err)
	}
	if able, err = c.Channels.Enable(ctx, "coder"); err != nil || able.Agent.Disabled {
		t.Errorf("enabled: %+v, %v", able, err)
	}
	all := s.sup.changes(t)[before:]
	if len(all) < 9 {
		t.Errorf("changes: %q", all)
	}
	for _, line := range all {
		if !strings.HasPrefix(line, "human sam: ") && !strings.HasPrefix(line, "agent scout: ") {
			t.Errorf("in whose name: %s", line)
		}
	}
	var p *api.Problem
	if _, err := c.Channels.Show(ctx, "nowhere"); !errors.As(err, &p) || p.Status != 404 || len(p.Known) != 1 || p.Known[0] != "reviews" {
		t.Errorf("%v", err)
	}
}

// What people read of channels, and how they follow one.
func TestReadChannels(t *testing.T) {
	s, c := serveGuests(t)
	ctx := t.Context()
	var last uint64
	for n := range 12 {
		spoken, err := c.Channels.Say(ctx, "reviews", fmt.Sprint("message ", n+1), "")
		if err != nil {
			t.Fatal(err)
		}
		last = spoken.Seq
	}
	all, err := c.Channels.List(ctx)
	if err != nil || len(all.Channels) != 1 || all.Channels[0].Queue[0] != "pilot" || all.Head != last {
		t.Errorf("%+v, %v", all, err)
	}
	if one, err := c.Channels.Show(ctx, "reviews"); err != nil || one.Deadline == nil || len(one.Agents) != 2 || one.Messages != 12 {
		t.Errorf("%+v, %v", one, err)
	}
	texts := func(q view.EntryQuery) (of []string, seqs []uint64, more bool) {
		t.Helper()
		page, err := c.Channels.Entries(ctx, "reviews", q)
		if err != nil || page.Head != last || page.Entries == nil {
			t.Errorf("%+v: %+v, %v", q, page, err)
		}
		for _, e := range page.Entries {
			of, seqs = append(of, e.Kind+" "+e.Text), append(seqs, e.Seq)
		}
		return of, seqs, page.More
	}
	whole, seqs, more := texts(view.EntryQuery{})
	if len(whole) != 12 || more || whole[0] != "human message 1" || whole[11] != "human message 12" {
		t.Errorf("%q", whole)
	}
	if got, _, more := texts(view.EntryQuery{Before: seqs[8], Limit: 2}); !more || cmp.Diff(whole[6:8], got) != "" {
		t.Errorf("%q", got)
	}
	if got, _, more := texts(view.EntryQuery{After: seqs[8], Limit: 500}); more || cmp.Diff(whole[9:], got) != "" {
		t.Errorf("%q", got)
	}
	if got, _, _ := texts(view.EntryQuery{Moves: true}); len(got) <= 12 {
		t.Errorf("no moves: %q", got)
	}
	if got, _, _ := texts(view.EntryQuery{After: last}); len(got) > 0 {
		t.Errorf("%q", got)
	}
	s.sup.add(t, "coder", 3)
	told := 0
	for ch, err := range c.Events(ctx, client.EventsQuery{Entity: "channel/reviews", After: int64(s.sup.first)}) {
		if err != nil || ch.Entity != "channel/reviews" {
			t.Fatal(ch, err)
		}
		if told++; ch.Seq == last || ch.Seq+1 == last {
			break
		}
	}
	if told < 12 {
		t.Errorf("told of %d changes", told)
	}
}

// X10: an agent in one of Fairlead's sessions gives no orders about channels and does not speak as a
// person. It may read. It acts only in its own name; a step's session has no name.
func TestAgentsInChannels(t *testing.T) {
	sup := supervise(t, memory.New(), t.TempDir(), strings.NewReplacer("scout", "coder2", "pilot", "reviewer2").Replace(guests))
	h := New(Options{Engine: sup.App, User: "sam"}).SocketHandler()
	people := map[string]string{
		"POST /channels/reviews/messages": `{"text":"x"}`, "POST /channels/reviews/grant": `{"agent":"coder2"}`,
		"POST /channels/reviews/skip":     "",
		"POST /channels/reviews/override": `{"go_on":true}`, "POST /channels/reviews/members": `{"agent":"coder2"}`,
		"DELETE /channels/reviews/members/coder2": "",
		"POST /agents/reviewer2/disable":          "", "POST /agents/reviewer2/enable": "", "POST /agents/coder2/disable": "",
	}
	own := map[string]string{
		"POST /agents/coder2/ready": "", "POST /agents/coder2/heartbeat": "", "POST /agents/coder2/leave": "",
		"POST /agents/coder2/actions/done": `{"key":"k"}`,
		"POST /channels/reviews/said":      `{"agent":"coder2","turn":3,"text":"x"}`,
		"POST /channels/reviews/pass":      `{"agent":"coder2","turn":3}`,
		"POST /channels/reviews/wait":      `{"agent":"coder2","turn":3}`, "POST /channels/reviews/go-on": `{"agent":"coder2","turn":3}`,
		"GET /agents/coder2/actions": "",
	}
	for _, rt := range append(channelRoutes(), memberRoutes()...) {
		at := rt.Method + " " + strings.NewReplacer("{channel}", "reviews", "{agent}", "coder2", "{name}", "coder2").Replace(rt.Path)
		if _, is := own[at]; !is && people[at] == "" && !strings.HasPrefix(at, "GET /channels") && !strings.Contains(at, "able") &&
			!strings.Contains(at, "skip") && rt.Method != "DELETE" {
			t.Errorf("%s is not tried", at)
		}
	}
	reads := map[string]string{"GET /channels": "", "GET /channels/reviews": "", "GET /channels/reviews/entries": ""}
	for who, may := range map[caller.Caller]struct{ order, act bool }{
		{Session: "coder2-17"}: {false, true}, {Session: "reviewer2-3"}: {}, {Session: "coder2@r1-2"}: {}, {Unseen: true}: {},
		{}: {true, true},
	} {
		try := func(at map[string]string, allowed bool) {
			for what, body := range at {
				before := sup.orders(t)
				method, path, _ := strings.Cut(what, " ")
				w := httptest.NewRecorder()
				req := httptest.NewRequestWithContext(as(t, who), method, api.Base+path, strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				h.ServeHTTP(w, req)
				x10 := w.Code == 409 && problemText(t, w.Body.String()).Refusal.Row == "X10"
				if x10 == allowed || !allowed && sup.orders(t) != before || w.Code == 500 { // what is allowed may be refused for its state
					t.Errorf("%+v: %s: %d %s", who, what, w.Code, w.Body)
				}
			}
		}
		try(people, may.order)
		try(own, may.act)
		try(reads, true)
	}
}

// Names and words that are none are refused before the engine is asked.
func TestChannelInputs(t *testing.T) {
	s, _ := serveGuests(t)
	before := s.sup.orders(t)
	for _, c := range []struct{ path, body, words string }{
		{"/channels/-x/skip", "", "path.channel"},
		{"/channels/" + strings.Repeat("a", 65) + "/skip", "", "path.channel"},
		{"/channels/reviews/messages", `{"text":""}`, "body.text"},
		{"/channels/reviews/messages", `{"mode":"queue"}`, "text"},
		{"/channels/reviews/messages", `{"text":"x","mode":"shout"}`, "body.mode"},
		{"/channels/reviews/messages", `{"text":"x","by":"root"}`, "body.by"},
		{"/channels/reviews/messages", `{"text":"` + strings.Repeat("a", 131073) + `"}`, "body.text"},
		{"/channels/reviews/grant", `{"agent":"../x"}`, "body.agent"},
		{"/channels/reviews/grant", `{"now":true}`, "agent"},
		{"/channels/reviews/skip", `{"turn":-1}`, "body.turn"},
		{"/channels/reviews/skip", `{"trun":1}`, "body.trun"},
		{"/channels/reviews/override", `{}`, "go_on"},
		{"/channels/reviews/said", `{"agent":"coder","text":"x"}`, "turn"},
		{"/channels/reviews/said", `{"agent":"coder","turn":3,"text":""}`, "body.text"},
		{"/channels/reviews/pass", `{"agent":"coder","turn":0}`, "body.turn"},
		{"/agents/coder/ready", `{"now":true}`, "body.now"},
		{"/agents/coder/actions/done", `{"key":""}`, "body.key"},
	} {
		text, _ := s.want(t, 422, "POST", api.Base+c.path, c.body)
		if !strings.Contains(text, c.words) || len(text) > 2000 {
			t.Errorf("%s %.80s: %.2000s", c.path, c.body, text)
		}
	}
	for _, path := range []string{
		"/channels/reviews/entries?before=3&after=2", "/channels/reviews/entries?limit=501", "/channels/reviews/entries?limit=0",
		"/channels/reviews/entries?after=-1",
		"/channels/reviews/entries?moves=maybe", "/channels/reviews/entries?tail=3", "/agents/coder/actions?wait=61s",
		"/agents/coder/actions?wait=60001ms",
		"/agents/coder/actions?wait=-1s", "/agents/coder/actions?wait=1h", "/agents/coder/actions?wait=30", "/journal?entity=channel/a/b/c",
	} {
		s.want(t, 422, "GET", api.Base+path, "")
	}
	if orders := s.sup.orders(t); orders != before {
		t.Errorf("%d orders are carried out, before %d", orders, before)
	}
	// The longest text there may be fits into a body, however it is written.
	s.want(t, 201, "POST", api.Base+"/channels/reviews/messages", `{"text":"`+strings.Repeat(`\u0001`, 131072)+`"}`)
	s.want(t, 413, "POST", api.Base+"/channels/reviews/messages", `{"text":"`+strings.Repeat("a", api.BodyBytesMax)+`"}`)
	s.want(t, 405, "GET", api.Base+"/channels/reviews/members/coder", "")
	s.want(t, 400, "POST", api.Base+"/channels/reviews/messages", "")
}
