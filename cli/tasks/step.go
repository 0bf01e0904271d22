package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/files/runstate"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
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
	began := time.Now()
	var said, artifacts []string
	metrics := map[string]string{}
	var fields map[string]any
	switch name {
	case "prepare":
		err = t.Prepare(ctx, a.Out)
	case "check":
		if err = t.Check(ctx, a.Out); err == nil {
			fields, err = published(ctx, t, os.Getenv(task.GoverningEnv))
		}
	case "show":
		said, artifacts, err = show(ctx, a, t, metrics)
	case "land":
		t.Asked, t.Base = task.ParseAsked(os.Getenv(task.AskedEnv)), cmp.Or(os.Getenv(task.BaseEnv), t.Base)
		if t.How == task.PR {
			fields, err = pull(ctx, a, t)
			break
		}
		said, err = land(ctx, a, t, metrics)
		maps.Copy(metrics, task.FailureOf(err).Metrics())
	default:
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("there is no step %q; there are prepare, check, show and land", cli.Line(name, 40)),
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
		"logs": view.Some(said), "artifacts": view.Some(artifacts), "metrics": metrics,
	}
	maps.Copy(made, fields)
	if err != nil {
		made["status"], made["logs"] = "FAILED", []string{err.Error()}
	}
	if why := task.AsksAgain(err, t.Base); why != "" {
		made["logs"], metrics[task.MetricAgain] = []string{why}, why
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

// GovernsLine says that a task changes files that decide what runs later.
func GovernsLine(files []string) string {
	return "it changes files that decide what runs later: " + strings.Join(files, ", ")
}

func show(ctx context.Context, a *cli.App, t task.Task, metrics map[string]string) (said, artifacts []string, err error) {
	shown, err := t.Show(ctx, t.Run)
	if err != nil {
		return nil, nil, err
	}
	review, err := runstate.LoadReview(filepath.Join(t.Run, task.FindingsName))
	if err != nil {
		return nil, nil, err
	}
	var first []string
	if review.Rounds > 0 {
		first = review.Lines()
	}
	if shown.Governs.Hash != "" {
		first = append(first, GovernsLine(shown.Governs.Files))
	}
	shown.Stat = slices.Concat(first, shown.Told, shown.Stat)
	for _, line := range shown.Stat {
		if _, err := fmt.Fprintln(a.Out, cli.Plain(line)); err != nil {
			return nil, nil, err
		}
	}
	metrics[task.MetricFiles] = strconv.Itoa(shown.Files)
	maps.Copy(metrics, shown.Metrics())
	if why := os.Getenv(task.AgainEnv); why != "" {
		metrics[task.MetricAgain] = why
		shown.Stat = append([]string{"shown again: " + why}, shown.Stat...)
	}
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
	if done.Checkout != "" {
		said += ", and its checkout " + done.Checkout + " has moved with it"
	}
	if done.Joined {
		said += "; its commits could not be replayed one by one, so it is one commit"
	}
	if done.Later {
		said += "; files that were changed after they were shown did not land, and are in " + t.Ref()
	} else if stays, err := t.RemoveLanded(ctx); err != nil {
		said += "; " + err.Error()
	} else if stays {
		said += "; the folder was changed meanwhile, and stays"
	}
	_, err = fmt.Fprintln(a.Out, said)
	return []string{said}, err
}
