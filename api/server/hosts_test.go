package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
)

// hostsAsked is one call of each route about hosts, in a repository of one machine.
var hostsAsked = []askedOnce{
	{"list-hosts", "GET", "/hosts", "", `"on":false "hosts":[] "waiting":[]`},
	{"show-leader", "GET", "/leader", "", `"leads":true "no_leader_since":null "as_of":null`},
	{"invite-host", "POST", "/hosts/invitations", `{"labels":["gpu"]}`, `"subject":"the cluster init`},
	{"drain-host", "POST", "/hosts/b/drain", `{}`, `"subject":"host cluster init`},
	{"remove-host", "POST", "/hosts/b/remove", "", `"subject":"host cluster init`},
	{"lead-host", "POST", "/hosts/b/lead", "", `"subject":"host`},
	{"leave-cluster", "POST", "/cluster/leave", "", `"subject":"the`},
}

// X10: an agent may see the hosts. It drains and removes none, and neither does a caller that cannot be identified.
func TestAgentsOrderNoHosts(t *testing.T) {
	s := supervise(t, memory.New(), t.TempDir(), pair)
	h := New(Options{Engine: s.App, User: "sam"}).SocketHandler()
	about := map[string]string{
		"drain-host": "host b", "remove-host": "host b", "invite-host": "the team", "lead-host": "host b",
		"leave-cluster": "the team",
	}
	for by, may := range map[caller.Caller]bool{
		{Session: "coder-17"}: false, {Session: "coder@r1-2"}: false, {Unseen: true}: false,
		{}: true,
	} {
		for _, c := range hostsAsked {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(caller.With(t.Context(), by), c.method, api.Base+c.path, http.NoBody))
			if c.method == http.MethodGet {
				if w.Code != http.StatusOK {
					t.Errorf("%+v: %s: %d %s", by, c.id, w.Code, w.Body)
				}
				continue
			}
			if w.Code != http.StatusConflict {
				t.Fatalf("%+v: %s: %d %s", by, c.id, w.Code, w.Body)
			}
			if refusal := problemText(t, w.Body.String()).Refusal; may != (refusal.Row != "X10") ||
				!by.Unseen && refusal.Subject != about[c.id] {
				t.Errorf("%+v: %s: %+v", by, c.id, refusal)
			}
		}
	}
}

// The client has a method for each route about hosts.
func TestHostsClient(t *testing.T) {
	s := serve(t)
	c := dial(t, s)
	if all, err := c.Hosts(t.Context()); err != nil || all.On || all.Hosts == nil || all.Waiting == nil {
		t.Errorf("%+v, %v", all, err)
	}
	for _, do := range []func() (api.Ordered, error){
		func() (api.Ordered, error) { return c.DrainHost(t.Context(), "b") },
		func() (api.Ordered, error) { return c.RemoveHost(t.Context(), "b") },
	} {
		var refused *client.Refused
		if _, err := do(); !errors.As(err, &refused) || !strings.Contains(err.Error(), "fairlead cluster init") {
			t.Errorf("%v", err)
		}
	}
	for _, path := range []string{"/hosts/B/drain", "/hosts/a%2Fb/remove", "/hosts/" + strings.Repeat("a", 64) + "/drain"} {
		s.want(t, http.StatusUnprocessableEntity, "POST", api.Base+path, "")
	}
}

// A person gets an invitation, with the labels in it, and an agent gets none.
func TestInvitation(t *testing.T) {
	var asked []string
	h := New(Options{
		Engine: supervise(t, memory.New(), t.TempDir(), pair).App, User: "sam",
		Invite: func(_ context.Context, by string, labels []string, engine bool) (*api.Invitation, error) {
			if engine {
				by += " engine"
			}
			asked = append(asked, by+" "+strings.Join(labels, ","))
			return &api.Invitation{Token: "fli1_x", Team: "web", Address: "a:4222", Labels: labels}, nil
		},
	}).SocketHandler()
	for _, c := range []struct {
		by   caller.Caller
		body string
		want int
	}{
		{caller.Caller{}, `{"labels":["gpu","big"]}`, http.StatusCreated},
		{caller.Caller{}, ``, http.StatusCreated},
		{caller.Caller{}, `{"engine":true}`, http.StatusCreated},
		{caller.Caller{}, `{"labels":["a b"]}`, http.StatusUnprocessableEntity},
		{caller.Caller{}, `{"role":"engine"}`, http.StatusUnprocessableEntity},
		{caller.Caller{Session: "coder-17"}, `{}`, http.StatusConflict},
		{caller.Caller{Unseen: true}, `{}`, http.StatusConflict},
	} {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(caller.With(t.Context(), c.by), "POST", api.Base+"/hosts/invitations",
			strings.NewReader(c.body))
		req.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, req)
		if w.Code != c.want || c.want == http.StatusCreated && !strings.Contains(w.Body.String(), `"token":"fli1_x"`) {
			t.Errorf("%+v %s: %d %s", c.by, c.body, w.Code, w.Body)
		}
	}
	if want := []string{"human/sam gpu,big", "human/sam ", "human/sam engine "}; !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
}

// A person hands the lead over to another engine host, an agent does not. Without a cluster there is none.
func TestHandOver(t *testing.T) {
	var asked []string
	engine := supervise(t, memory.New(), t.TempDir(), pair).App
	for _, c := range []struct {
		by   caller.Caller
		lead func(context.Context, string) error
		want int
	}{
		{caller.Caller{}, func(_ context.Context, name string) error { asked = append(asked, name); return nil }, http.StatusOK},
		{caller.Caller{}, func(context.Context, string) error {
			return &table.Refusal{Subject: "host b", Event: "lead", State: "leads"}
		}, http.StatusConflict},
		{
			caller.Caller{Session: "coder-17"},
			func(context.Context, string) error { panic("an agent hands the lead over") },
			http.StatusConflict,
		},
		{caller.Caller{}, nil, http.StatusConflict},
	} {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(caller.With(t.Context(), c.by), "POST", api.Base+"/hosts/b/lead", strings.NewReader("{}"))
		req.Header.Set("Content-Type", "application/json")
		New(Options{Engine: engine, User: "sam", Lead: c.lead}).SocketHandler().ServeHTTP(w, req)
		if w.Code != c.want {
			t.Errorf("%+v: %d %s", c.by, w.Code, w.Body)
		}
	}
	if !slices.Equal(asked, []string{"b"}) {
		t.Errorf("%q", asked)
	}
}
