package runs

import (
	"encoding/json"
	"fmt"
	"time"
)

// AgentReport is the part of a step's report that the agent supplies. Run, step, agent and times are
// known.
type AgentReport struct {
	Status             string         `json:"status"`
	Artifacts          []string       `json:"artifacts,omitempty"`
	Metrics            map[string]any `json:"metrics,omitempty"`
	Logs               []string       `json:"logs,omitempty"`
	GateFailure        string         `json:"gate_failure,omitempty"`
	AgainInSeconds     int            `json:"again_in_seconds,omitempty"`
	NextSuggestedSteps []string       `json:"next_suggested_steps,omitempty"`
}

// ReportFile encodes a report for its file.
func (f StepFacts) ReportFile(report AgentReport, begun time.Time) ([]byte, error) {
	const stamp = "2006-01-02T15:04:05.000000Z"
	text, err := json.MarshalIndent(struct {
		Schema    string `json:"schema"`
		RunID     string `json:"run_id"`
		StepID    string `json:"step_id"`
		Agent     string `json:"agent"`
		StartedAt string `json:"started_at"`
		EndedAt   string `json:"ended_at"`
		AgentReport
	}{
		Schema: "run_report@v0", RunID: f.Cmd.RunID, StepID: f.Cmd.StepID, Agent: f.Cmd.Agent,
		StartedAt: begun.UTC().Format(stamp), EndedAt: time.Now().UTC().Format(stamp), AgentReport: report,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("the report cannot be written as JSON: %w", err)
	}
	return append(text, '\n'), nil
}
