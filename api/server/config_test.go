package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
)

// paper is an editor without a file. cli/configure tests the real one.
type paper struct{}

func (paper) List(context.Context) (*api.ConfigAgents, error) {
	return &api.ConfigAgents{Sum: "s", Names: []string{"coder"}, Programs: []api.ConfigProgram{}}, nil
}

func (paper) Entry(_ context.Context, name string) (*api.ConfigEntry, error) {
	return &api.ConfigEntry{Name: name, Sum: "s"}, nil
}

func (paper) Preview(_ context.Context, c *api.AgentChange) (*api.AgentPreview, error) {
	return &api.AgentPreview{Sum: "s", Diff: "+" + c.Agent.Model, Changes: []string{}, Notes: []string{}}, nil
}

func (paper) Write(_ context.Context, c *api.AgentChange) (*api.AgentWritten, error) {
	if c.Sum != "s" {
		return nil, api.NewProblem(http.StatusPreconditionFailed, "fairlead.yaml was changed meanwhile")
	}
	return &api.AgentWritten{Changes: []string{"agent coder changed"}}, nil
}

func (paper) Test(context.Context, *api.AgentChange) (*api.AgentTest, error) {
	return &api.AgentTest{OK: true, Findings: []api.AgentFinding{}}, nil
}

// configAsked is one call of each route about fairlead.yaml.
var configAsked = []askedOnce{
	{"list-config-agents", "GET", "/config/agents", "", `"names":["coder"] "programs":[] "sum":"s"`},
	{"read-config-agent", "GET", "/config/agents/coder", "", `"name":"coder" "agent":{} "sum":"s"`},
	{
		"preview-config-change", "POST", "/config/preview", `{"op":"edit","name":"coder","agent":{"model":"opus"}}`,
		`"diff":"+opus" "changes":[] "notes":[]`,
	},
	{"write-config-change", "POST", "/config/write", `{"op":"edit","name":"coder","agent":{},"sum":"s"}`, `"changes":["agent`},
	{"test-config-change", "POST", "/config/test", `{"op":"edit","name":"coder","agent":{}}`, `"ok":true "findings":[]`},
}

// X10: no agent in one of Fairlead's sessions reads or changes the configuration, and no caller that cannot be identified.
func TestAgentsConfigureNothing(t *testing.T) {
	h := New(Options{Engine: supervise(t, memory.New(), t.TempDir(), pair).App, User: "sam", Editor: paper{}}).SocketHandler()
	for by, may := range map[caller.Caller]bool{
		{Session: "coder-17"}: false, {Session: "coder@r1-2"}: false, {Unseen: true}: false,
		{}: true,
	} {
		for _, c := range configAsked {
			w := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(caller.With(t.Context(), by), c.method, api.Base+c.path, strings.NewReader(c.body))
			req.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, req)
			switch {
			case may && w.Code != http.StatusOK:
				t.Errorf("%+v: %s: %d %s", by, c.id, w.Code, w.Body)
			case !may && (w.Code != http.StatusConflict || problemText(t, w.Body.String()).Refusal.Row != "X10"):
				t.Errorf("%+v: %s: %d %s", by, c.id, w.Code, w.Body)
			}
		}
	}
}
