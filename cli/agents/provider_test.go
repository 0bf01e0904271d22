package agents

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/view"
)

// What is known about a provider is in the remarks, in `events` and in `watch`, in the same words.
func TestProviderWords(t *testing.T) {
	const words = "its provider rejects its login: authentication_failed (HTTP 401); retry 1 of 10 in 595ms"
	_, why, _ := strings.Cut(words, ": ")
	away := &view.ProviderView{Code: "authentication", Why: why}
	agent := view.AgentView{Sessions: []view.SessionView{{ID: "coder-1", Provider: away}}}
	if got := Remarks(agent); got != words {
		t.Errorf("the remark is %q", got)
	}
	agent.Asks = 1
	if got := Remarks(agent); strings.Contains(got, "provider") {
		t.Errorf("a question comes first: %q", got)
	}
	for data, want := range map[string]string{
		`{"used":{"session":"coder-1","provider":{"code":"authentication","why":"` + why + `"}}}`: "coder: session coder-1: " + words,
		`{"used":{"session":"coder-1","provider":{}}}`:                                            "coder: session coder-1: its provider answers again",
		`{"used":{"session":"coder-1","usage":{"input_tokens":1}}}`:                               "coder: the session reported what it used",
	} {
		if got := said(api.Change{
			Machine: "session", Entity: "session/coder", Trigger: "reported", From: "running", To: "running",
			Data: api.Raw(data),
		}); got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
	var p factPrinter
	fact := driver.Fact{Kind: driver.ProviderAway, Provider: driver.ProviderAuthentication, Text: why}
	if got := p.line(&cli.App{Out: &strings.Builder{}}, fact); got != "waits: "+words+"\n" {
		t.Errorf("watch prints %q", got)
	}
}
