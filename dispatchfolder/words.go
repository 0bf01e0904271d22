package dispatchfolder

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
)

// Status is the initial status block in the seed's format.
func Status(s dispatch.Dispatch, agents int) string {
	rules := rulesOf(s.ForMain, policy.MainRules())
	path := strings.TrimRight(s.Path, "/")
	list := func(some []string) string { return strings.Join(some, ", ") }
	return fmt.Sprintf(`🚀 Agent State Machine Initialized

[State: %s]

Session Parameters:
  Mode: %s
  Path: %s
  Session: start

Available Agents: %d agents loaded
  ✓ State persistence: %s/state.jsonl
  ✓ Agent descriptions: %s/AGENT_DIRECTORY.md
  ✓ Conversations directory: %s/conversations/

Waiting for first user input to create conversation...

MAIN State Permissions:
  Can Write: %s
  Cannot Write: %s
  Can Execute: %s
  Cannot Execute: %s
`, s.State(), s.Mode, path, agents, path, path, path,
		list(rules.CanWrite), list(rules.CannotWrite), list(rules.CanExecute), list(rules.CannotExecute))
}

// WorkspaceHeading marks a prompt that has the seed's block already.
const WorkspaceHeading = "**WORKSPACE REQUIREMENTS:**"

// DelegationPrompt is the text for a delegated agent: the request's first line, the places for files and the
// record, and the rest of the request as details (seed 002, Agent Delegation Protocol).
func DelegationPrompt(request, workspace, dialogue string) string {
	request = strings.TrimSpace(request)
	first, details, _ := strings.Cut(request, "\n")
	details = strings.TrimSpace(details)
	if details == "" {
		details = "See the request above."
	}
	return strings.TrimSpace(first) + `

` + WorkspaceHeading + `
- All generated files MUST be placed in: ` + workspace + `
- Record your thinking process in: ` + dialogue + `
- Do NOT use your default working directory or any other location, unless explicitly specified otherwise
- Use only the specified absolute paths above for ALL file creation and documentation

**TASK DETAILS:**

` + details + "\n"
}

// rulesOf parses permissions, or returns otherwise.
func rulesOf(text json.RawMessage, otherwise policy.Rules) policy.Rules {
	var rules policy.Rules
	if len(text) == 0 || text[0] != '{' || json.Unmarshal(text, &rules) != nil {
		return otherwise
	}
	return rules
}
