package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

var noticesAsked = []askedOnce{
	{
		"list-notice-targets", "GET", "/notify", "",
		`"targets" "name":"phone" "kind":"ntfy" "events":["needs_you" "per_hour":20 "state":"reached" "waiting" "sent_last_hour" "left_out_last_hour"`,
	},
	{"test-notice", "POST", "/notify/test", `{"target":"phone"}`, `"tests" "target":"phone" "kind":"ntfy" "delivered":true`},
}

// A test notice is sent for a person, to a target that exists.
func TestTestNotice(t *testing.T) {
	c := dial(t, houseAt(t))
	if done, err := c.TestNotice(t.Context(), "phone"); err != nil || len(done) != 1 || !done[0].Delivered {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := c.TestNotice(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), "phone") {
		t.Errorf("an unknown target: %v", err)
	}
	if all, err := c.NoticeTargets(t.Context()); err != nil || len(all) != 1 || all[0].Name != "phone" || all[0].PerHour != 20 ||
		all[0].State != "reached" {
		t.Errorf("%+v, %v", all, err)
	}
}

// noGetActs: programs that preview links fetch what a notice links to. Each GET route leaves the journal as it is and
// gives no order; nor does the page itself.
func noGetActs(t *testing.T, s *served, names *strings.Replacer) {
	t.Helper()
	<-s.sup.Loop.Stopped()
	wait.Until(t, "the journal has the end of the dispatch", func() bool {
		return slices.ContainsFunc(s.sup.changes(t), func(line string) bool { return strings.HasSuffix(line, "dispatch/quay D10 MAIN") })
	})
	was, asked := len(s.sup.changes(t)), 0
	for _, c := range everyRouteAsked() {
		if c.method != http.MethodGet {
			continue
		}
		asked++
		res, err := http.DefaultClient.Do(s.request(t, c.method, api.Base+strings.Replace(names.Replace(c.path), "wait=30s", "wait=1ms", 1),
			map[string]string{"Authorization": "Bearer " + testToken}))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode >= 500 {
			t.Errorf("%s answers %d", c.id, res.StatusCode)
		}
	}
	reads := map[string]bool{}
	for _, rt := range routeTable() {
		reads[rt.Path] = reads[rt.Path] || rt.Method == http.MethodGet
	}
	for _, rt := range routeTable() {
		if !reads[rt.Path] {
			s.want(t, http.StatusMethodNotAllowed, http.MethodGet,
				strings.NewReplacer("{name}", "coder", "{id}", "r1", "{step}", "review", "{channel}", "reviews", "{agent}", "coder", "{n}",
					"1", "{file}", "f").Replace(api.Base+rt.Path), "")
		}
	}
	if all := s.sup.changes(t); len(all) != was || asked < 20 {
		t.Errorf("%d GET requests gave the orders %q", asked, all[was:])
	}
}
