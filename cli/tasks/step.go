package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	state "github.com/fairlead-dev/fairlead/core/task"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// Step does one step of a task's workflow, in the process of that step, and writes the step's report.
func Step(ctx context.Context, a *cli.App, name string) error {
	file, report := os.Getenv(task.File), os.Getenv("REPORT_PATH")
	if file == "" || report == "" {
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  errors.New("this is a step of a task's workflow, and no task runs it; give a task with `fairlead task TEXT`"),
		}
	}
	t, err := task.Load(file)
	if err != nil {
		return err
	}
	if err := endsLeft(&t); err != nil {
		return err
	}
	t.From, t.InSession = os.Getenv(task.FromEnv), os.Getenv("FAIRLEAD_SESSION")
	t.Asked, t.Base = task.ParseAsked(os.Getenv(task.AskedEnv)), cmp.Or(os.Getenv(task.BaseEnv), t.Base)
	began := time.Now()
	metrics := map[string]string{}
	var fields map[string]any
	switch name {
	case "prepare":
		err = t.Prepare(ctx, a.Out)
	case "check":
		err = t.Check(ctx, a.Out)
	case "merged":
		if err = t.CheckMerged(ctx, a.Out); errors.As(err, new(*task.CheckFailed)) {
			metrics[state.MetricCheck] = task.FailureOf(err).Check
		}
	case "land":
		fields, err = pull(ctx, a, t)
	default:
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("there is no step %q; there are prepare, check, merged and land", cli.Line(name, 40)),
		}
	}
	if errors.As(err, new(*task.CheckFailed)) && name == "check" {
		return &cli.Coded{Code: cli.ExitFailed, Err: err} // the last lines of its output are the reason
	}
	if err != nil {
		fmt.Fprintln(a.Out, cli.Plain(err.Error()))
	}
	made := map[string]any{
		"schema": "run_report@v0", "run_id": os.Getenv("RUN_ID"), "step_id": os.Getenv("STEP_ID"), "agent": os.Getenv("AGENT_ID"),
		"status":     "COMPLETED",
		"started_at": began.UTC().Format(time.RFC3339Nano), "ended_at": time.Now().UTC().Format(time.RFC3339Nano),
		"logs": []string{}, "artifacts": []string{}, "metrics": metrics,
	}
	maps.Copy(made, fields)
	switch {
	case errors.As(err, new(*task.CheckFailed)):
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

// endsLeft makes the commands of a task end with what they start. It holds for the whole process.
func endsLeft(t *task.Task) error {
	if err := shim.KeepOrphans(); err != nil {
		return err
	}
	t.EndLeft = func(ctx context.Context, not int) (names []string, err error) {
		ended, err := shim.EndDescendants(ctx)
		for _, p := range ended {
			if p.PID != not {
				names = append(names, cli.Line(p.Command, cli.StepWidth))
			}
		}
		return names, err
	}
	return nil
}
