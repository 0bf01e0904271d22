package view

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
)

// What a program says about its provider is one sentence that names the trouble once. Only a trouble that a person has to end is in the
// inbox, with what the person does; the other codes are the twin.
func TestProviderViews(t *testing.T) {
	t.Parallel()
	since := time.Unix(1000, 0)
	const signIn, end = "run `codex login`", ", then `fairlead stop ada --now`, and order it again"
	for code, c := range map[string]struct{ words, kind, why string }{
		"authentication": {
			"its provider rejects its login: retry 1", InboxLogin,
			"its provider rejects its login: retry 1; " + signIn + end,
		},
		"billing": {
			"its provider refuses it: no credit or quota is left: retry 1", InboxBilling,
			"its provider refuses it: no credit or quota is left: retry 1; " + billingRemedy + end,
		},
		"rate_limit":   {"its provider limits the rate of requests: retry 1", "", ""},
		"network":      {"its provider cannot be reached: retry 1", "", ""},
		"unavailable":  {"its provider does not answer: retry 1", "", ""},
		"context_full": {"its conversation is too long for its model: retry 1", "", ""},
		"new":          {"its provider does not answer: retry 1", "", ""},
	} {
		ada := AgentView{
			Name: "ada",
			Sessions: []SessionView{
				{ID: "ada-1"},
				{ID: "ada-2", For: team.ForControl, Provider: &ProviderView{Code: code, Why: "retry 1", Since: since}},
			},
		}
		if got := ada.AwayProvider(); got == nil || got.Words() != c.words {
			t.Errorf("%s: %+v, want %q", code, got, c.words)
		}
		items := ProviderItems([]AgentView{{Name: "bob", Sessions: []SessionView{{ID: "bob-1"}}}, ada},
			func(agent string) string { return map[string]string{"ada": signIn}[agent] })
		switch {
		case c.kind == "" && len(items) > 0:
			t.Errorf("%s: %+v", code, items)
		case c.kind == "":
		case len(items) != 1:
			t.Errorf("%s: %d items", code, len(items))
		default:
			i := items[0]
			if i.ID != c.kind+"/ada-2" || i.Kind != c.kind || i.Agent != "ada" || i.Session != "ada-2" || i.Why != c.why ||
				!i.Since.Equal(since) {
				t.Errorf("%s: %+v", code, i)
			}
		}
	}
	for _, c := range []struct {
		of   team.Purpose
		want string
	}{
		{team.ForStep("T1", "work"), ", then `fairlead run resume T1` if the step has failed"},
		{team.ForLead, ", then end this session"},
	} {
		if got := afterRemedy("ada", c.of); got != c.want {
			t.Errorf("%v: %q", c.of, got)
		}
	}
	idle := AgentView{Sessions: []SessionView{{ID: "x-1"}}}
	if got := idle.AwayProvider(); got != nil {
		t.Errorf("a session that says nothing: %+v", got)
	}
	if got := ProviderWords(""); got != "its provider answers again" {
		t.Error(got)
	}
}
