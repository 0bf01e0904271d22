package api

import "github.com/fairlead-dev/fairlead/config/edit"

// ConfigAgents is what a form for an agent offers.
type ConfigAgents struct {
	Sum      string          `json:"sum" doc:"The SHA-256 of fairlead.yaml"`
	Names    []string        `json:"names" nullable:"false" doc:"The agents of the file"`
	Programs []ConfigProgram `json:"programs" nullable:"false" doc:"The agent programs that this build can drive"`
	Why      string          `json:"why,omitempty" doc:"Why the file cannot be changed"`
}

// ConfigProgram is an agent program.
type ConfigProgram struct {
	Name    string   `json:"name" example:"codex"`
	Title   string   `json:"title"`
	Driver  string   `json:"driver"`
	Command []string `json:"command" nullable:"false"`
	Path    string   `json:"path,omitempty" doc:"Where it is installed; absent: it was not found"`
	Page    string   `json:"page"`
}

// ConfigEntry is the entry of an agent in fairlead.yaml.
type ConfigEntry struct {
	Name  string     `json:"name"`
	Agent edit.Agent `json:"agent"`
	Sum   string     `json:"sum" doc:"The SHA-256 of fairlead.yaml"`
}

// AgentChange is a change of one agent in fairlead.yaml.
type AgentChange struct {
	Op    string     `json:"op" enum:"add,edit,remove"`
	Name  string     `json:"name" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._-]*$" doc:"The agent"`
	Agent edit.Agent `json:"agent,omitempty" doc:"Its whole entry; a field that is absent is removed from the file"`
	Sum   string     `json:"sum,omitempty" maxLength:"128" doc:"To write: the sum that the preview had"`
}

// AgentPreview is what a change would make of fairlead.yaml.
type AgentPreview struct {
	Sum     string   `json:"sum" doc:"The SHA-256 of the file that the diff was made from"`
	Diff    string   `json:"diff" doc:"A unified diff; values of variables and of notify are hidden"`
	Changes []string `json:"changes" nullable:"false" doc:"What the team would load"`
	Notes   []string `json:"notes" nullable:"false" doc:"What a person should know"`
}

// AgentWritten says what was changed.
type AgentWritten struct {
	Changes []string `json:"changes" nullable:"false" doc:"What the daemon loads"`
	Fault   string   `json:"fault,omitempty" doc:"Why the daemon did not load the file that was written"`
}

// AgentTest is the result of a look at an agent's program.
type AgentTest struct {
	OK       bool           `json:"ok"`
	Findings []AgentFinding `json:"findings" nullable:"false"`
}

// AgentFinding is one result.
type AgentFinding struct {
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Do   string `json:"do,omitempty" doc:"What a person can do"`
}
