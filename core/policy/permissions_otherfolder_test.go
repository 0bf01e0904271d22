package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

// A command that runs outside its workspace does not mean what its words say: no pattern allows it, and X10
// applies to the folder where it runs.
func TestCommandElsewhere(t *testing.T) {
	scene := policytest.Build(t)
	allow := patterns(t, "Bash(git status*)", "Bash(rm *)", "Bash(make)")
	for input, want := range map[string]string{
		`{"command":"git status"}`:                                            "allow",
		`{"command":"git status","directory":""}`:                             "allow",
		`{"command":"git status","directory":null}`:                           "allow",
		`{"command":"git status","cwd":"."}`:                                  "allow",
		`{"command":"git status","cwd":"{{repo}}/"}`:                          "allow",
		`{"command":"git status","directory":"{{outside}}"}`:                  "",
		`{"command":"git status","workdir":"src"}`:                            "allow",
		`{"command":"git status","workdir":"hostile"}`:                        "",
		`{"command":"git status","dir":"~"}`:                                  "",
		`{"command":"make"}`:                                                  "allow",
		`{"command":"make","directory":"/tmp"}`:                               "",
		`{"command":"git status","cwd":5}`:                                    "",
		`{"command":"git status","cwd":"{{repo}}","directory":"{{outside}}"}`: "",
		`{"command":"rm -rf hooks","directory":".git"}`:                       "deny",
		`{"command":"rm settings.json","directory":"{{repo}}/.claude"}`:       "deny",
	} {
		call := policy.Call{Tool: "Bash", Input: json.RawMessage(scene.Expand(input)), Dir: scene.Repo}
		verdict, rule := answerOf(allow, nil, call, nil, workspaceOf(scene), dispatchfolder.Disk{})
		if verdict != want || want == "deny" && !strings.HasPrefix(rule, "X10") {
			t.Errorf("%s: %q (%s), not %q", input, verdict, rule, want)
		}
	}
}
