package main

import (
	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/runs"
	"github.com/fairlead-dev/fairlead/view"
)

func approveCommand(a *app) *cobra.Command {
	return answerCommand(a, "approve", "Approve a workflow step that waits for a person", false, "is approved", `

If the step asks for more than yes or no, pass a JSON object with --input, as the step's input_schema
demands; `+"`fairlead inbox`"+` prints the schema.`)
}

func rejectCommand(a *app) *cobra.Command {
	return answerCommand(a, "reject", "Reject a workflow step that waits for a person", true, "is rejected", `

The run goes back to the step that loop_back_to names; if it names none, the step fails. --note is
passed to the agent that does the work again.`)
}

func answerCommand(a *app, verb, short string, reject bool, said, more string) *cobra.Command {
	var input, note string
	cmd := &cobra.Command{
		Use:   verb + " RUN STEP",
		Short: short,
		Long: `It returns when the answer is on disk; the run then continues.` + more + `

You can give the same answer in Mission Control, or as a file at the path that the inbox prints.`,
		Example:           "  fairlead " + verb + ` 20260801-101500-build review --note "see my comments"`,
		Args:              cli.Args(cobra.ExactArgs(2)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			answer := view.StepAnswer{Rejected: reject, Note: note}
			if input != "" {
				text, err := runs.ReadInput(a.App, input)
				if err != nil {
					return cli.Usage(cmd, err)
				}
				answer.Input = text
			}
			return runs.Answer(cmd.Context(), a.App, words[0], words[1], answer, said)
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "a `FILE` with a JSON object, or - for standard input")
	cmd.Flags().StringVar(&note, "note", "", "a note that is kept with the answer")
	return cmd
}

func cancelCommand(a *app) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "cancel RUN [STEP]",
		Short: "Cancel a run, or one of its steps",
		Long: `It ends the processes of the run and everything that they started, and returns when they are gone.
Completed steps stay completed, and ` + "`fairlead run resume RUN`" + ` can still continue the run. Cancelling
a step that has not started cancels the run.

It also works without a daemon, also for steps that outlived the process that started them.`,
		Example:           `  fairlead run cancel 20260801-101500-build --note "wrong branch"`,
		Args:              cli.Args(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			step := ""
			if len(words) == 2 {
				step = words[1]
			}
			return runs.Cancel(cmd.Context(), a.App, words[0], step, note)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "the reason; it is kept with the run")
	return cmd
}
