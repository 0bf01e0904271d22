package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/questions"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/read/view"
)

func inboxCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inbox",
		Short: "List everything that needs a person, the most urgent first",
		Long: `It lists workflow steps that wait for approval, questions of agents, agents that gave up, runs that
failed, daily limits that stop work, and branches that lack commits of a host that led before. What holds
up other work comes first, then what waits for an answer, then what failed; within each, the longest wait comes first. Mission Control shows the same list.

For a step it shows what the step made and how to answer: with ` + "`fairlead approve`" + ` or ` + "`fairlead reject`" +
			`, in Mission Control, or with
a file. For a question it shows what the agent wants, why it must ask, and what happens without an
answer: answer with ` + "`fairlead answer`" + ` or in Mission Control.`,
		Example: `  fairlead inbox
  fairlead inbox --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return questions.Inbox(cmd.Context(), a.App) },
	}
}

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
				return cli.Usage(cmd, errors.New("give the answer: yes, no, an option, or --text"))
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

// questionCommand is about answers that were saved. Questions themselves are in the inbox.
func questionCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "question",
		Short: "List and revoke saved answers",
		Long: `An answer to an agent's question can be saved: it then answers the same question again without
asking you. ` + "`fairlead inbox`" + ` lists open questions, ` + "`fairlead answer`" + ` answers them.`,
		Example: `  fairlead question saved
  fairlead question revoke s3`,
	}, savedCommand(a), revokeCommand(a))
}

func savedCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "saved",
		Short: "List the saved answers: what is allowed or denied without asking again",
		Long: `An answer that was given with ` + "`--for session`" + ` or ` + "`--for always`" + ` answers every identical call
without asking. The rules of fairlead.yaml (permissions) are not in this list.`,
		Example: "  fairlead question saved",
		Args:    cli.Args(cobra.NoArgs),
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
			list, err := client.Questions.Saved(ctx)
			if err != nil {
				return err
			}
			return a.Show(map[string]any{"saved": append([]view.SavedAnswerView{}, list...)},
				func() error { return questions.PrintSavedAnswers(a.App, list) })
		}),
	}
}

func revokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Delete a saved answer: the next such call is asked about again",
		Long:    "ID is as `fairlead question saved` prints it.",
		Example: "  fairlead question revoke s3",
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			done, err := client.Questions.Revoke(ctx, words[0])
			if err != nil {
				return cli.Faulty(err)
			}
			return a.Say(map[string]any{"seq": done.Seq, "id": words[0]}, "%s is revoked", cli.Plain(words[0]))
		}),
	}
}

// notifyCommand is about the targets of notices, which fairlead.yaml names.
func notifyCommand(a *app) *cobra.Command {
	return noun(&cobra.Command{
		Use:   "notify",
		Short: "List and test the targets of notices",
		Long: `Fairlead notifies you when something waits for you or went wrong: on the desktop, by a webhook, by Slack,
Discord, ntfy, Telegram, e-mail and other services. The targets are in fairlead.yaml under
notify.targets; without targets nothing is sent. ` + "`fairlead docs config`" + ` explains the settings.`,
		Example: `  fairlead notify test
  fairlead notify list`,
	}, notifyListCommand(a), notifyTestCommand(a))
}

func notifyListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the targets: whether they can be reached, and what waits to be sent",
		Long: `For each target: its events, its quiet hours, how many messages it got in the last hour, how many
matters these counted without details, and why it cannot be reached. Addresses are secret and not shown.`,
		Example: `  fairlead notify list
  fairlead notify list --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, _ []string) error {
			return questions.NoticeTargets(ctx, a.App, client)
		}),
	}
}

func notifyTestCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "test [TARGET]",
		Short: "Send a test notice to one target, or to all, and print the result",
		Long: `The daemon sends it now, also in quiet hours. The exit code is 1 if a target did not get it. After a change of
fairlead.yaml run ` + "`fairlead reload`" + ` first.`,
		Example: `  fairlead notify test
  fairlead notify test phone`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			target := ""
			if len(words) > 0 {
				target = words[0]
			}
			return questions.TestNotice(ctx, a.App, client, target)
		}),
	}
}
