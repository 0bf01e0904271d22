package view

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
)

// WorkView is one thing that runs now: a session of an agent, or a step without an agent. An agent that
// waits between two sessions, as for a rate limit, has no session.
type WorkView struct {
	Agent   string `json:"agent,omitempty" doc:"Empty: a step without an agent"`
	Session string `json:"session_id,omitempty"`
	Status  Status `json:"status" enum:"unknown,stopping,waiting,rate_limited,running,backing_off,failed,idle" doc:"Of the agent"`
	Why     string `json:"status_why,omitempty"`

	Purpose  team.PurposeKind `json:"purpose,omitempty" doc:"What the session is for: control, channels, lead, step or dispatch"`
	Host     string           `json:"host,omitempty" doc:"The host on which the session runs; empty: the leader's machine"`
	Run      string           `json:"run_id,omitempty"`
	Step     string           `json:"step_id,omitempty"`
	Workflow string           `json:"workflow_name,omitempty"`
	Title    string           `json:"title,omitempty" doc:"Of the task"`

	Since        *time.Time `json:"since" doc:"When its process started; null: it has none"`
	Last         string     `json:"last,omitempty" doc:"The last line of its output; untrusted, and may have escape sequences"`
	LastAt       *time.Time `json:"last_at,omitempty" doc:"When it wrote last"`
	Says         string     `json:"says,omitempty" doc:"The agent's report about itself"`
	Context      int        `json:"context_percent,omitempty" doc:"How full the model's context is, as the program reported last; left out if it reports nothing"`
	FilesChanged int        `json:"files_changed,omitempty" doc:"Of a task, as it was last shown to a person"`
	Tokens       int64      `json:"tokens_today" doc:"Of the agent, as reported today (UTC)"`
	CostUSD      float64    `json:"cost_usd_today" doc:"Of the agent, as reported today (UTC)"`
}
