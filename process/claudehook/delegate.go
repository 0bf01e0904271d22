package claudehook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/encode"
)

// taskKept is how much of a task's text every line of the history repeats; dialogue.md holds all of it.
const taskKept = 1 << 10

// delegate puts an agent in charge (D3), or lets an agent ask another one (D5), and adds the workspace to its
// prompt.
func (v *visit) delegate() (Answer, error) {
	var task struct {
		Agent  *string `json:"subagent_type"`
		Prompt *string `json:"prompt"`
	}
	if err := json.Unmarshal(v.Input, &task); err != nil {
		return Answer{}, fmt.Errorf("read the delegation: %w", err)
	}
	switch {
	case task.Agent == nil || *task.Agent == "":
		return v.turnBack(&table.Refusal{Reason: "name the agent to delegate to as subagent_type"}, ""), nil
	case task.Prompt == nil:
		return v.turnBack(&table.Refusal{Reason: "describe the task in the prompt"}, ""), nil
	}
	in := dispatch.Delegate{
		Agent: *task.Agent, Text: cut(*task.Prompt, taskKept), Call: v.Use,
		Trigger: v.why(*task.Agent), Params: cut(string(v.Input), dispatch.TextBytesMax),
	}
	if v.Agent != "" {
		id := v.taskOf(v.Agent)
		if id == 0 {
			return v.turnBack(&table.Refusal{Reason: "only an agent that " + dispatch.Main + " called may call others"}, ""), nil
		}
		in.By = id
	}
	v.thought()
	from := v.session.State()
	changes, err := v.do(in, v.actor())
	if no, ok := errors.AsType[*table.Refusal](err); ok {
		return v.turnBack(no, *task.Agent), nil
	}
	if err != nil {
		return Answer{}, fmt.Errorf("put %s in charge: %w", *task.Agent, err)
	}
	var arrow string
	if len(changes) > 0 {
		arrow = dispatch.Arrow(from, *task.Agent)
	}
	return v.handOver(*task.Prompt, arrow)
}

// taskOf returns the task of an agent, by the program's id of it; 0: none.
func (v *visit) taskOf(caller string) uint64 {
	if c := v.session.Open; c != nil {
		for _, t := range c.Tasks {
			if t.Caller == caller {
				return t.ID
			}
		}
	}
	return 0
}

// why is a transition's trigger: the words that the agent's description shares with the input.
func (v *visit) why(agent string) string {
	c := v.session.Open
	if c == nil {
		return ""
	}
	return terms(dispatchfolder.Best(v.session, c.Input), agent)
}

// turnBack denies a delegation, and names agents that can take it.
func (v *visit) turnBack(no *table.Refusal, agent string) Answer {
	verdict := policy.Verdict{Reason: cmp.Or(no.Reason, no.Error()), Row: cmp.Or(no.Row, "D3")}
	if agent != "" && !v.session.Knows(agent) {
		verdict.Reason = fmt.Sprintf("there is no agent %q in this session", agent)
		if names := v.names(); names != "" {
			verdict.Reason += " (available: " + names + ")"
		}
		verdict.Capability = agent
	}
	return v.deny(verdict)
}

// names lists some agents.
func (v *visit) names() string {
	const some = 20 // a longer list does not help
	var names []string
	for i, a := range v.session.Agents {
		if i == some {
			names = append(names, fmt.Sprintf("and %d more in AGENT_DIRECTORY.md", len(v.session.Agents)-some))
			break
		}
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

// handOver adds the workspace to an agent's prompt (seed 002, Agent Delegation Protocol) if it is missing.
// The program accepts a changed input only together with an allowance. It is given only for a delegation,
// which needs no permission by default; the user's own rules that ask or deny still apply.
func (v *visit) handOver(prompt, arrow string) (Answer, error) {
	c := v.session.Open
	workspace := v.folder.Workspace(c.N)
	if strings.Contains(prompt, dispatchfolder.WorkspaceHeading) && strings.Contains(prompt, strings.TrimSuffix(workspace, "/")) {
		if arrow == "" {
			return Answer{}, nil
		}
		return say(said{Message: arrow}), nil
	}
	updated, err := replaceMember(v.Input, "prompt", dispatchfolder.DelegationPrompt(prompt, workspace, v.folder.DialoguePath(c.N)))
	if err != nil {
		return Answer{}, fmt.Errorf("hand over the workspace: %w", err)
	}
	return say(said{Message: arrow, Specific: &specific{
		Event: PreToolUse, Decision: "allow", Reason: "Fairlead added the conversation's workspace to the task.", Updated: updated,
	}}), nil
}

// replaceMember changes one string of an object and leaves the rest as it is, because the program replaces
// the whole input.
func replaceMember(object json.RawMessage, key, text string) (json.RawMessage, error) {
	if !json.Valid(object) {
		return nil, errors.New("it is not JSON")
	}
	n, err := hujson.Parse(object)
	if err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	old := find(n, key)
	if old == nil {
		return nil, fmt.Errorf("there is no %q in it", key)
	}
	if err := once(n, "the task"); err != nil {
		return nil, err
	}
	old.value.Value = hujson.Literal(encode.JSON(text))
	return n.Pack(), nil
}
