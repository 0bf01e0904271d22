package uitest_test

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestProviderOnThePage checks that a provider that rejects an agent's login, or its payment, is on the agent's card and in the inbox
// with what a person does, and that both go when the program says something else.
func TestProviderOnThePage(t *testing.T) {
	t.Parallel()
	const away = `  - emit: "{\"type\":\"provider_away\",\"provider\":\"CODE\",\"text\":\"retry 1 <b>of</b> 10\"}\n"` +
		"\n  - expect_prompt\n  - say: hello\n  - expect_prompt\n"
	script := func(code string) string { return "steps:\n" + strings.ReplaceAll(away, "CODE", code) }
	s := uitest.NewServer(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: script, script: key.yaml}\n  bob: {driver: script, script: bill.yaml}\n  cat: {driver: script, script: net.yaml}\n",
		"key.yaml":      script("authentication"),
		"bill.yaml":     script("billing"),
		"net.yaml":      script("network"),
	})
	p := uitest.Browse(t)
	p.Open(s.URL + "#/inbox")
	for _, name := range []string{"ada", "bob", "cat"} {
		s.Do("POST", "/agents/"+name+"/once", strings.NewReader(`{}`))
	}
	for _, words := range []string{
		"ada is not signed in",
		"its provider rejects its login: retry 1 <b>of</b> 10; start the program once by hand and sign in",
		"bob has no credit or quota left", "add credit",
	} {
		p.WaitText("main", words)
	}
	p.Until("nothing is wider than the window", uitest.Fits(p))
	p.Open(s.URL + "#/agents")
	for _, words := range []string{
		"its provider rejects its login: retry 1", "no credit or quota is left: retry 1",
		"its provider cannot be reached: retry 1",
	} {
		p.WaitText("main", words)
	}
	p.Open(s.URL + "#/inbox")
	p.WaitText("main", "ada is not signed in")
	if text := p.Text("main"); strings.Contains(text, "cat") {
		t.Errorf("what no person can end is in the inbox: %s", text)
	}
	s.Do("POST", "/agents/ada/tell", strings.NewReader(`{"text":"go"}`))
	p.Until("the login is no longer in the inbox", `!document.querySelector('main').innerText.includes('is not signed in')`)
	p.WaitText("main", "bob has no credit or quota left")
	p.NoConsoleErrors()
}
