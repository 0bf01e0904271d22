package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/task"
)

// Step does one step of a task's workflow, in the process of that step, and writes the step's report.
func Step(ctx context.Context, a *cli.App, name string) error {
	file, report := os.Getenv(task.File), os.Getenv("REPORT_PATH")
	if file == "" || report == "" {
		return &cli.Coded{Code: cli.ExitUsage, Err: errors.New("this is a step of a task's workflow, and no task runs it; give a task with `fairlead task TEXT`")}
	}
	t, err := task.Load(file)
	if err != nil {
		return err
	}
	began := time.Now()
	said := ""
	switch name {
	case "prepare":
		err = t.Prepare(ctx, a.Out)
	case "check":
		err = t.Check(ctx, a.Out)
	case "show":
		said, err = show(ctx, a, t)
	case "land":
		said, err = land(ctx, a, t)
	default:
		return &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("there is no step %q; there are prepare, check, show and land", cli.Line(name, 40))}
	}
	if err != nil {
		fmt.Fprintln(a.Out, cli.Plain(err.Error()))
	}
	var failed *task.CheckFailed
	var conflict *task.Conflict
	if errors.As(err, &failed) && name == "check" {
		return &cli.Coded{Code: cli.ExitFailed, Err: err} // the last lines of its output are the reason
	}
	made := map[string]any{
		"schema": "run_report@v0", "run_id": os.Getenv("RUN_ID"), "step_id": os.Getenv("STEP_ID"), "agent": os.Getenv("AGENT_ID"), "status": "COMPLETED",
		"started_at": began.UTC().Format(time.RFC3339Nano), "ended_at": time.Now().UTC().Format(time.RFC3339Nano), "logs": []string{said},
	}
	switch {
	case errors.As(err, &conflict), errors.As(err, &failed):
		made["gate_failure"] = err.Error()
	case err != nil:
		made["status"], made["logs"] = "FAILED", []string{err.Error()}
	case said == "":
		delete(made, "logs")
	}
	text, fault := json.MarshalIndent(made, "", "  ")
	if fault == nil {
		fault = os.WriteFile(report, append(text, '\n'), 0o644) //nolint:gosec // as public as the repository
	}
	return fault
}

func show(ctx context.Context, a *cli.App, t task.Task) (said string, err error) {
	changed, err := t.Show(ctx, a.Out)
	if err == nil && !changed {
		said = "no file was changed"
	}
	return said, err
}

func land(ctx context.Context, a *cli.App, t task.Task) (said string, err error) {
	done, err := t.Land(ctx, a.Out)
	if err != nil {
		return "", err
	}
	said = "there was nothing to land"
	if done.Commit != "" {
		said = fmt.Sprintf("commit %.10s on %s", done.Commit, t.Base)
	}
	if done.Later {
		said += "; files that were changed after they were shown did not land, and are in " + t.Ref()
	}
	_, err = fmt.Fprintln(a.Out, said)
	return said, err
}
