package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/team"
	"github.com/fairlead-dev/fairlead/view"
)

var noticesAsked = []askedOnce{
	{"list-notice-targets", "GET", "/notify", "", `"targets" "name":"phone" "kind":"ntfy" "events":["needs_you"] "quiet" "per_hour":20 "state":"failing" "failing_since" "cause" "way_out" "waiting":2 "sent_last_hour":1 "left_out_last_hour":3`},
	{"test-notice", "POST", "/notify/test", `{"target":"phone"}`, `"tests" "target":"phone" "kind":"ntfy" "delivered":true`},
}

func (f *fake) NoticeTargets(context.Context) ([]view.NoticeTarget, error) {
	since := testTime
	return []view.NoticeTarget{{
		Name: "phone", Kind: "ntfy", Events: []string{"needs_you"}, Quiet: "22:00-07:00 UTC", PerHour: 20, State: "failing", Since: &since,
		Cause: "it answers 403", WayOut: "correct the address", Waiting: 2, LastHour: 1, Counted: 3,
	}}, f.answer()
}

func (f *fake) TestNotice(_ context.Context, by seam.Actor, target string) ([]view.NoticeTest, error) {
	if target == "none" {
		return nil, &team.Unknown{What: "target of notices", Name: target, Known: []string{"phone"}}
	}
	if err := f.answer(); err != nil {
		return nil, err
	}
	f.said(by, "test notice %s", target)
	return []view.NoticeTest{{Target: "phone", Kind: "ntfy", Delivered: true}}, nil
}

// A test notice is sent for a person, to a target that exists.
func TestTestNotice(t *testing.T) {
	s := serve(t)
	c, err := client.Dial(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if done, err := c.TestNotice(t.Context(), "phone"); err != nil || len(done) != 1 || !done[0].Delivered {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := c.TestNotice(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), "phone") {
		t.Errorf("an unknown target: %v", err)
	}
	if all, err := c.NoticeTargets(t.Context()); err != nil || len(all) != 1 || all[0].Cause == "" {
		t.Errorf("%+v, %v", all, err)
	}
}

// No GET acts: programs that preview links fetch what a notice links to. Each GET route leaves the journal as it is and
// gives no order; nor does the page itself.
func TestNoGetActs(t *testing.T) {
	s := serve(t)
	s.fake.add(t, "control/coder", 2)
	s.fake.say("coder-1", "hello\n")
	s.fake.endSession("coder-1", "ok")
	describeAgents(t, s.dir)
	giveIndex(t, s)
	orders := func() (all []string) {
		s.fake.do(func() { all = slices.Clone(s.fake.orders) })
		return all
	}
	all := everyRouteAsked()
	for _, c := range all { // so that there is something to act on
		if c.id == "read-output-file" {
			writeOutput(t, s.dir, "quay", "hello.py", "print('hello')\n")
		}
		s.want(t, c.status(), c.method, api.Base+c.path, c.body)
	}
	before := len(orders())
	head := func() uint64 {
		text, _ := s.want(t, http.StatusOK, http.MethodGet, api.Base+"/status", "")
		var is struct {
			Journal struct {
				Head uint64 `json:"head"`
			} `json:"journal"`
		}
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			t.Fatal(err)
		}
		return is.Journal.Head
	}
	was, asked := head(), 0
	for _, c := range all {
		if c.method != http.MethodGet {
			continue
		}
		asked++
		res, err := http.DefaultClient.Do(s.request(t, c.method, api.Base+c.path, map[string]string{"Authorization": "Bearer " + testToken}))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode >= 500 {
			t.Errorf("%s answers %d", c.id, res.StatusCode)
		}
	}
	reads := map[string]bool{}
	for _, rt := range table() {
		reads[rt.Path] = reads[rt.Path] || rt.Method == http.MethodGet
	}
	for _, rt := range table() {
		if !reads[rt.Path] {
			s.want(t, http.StatusMethodNotAllowed, http.MethodGet, strings.NewReplacer("{name}", "coder", "{id}", "r1", "{step}", "review", "{channel}", "reviews", "{agent}", "coder", "{n}", "1", "{file}", "f").Replace(api.Base+rt.Path), "")
		}
	}
	if given := orders(); len(given) != before || head() != was || asked < 20 {
		t.Errorf("%d GET requests gave the orders %q and moved the journal from %d to %d", asked, given[before:], was, head())
	}
}
