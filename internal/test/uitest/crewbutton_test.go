package uitest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/crew"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestButtonFollowsTheMembers holds back the server's answers about the crew, as a busy machine does. The button still
// fits the members that the page shows: SUMMON only beside empty seats, WAKE only if a member is not awake.
func TestButtonFollowsTheMembers(t *testing.T) {
	t.Parallel()
	c := uitest.NewCrewByHand(t)
	p := uitest.Browse(t)
	p.Open(c.URL + "#/crew")
	p.WaitText(".crew-head", "SUMMON")
	uitest.Eval[bool](p, `(() => {
		const ask = window.fetch, held = [];
		window.release = () => { window.fetch = ask; for (const go of held) go(); };
		window.fetch = (url, init) => String(url).endsWith('/crew') ? new Promise((done) => { held.push(() => done(ask(url, init))); }) : ask(url, init);
		return true; })()`)
	button := func(members, want string) {
		t.Helper()
		p.Until(members, `document.querySelectorAll('.seats .seat:not(.seat-lead)').length === 8 && `+members)
		if got := uitest.Eval[string](p, `document.querySelector('.crew-head .order')?.textContent ?? ''`); got != want {
			t.Errorf("the button is %q, want %q, with %s", got, want, members)
		}
	}
	count := func(look string, n int) string {
		return fmt.Sprintf(`document.querySelectorAll('.seat-%s:not(.seat-lead)').length === %d`, look, n)
	}
	c.Do("POST", "/crew/summon", strings.NewReader(`{}`))
	button(count("egg", 8), "WAKING…")
	c.Hatch(nil)
	button(count("alive", 8), "")
	c.Report(0, 1, 2)
	button(count("dim", 5), "WAKE")
	c.Report(0, 1, 2, 3, 5, 6, 7, 8)
	button(count("alive", 8), "")
	uitest.Eval[bool](p, `(window.release(), true)`)
	c.Report(1)
	button(count("dim", 7), "WAKE")
	p.NoConsoleErrors()
}

// TestButtonAgreesWithServer compares the page's button with the server's for every set of statuses.
func TestButtonAgreesWithServer(t *testing.T) {
	t.Parallel()
	type row struct {
		Statuses []string
		Stage    string
		Want     string
	}
	all := []crew.Status{crew.Hatching, crew.Alive, crew.Sleeping, crew.Unknown}
	var rows []row
	for set := range 1 << len(all) {
		docs, names := []*crew.Document{{Status: crew.Expired}}, []string{}
		for i, status := range all {
			if set&(1<<i) != 0 {
				docs, names = append(docs, &crew.Document{Status: status}), append(names, string(status))
			}
		}
		for _, stage := range []crew.Stage{"", crew.Summoning, crew.Asking, crew.Waking} {
			rows = append(rows, row{names, string(stage), string(crew.ButtonOf(docs, stage != ""))})
		}
	}
	data, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	if wrong := uitest.Eval[string](p, `(async () => {
		const { buttonOf } = await import('/crew/words.js');
		return `+string(data)+
		`.filter(r => buttonOf(r.Statuses, r.Stage) !== r.Want).map(r => JSON.stringify(r)).join('\n'); })()`); wrong != "" {
		t.Errorf("the page has another button:\n%s", wrong)
	}
}
