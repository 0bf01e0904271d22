package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/machine/workflow"
	"github.com/fairlead-dev/fairlead/view"
)

func (a *app) approveVerb() *cobra.Command {
	return a.answerVerb("approve", "Approve a workflow step that waits for a person", false, "is approved", `

If the step asks for more than yes or no, pass a JSON object with --input, as the step's input_schema
demands; `+"`fairlead inbox`"+` prints the schema.`)
}

func (a *app) rejectVerb() *cobra.Command {
	return a.answerVerb("reject", "Reject a workflow step that waits for a person", true, "is rejected", `

The run goes back to the step that loop_back_to names; if it names none, the step fails. --note is
passed to the agent that does the work again.`)
}

func (a *app) answerVerb(verb, short string, reject bool, said, more string) *cobra.Command {
	var input, note string
	cmd := &cobra.Command{
		Use:   verb + " RUN STEP",
		Short: short,
		Long: `It returns when the answer is on disk; the run then continues.` + more + `

You can give the same answer in Mission Control, or as a file at the path that the inbox prints.`,
		Example:           "  fairlead " + verb + ` 20260801-101500-build review --note "see my comments"`,
		Args:              args(cobra.ExactArgs(2)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			answer := view.StepAnswer{Rejected: reject, Note: note}
			if input != "" {
				text, err := a.readInput(input)
				if err != nil {
					return usage(cmd, err)
				}
				answer.Input = text
			}
			return a.answer(cmd.Context(), words[0], words[1], answer, said)
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "a `FILE` with a JSON object, or - for standard input")
	cmd.Flags().StringVar(&note, "note", "", "a note that is kept with the answer")
	return cmd
}

// inputMost is as much as an answer may be.
const inputMost = 512 << 10

// readInput reads what somebody answers, and finds out here whether it is JSON: where the
// file is at hand the fault is easier to see.
func (a *app) readInput(path string) (string, error) {
	in := a.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("--input: %w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, inputMost+1))
	if err != nil {
		return "", fmt.Errorf("--input: %w", err)
	}
	var object map[string]json.RawMessage
	switch err := json.Unmarshal(text, &object); {
	case len(text) > inputMost:
		return "", fmt.Errorf("--input %s has more than %d KiB; put large things into a file and name it in the answer", path, inputMost>>10)
	case err != nil || object == nil:
		return "", fmt.Errorf(`--input %s is no JSON object, as in {"approved": true}%s`, path, orNote(errText(err)))
	}
	return string(text), nil
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (a *app) answer(ctx context.Context, id, step string, answer view.StepAnswer, said string) error {
	client, err := a.dial()
	var none *apiclient.NoDaemon
	if errors.As(err, &none) {
		return &coded{exitNoDaemon, fmt.Errorf("%w, or let the run go on here with `fairlead run resume %s`, and answer then", err, plain(id))}
	}
	if err != nil {
		return err
	}
	defer client.Close()
	done, err := client.Answer(ctx, id, step, answer)
	if err != nil {
		return faulty(err)
	}
	view, err := client.Run(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"seq": done.Seq, "run_id": id, "step_id": step, "status": view.Status})
	}
	for _, s := range view.Steps {
		if s.ID == step && s.Status == string(workflow.Waiting) && s.BadInput != "" {
			return &coded{exitRefused, fmt.Errorf("the answer is not valid, and %s still waits: %s", step, line(s.BadInput, errorWidth))}
		}
	}
	_, err = fmt.Fprintf(a.out, "%s of run %s %s\n", plain(step), plain(id), said)
	return err
}

func (a *app) cancelVerb() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "cancel RUN [STEP]",
		Short: "Cancel a run, or one of its steps",
		Long: `It ends the processes of the run and everything that they started, and returns when they are gone.
Completed steps stay completed, and ` + "`fairlead run resume RUN`" + ` can still continue the run. Cancelling
a step that has not started cancels the run.

It also works without a daemon, also for steps that outlived the process that started them.`,
		Example:           `  fairlead run cancel 20260801-101500-build --note "wrong branch"`,
		Args:              args(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			step := ""
			if len(words) == 2 {
				step = words[1]
			}
			return a.cancel(cmd.Context(), words[0], step, note)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why; it stands beside the run")
	return cmd
}

func (a *app) cancel(ctx context.Context, id, step, note string) error {
	h, err := a.takeHelm(ctx)
	if err != nil {
		return err
	}
	view, err := a.cancelAt(ctx, h, id, step, note)
	if err = errors.Join(err, h.leave(ctx, a, err == nil)); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(ended{view.ID, view.Status, view.StateFile})
	}
	if step != "" {
		_, err = fmt.Fprintf(a.out, "%s of run %s is cancelled; the run is %s\n", plain(step), plain(id), view.Status)
		return err
	}
	_, err = fmt.Fprintf(a.out, "run %s is cancelled\n", plain(id))
	return err
}

// cancelAt cancels, and waits until nothing of it runs any more.
func (a *app) cancelAt(ctx context.Context, h *helm, id, step, note string) (view.RunView, error) {
	done, err := h.CancelRun(ctx, id, step, note)
	if err != nil {
		return view.RunView{}, err
	}
	for after := done.Seq; ; {
		view, err := h.Run(ctx, id)
		if err != nil || !atIt(view, step) {
			return view, err
		}
		for ch, err := range h.Events(ctx, apiclient.EventsQuery{After: int64(after)}) { //nolint:gosec // no journal is that long
			if err != nil {
				return view, err
			}
			after = ch.Seq
			break // whatever it is: what is waited for is a state
		}
		if err := ctx.Err(); err != nil {
			return view, err
		}
	}
}

// atIt says whether a step, or any of them, still has a process.
func atIt(view view.RunView, step string) bool {
	for _, s := range view.Steps {
		if s.Session != "" && (step == "" || s.ID == step) {
			return true
		}
	}
	return false
}
