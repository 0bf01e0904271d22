package server

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/google/go-cmp/cmp"
)

// channelsAsked is a call of every route about channels.
var channelsAsked = []askedOnce{
	{"list-channels", "GET", "/channels", "", `"channels" "head":2 "name":"reviews" "queue":["reviewer"] "holder":"coder" "state":"ACTIVE" "deadline":"2026-11-21T09:30:00.123456789Z" "messages":12 "turn":3 "since" "why" "parked" "mode":"inject" "lead" "rounds_max":3 "timeout_ms":60000 "aside":null "agents":[] "open":[] "configured":true`},
	{"get-channel", "GET", "/channels/reviews", "", `"name":"reviews" "queue":["reviewer"] "aside":null`},
	{"read-channel", "GET", "/channels/reviews/entries?limit=5&moves=true", "", `"entries" "more":true "head":12 "seq":12 "at" "kind":"turn" "n":12 "by":"coder" "text" limit=5 moves=true`},
	{"say-message", "POST", "/channels/reviews/messages", `{"text":"hello","mode":"queue"}`, `"message_id":"reviews/13" "n":13 "state":"queued" "seq":14`},
	{"grant-turn", "POST", "/channels/reviews/grant", `{"agent":"coder"}`, `"seq":14 "channel" "name":"reviews"`},
	{"skip-turn", "POST", "/channels/reviews/skip", "", `"seq":14 "channel"`},
	{"override-wait", "POST", "/channels/reviews/override", `{"go_on":false}`, `"seq":14 "channel"`},
	{"assign-agent", "POST", "/channels/reviews/members", `{"agent":"coder"}`, `"seq":14 "channel"`},
	{"remove-agent", "DELETE", "/channels/reviews/members/coder", "", `"seq":14 "channel"`},
	{"disable-agent", "POST", "/agents/coder/disable", "", `"seq":15 "agent" "name":"coder"`},
	{"enable-agent", "POST", "/agents/coder/enable", "{}", `"seq":15 "agent"`},
	{"join-turns", "POST", "/agents/coder/ready", "", `"seq":15 "heartbeat_ms":10000 "missed_max":3`},
	{"send-heartbeat", "POST", "/agents/coder/heartbeat", "", `"heartbeat_ms":10000`},
	{"leave-turns", "POST", "/agents/coder/leave", "", `"seq":15`},
	{"fetch-actions", "GET", "/agents/reviewer/actions?wait=30s", "", `"actions" "key":"tell_turn/reviews/reviewer/4" "do":"tell_turn" "channel":"reviews" "agent" "turn":4 "text" "messages":[] "deadline":null`},
	{"confirm-action", "POST", "/agents/coder/actions/done", `{"key":"tell_turn/reviews/coder/3"}`, `"seq":15`},
	{"say-turn", "POST", "/channels/reviews/said", `{"agent":"coder","turn":3,"text":"x","complete":true}`, `"seq":14`},
	{"pass-turn", "POST", "/channels/reviews/pass", `{"agent":"coder","turn":3}`, `"seq":14`},
	{"ask-wait", "POST", "/channels/reviews/wait", `{"agent":"coder","turn":3,"why":"tests"}`, `"seq":14`},
	{"resume-turn", "POST", "/channels/reviews/go-on", `{"agent":"coder","turn":3}`, `"seq":14`},
}

