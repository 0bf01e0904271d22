package uitest_test

import (
	"strconv"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPaneTexts checks the figures and the timeline of an agent: what a limit applies to, and that
// older sessions are not shown.
func TestPaneTexts(t *testing.T) {
	t.Parallel()
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL + "#/agents/coder")
	p.WaitText(".figures", "no limit set")
	for _, c := range []struct{ name, agent, sessions, in, want string }{
		{"a limit of a session", `{limits: {session: '5m'}, session: {...s, for: 'control'}}`, "", ".figures", " of 5m"},
		{
			"a limit of each answer", `{limits: {session: '5m'}, session: {...s, for: 'channels'}}`, "", ".figures",
			"each answer ends after 5m",
		},
		{"a limit of the team", `{limits: {team_cost_per_day_usd: 20}}`, "", ".figures", "the team's limit is $20"},
		{
			"older sessions", "",
			`Array.from({length: 64}, (_, n) => ({id: 'coder-' + n, kind: 'work', from: Date.now() - 60_000, to: Date.now() - 30_000, outcome: 'completed'}))`, ".timeline", "only the newest 64 are shown",
		},
	} {
		uitest.Eval[bool](p, `(async () => {
			const { cell, names } = await import('/agents/state.js');
			const c = cell(names.value[0]), s = {id: 'coder-1', phase: 'running', started_at: new Date(Date.now() - 60_000).toISOString()};
			const agent = `+orNothing(c.agent)+`, runs = `+orNothing(c.sessions)+`;
			window.again = () => { if (agent) c.agent.value = {...c.agent.value, ...agent}; if (runs) c.runs.value = runs; };
			return true; })()`)
		t.Log(c.name)
		// What the server says meanwhile is newer, so it is set until it is shown.
		p.Until(c.name, `(window.again(), document.querySelector('`+c.in+`').innerText.includes(`+strconv.Quote(c.want)+`))`)
	}
	p.NoConsoleErrors()
}

func orNothing(script string) string {
	if script == "" {
		return "null"
	}
	return script
}
