package runs

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

const madeReportMode = 0o644 // as public as the repository

// madeReport is the report of a plain command that left none: its exit code is the result. It is written where
// the command could have written one. said are the last lines of its output. Nil: the command did not end by itself.
func madeReport(f StepFacts, s team.Session, what *team.SessionEnded, said []string) (*runstate.StepReport, error) {
	of := runstate.ReportFor{RunID: f.Cmd.RunID, StepID: f.Cmd.StepID} // a schema of the user's is for reports that others write
	made := map[string]any{
		"schema": "run_report@v0", "run_id": f.Cmd.RunID, "step_id": f.Cmd.StepID, "agent": f.Cmd.Agent, "status": "COMPLETED",
		"started_at": s.StartedAt.UTC().Format(time.RFC3339Nano), "ended_at": time.Now().UTC().Format(time.RFC3339Nano),
	}
	switch what.Outcome {
	case control.OK:
		made["logs"] = []string{"exit code 0; this report was made by Fairlead"}
	case control.Failed:
		why := what.Why
		if len(said) > 0 {
			why += ": " + strings.Join(said, "\n")
		}
		made["logs"] = []string{what.Why + "; this report was made by Fairlead"}
		if f.gate {
			made["gate_failure"] = why
		} else {
			made["status"], made["logs"] = "FAILED", []string{why}
		}
	default:
		return nil, nil
	}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("make the report of a command: %w", err)
	}
	if err := os.WriteFile(f.Report, append(text, '\n'), madeReportMode); err != nil { //nolint:gosec // see madeReportMode
		return nil, fmt.Errorf("write the report of a command: %w", err)
	}
	report, err := runstate.ParseReport(f.Report, text, of)
	if err != nil {
		return nil, err
	}
	return &report, nil
}