// Every order of a person about a channel arrives as what it was, by who gave it.
func TestChannelOrders(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	spoken, err := c.Channels.Say(ctx, "reviews", "look at <b>this</b>\n", "interrupt")
	if want := (view.Spoken{MessageID: "reviews/13", N: 13, State: "queued", Seq: 14}); err != nil || spoken != want {
		t.Errorf("said: %+v, %v", spoken, err)
	}
	_, inherited := c.Channels.Say(ctx, "reviews", "and this", "")
	done, grant := c.Channels.Grant(ctx, "reviews", "reviewer", true)
	_, skip := c.Channels.Skip(ctx, "reviews", 3)
	_, anyTurn := c.Channels.Skip(ctx, "reviews", 0)
	_, goOn := c.Channels.Override(ctx, "reviews", true)
	_, end := c.Channels.Override(ctx, "reviews", false)
	_, assign := c.Channels.Assign(ctx, "reviews", "coder")
	_, remove := c.Channels.Unassign(ctx, "reviews", "coder")
	_, disable := c.Channels.Disable(ctx, "coder")
	able, enable := c.Channels.Enable(ctx, "coder")
	if err := errors.Join(inherited, grant, skip, anyTurn, goOn, end, assign, remove, disable, enable); err != nil {
		t.Error(err)
	}
	if done.Seq != 14 || done.Channel.Holder != "coder" || done.Channel.Open == nil || able.Seq != 15 || able.Agent.Name != "coder" {
		t.Errorf("%+v, %+v", done, able)
	}
	want := []string{
		`say reviews mode "interrupt" "look at <b>this</b>\n"`, `say reviews mode "" "and this"`, `grant reviews agent "reviewer" now=true`, `skip reviews turn=3`, `skip reviews turn=0`,
		`override reviews go_on=true`, `override reviews go_on=false`, `assign reviews agent "coder"`, `remove reviews agent "coder"`, `disable coder`, `enable coder`,
	}
	if diff := cmp.Diff(want, toThePoint(s.fake.orders)); diff != "" || !strings.HasPrefix(s.fake.orders[0], "human sam: ") {
		t.Errorf("%s\n%q", diff, s.fake.orders)
	}
	var refused *client.Refused
	if _, err := c.Channels.Say(ctx, "reviews", "refuse", ""); !errors.As(err, &refused) || refused.Refusal.Row != "X5" {
		t.Errorf("%v", err)
	}
	var p *api.Problem
	if _, err := c.Channels.Show(ctx, "nowhere"); !errors.As(err, &p) || p.Status != 404 || len(p.Known) != 1 || p.Known[0] != "reviews" {
		t.Errorf("%v", err)
	}
}

// What people read of channels, and how they follow one.
func TestReadChannels(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	ctx := t.Context()
	last := s.fake.add(t, "channel/reviews", 2)
	all, err := c.Channels.List(ctx)
	if err != nil || len(all.Channels) != 1 || all.Channels[0].Queue[0] != "reviewer" || all.Head != last {
		t.Errorf("%+v, %v", all, err)
	}
	if one, err := c.Channels.Show(ctx, "reviews"); err != nil || one.Deadline == nil || !one.Deadline.Equal(testTime) || one.Agents == nil {
		t.Errorf("%+v, %v", one, err)
	}
	for want, q := range map[string]view.EntryQuery{
		"before=0 after=0 limit=100 moves=false": {}, "before=9 after=0 limit=2 moves=true": {Before: 9, Limit: 2, Moves: true}, "before=0 after=11 limit=500 moves=false": {After: 11, Limit: 500},
	} {
		page, err := c.Channels.Entries(ctx, "reviews", q)
		if err != nil || len(page.Entries) != 1 || page.Entries[0].Text != want || !page.More || page.Head != 12 {
			t.Errorf("%+v: %+v, %v", q, page, err)
		}
	}
	if page, err := c.Channels.Entries(ctx, "reviews", view.EntryQuery{After: 12}); err != nil || page.Entries == nil || len(page.Entries) > 0 {
		t.Errorf("%+v, %v", page, err)
	}
	s.fake.add(t, "control/coder", 3)
	if got := seqs(t, c, client.EventsQuery{Entity: "channel/reviews", After: 0}, 2); got[1] != last {
		t.Errorf("told of %v", got)
	}
}

