package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/task"
	"github.com/fairlead-dev/fairlead/view"
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
	var said, artifacts []string
	metrics := map[string]string{}
	switch name {
	case "prepare":
		err = t.Prepare(ctx, a.Out)
	case "check":
		err = t.Check(ctx, a.Out)
	case "show":
		said, artifacts, err = show(ctx, a, t, metrics)
	case "land":
		said, err = land(ctx, a, t, metrics)
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
		"started_at": began.UTC().Format(time.RFC3339Nano), "ended_at": time.Now().UTC().Format(time.RFC3339Nano),
		"logs": view.Some(said), "artifacts": view.Some(artifacts), "metrics": metrics,
	}
	switch {
	case errors.As(err, &conflict), errors.As(err, &failed):
		made["gate_failure"] = err.Error()
	case err != nil:
		made["status"], made["logs"] = "FAILED", []string{err.Error()}
	}
	text, fault := json.MarshalIndent(made, "", "  ")
	if fault == nil {
		fault = os.WriteFile(report, append(text, '\n'), 0o644) //nolint:gosec // as public as the repository
	}
	return fault
}

func show(ctx context.Context, a *cli.App, t task.Task, metrics map[string]string) (said, artifacts []string, err error) {
	shown, err := t.Show(ctx, t.Run)
	if err != nil {
		return nil, nil, err
	}
	for _, line := range shown.Stat {
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return nil, nil, err
		}
	}
	metrics[task.MetricFiles] = strconv.Itoa(shown.Files)
	if shown.Diff != "" {
		artifacts = []string{shown.Diff}
	}
	return shown.Stat, artifacts, nil
}

func land(ctx context.Context, a *cli.App, t task.Task, metrics map[string]string) ([]string, error) {
	done, err := t.Land(ctx, a.Out)
	if err != nil {
		return nil, err
	}
	said := "there was nothing to land"
	if done.Commit != "" {
		metrics[task.MetricLanded] = done.Commit
		said = fmt.Sprintf("commit %.10s on %s", done.Commit, t.Base)
	}
	if done.Later {
		said += "; files that were changed after they were shown did not land, and are in " + t.Ref()
	}
	_, err = fmt.Fprintln(a.Out, said)
	return []string{said}, err
}
