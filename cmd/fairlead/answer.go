package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/questions"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/view"
)

func answerAskedCommand(a *app) *cobra.Command {
	var text, scope string
	cmd := &cobra.Command{
		Use:   "answer ID [yes|no|OPTION]",
		Short: "Answer a question of an agent",
		Long: `ID is as ` + "`fairlead inbox`" + ` prints it, such as q17. A permission takes yes or no; another question
takes one of its options, or your own text with --text. If the agent offers an option that is itself
called yes or no, that option is meant. The command returns when the answer is on disk; the agent
then receives it.

--for session saves the answer for every identical call until the agent's session ends; --for always,
until ` + "`fairlead question revoke`" + ` deletes it. Two calls are identical if their arguments are the same;
for calls that write files, if they write to the same files.

Agents cannot use this command: only a person can say yes.`,
		Example: `  fairlead answer q17 yes
  fairlead answer q17 no --for session
  fairlead answer q18 --text "use the second schema"`,
		Args: cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, words []string) error {
			if scope != string(question.Once) && scope != string(question.Session) && scope != string(question.Always) {
				return cli.Usage(cmd, fmt.Errorf("--for takes once, session or always, not %q", scope))
			}
			answer := view.QuestionAnswer{Text: text, Scope: scope}
			word := ""
			if len(words) == 2 {
				word = words[1]
			}
			if word == "" && text == "" {
				return cli.Usage(cmd, errors.New("what is the answer? yes, no, an option, or --text"))
			}
			return a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
				return questions.AnswerAsked(ctx, a.App, client, words[0], word, answer)
			})(cmd, words)
		},
	}
	cmd.Flags().StringVar(&text, "text", "", "the answer in words, or a word to go with it")
	cmd.Flags().StringVar(&scope, "for", string(question.Once), "how long the answer holds: once, session or always")
	return cmd
}