// X10: an agent in one of Fairlead's sessions gives no orders about channels and does not speak as a
// person. It may read. It acts only in its own name; a step's session has no name.
func TestAgentsInChannels(t *testing.T) {
	f := newFake()
	h := New(Options{Engine: f, User: "sam"}).SocketHandler()
	people := map[string]string{
		"POST /channels/reviews/messages": `{"text":"x"}`, "POST /channels/reviews/grant": `{"agent":"coder"}`, "POST /channels/reviews/skip": "",
		"POST /channels/reviews/override": `{"go_on":true}`, "POST /channels/reviews/members": `{"agent":"coder"}`, "DELETE /channels/reviews/members/coder": "",
		"POST /agents/reviewer/disable": "", "POST /agents/reviewer/enable": "", "POST /agents/coder/disable": "",
	}
	own := map[string]string{
		"POST /agents/coder/ready": "", "POST /agents/coder/heartbeat": "", "POST /agents/coder/leave": "", "POST /agents/coder/actions/done": `{"key":"k"}`,
		"POST /channels/reviews/said": `{"agent":"coder","turn":3,"text":"x"}`, "POST /channels/reviews/pass": `{"agent":"coder","turn":3}`,
		"POST /channels/reviews/wait": `{"agent":"coder","turn":3}`, "POST /channels/reviews/go-on": `{"agent":"coder","turn":3}`, "GET /agents/coder/actions": "",
	}
	for _, rt := range append(channelRoutes(), memberRoutes()...) {
		at := rt.Method + " " + strings.NewReplacer("{channel}", "reviews", "{agent}", "coder", "{name}", "coder").Replace(rt.Path)
		if _, is := own[at]; !is && people[at] == "" && !strings.HasPrefix(at, "GET /channels") && !strings.Contains(at, "able") && !strings.Contains(at, "skip") && rt.Method != "DELETE" {
			t.Errorf("%s is not tried", at)
		}
	}
	reads := map[string]string{"GET /channels": "", "GET /channels/reviews": "", "GET /channels/reviews/entries": ""}
	for who, may := range map[caller.Caller]struct{ order, act bool }{
		{Session: "coder-17"}: {false, true}, {Session: "reviewer-3"}: {}, {Session: "coder@r1-2"}: {}, {Unseen: true}: {}, {}: {true, true},
	} {
		f.orders = nil
		try := func(at map[string]string, allowed bool) (n int) {
			for what, body := range at {
				method, path, _ := strings.Cut(what, " ")
				w := httptest.NewRecorder()
				req := httptest.NewRequestWithContext(as(t, who), method, api.Base+path, strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				h.ServeHTTP(w, req)
				switch {
				case allowed && w.Code < 300:
					n++
				case allowed, w.Code != 409, problemText(t, w.Body.String()).Refusal.Row != "X10":
					t.Errorf("%+v: %s: %d %s", who, what, w.Code, w.Body)
				}
			}
			return n
		}
		n := try(people, may.order) + try(own, may.act)
		if n > 0 {
			n-- // of own, one only asks
		}
		if len(f.orders) != n {
			t.Errorf("%+v: %d were allowed, and the engine was asked for %q", who, n, f.orders)
		}
		try(reads, true)
	}
}

// Names and words that are none are refused before the engine is asked.
func TestChannelInputs(t *testing.T) {
	s := serve(t)
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
		"/channels/reviews/entries?before=3&after=2", "/channels/reviews/entries?limit=501", "/channels/reviews/entries?limit=0", "/channels/reviews/entries?after=-1",
		"/channels/reviews/entries?moves=maybe", "/channels/reviews/entries?tail=3", "/agents/coder/actions?wait=61s", "/agents/coder/actions?wait=60001ms",
		"/agents/coder/actions?wait=-1s", "/agents/coder/actions?wait=1h", "/agents/coder/actions?wait=30", "/journal?entity=channel/a/b/c",
	} {
		s.want(t, 422, "GET", api.Base+path, "")
	}
	if len(s.fake.orders) > 0 {
		t.Errorf("orders: %q", s.fake.orders)
	}
	// The longest text there may be fits into a body, however it is written.
	s.want(t, 201, "POST", api.Base+"/channels/reviews/messages", `{"text":"`+strings.Repeat(`\u0001`, 131072)+`"}`)
	s.want(t, 413, "POST", api.Base+"/channels/reviews/messages", `{"text":"`+strings.Repeat("a", api.BodyBytesMax)+`"}`)
	s.want(t, 405, "GET", api.Base+"/channels/reviews/members/coder", "")
	s.want(t, 400, "POST", api.Base+"/channels/reviews/messages", "")
}
