package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/tasks"
	"github.com/fairlead-dev/fairlead/read/view"
)

func taskCommand(a *app) *cobra.Command {
	var flags view.TaskFlags
	var issue string
	var attach []string
	cmd := &cobra.Command{
		Use:   "task TEXT | --issue ISSUE",
		Short: "Give a task: an agent works in its own folder, you review, the work lands on a branch",
		Long: `An agent gets TEXT as its task. It works in a clone of the repository under .agents/worktrees, so tasks do
not touch each other or your files. Then the commands of tasks.checks run; if one fails, its output goes back to
the agent. Then the task waits for you: ` + "`fairlead diff`" + ` shows the changes, ` + "`fairlead request`" + ` sends it back into
the same conversation, ` + "`fairlead merge`" + ` lands it on the base branch, ` + "`fairlead drop`" + ` ends it.

` + "`fairlead run show TASK`" + ` shows its steps. Without --agent the agent is the one whose description fits the text. It needs a daemon (` + "`fairlead up`" + `). As TEXT, - reads standard input, here and in comment and request.

With --issue the text, the comments and the link of an issue on GitHub or GitLab are read by the program gh or glab;
TEXT, if there is one, comes first.

Files of --attach are stored with the task, at most 10. The agent gets their paths; Claude Code, Codex and ACP programs
that take images get the images, too.`,
		Example: `  fairlead task "Add retries to the uploader" --agent coder
  fairlead task "Document the retries" --after T1
  fairlead task "Make the page look like this" --attach sketch.png
  fairlead task --issue 142`,
		Args: cli.Args(cobra.ArbitraryArgs),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			var err error
			if flags.Text, err = a.optional(words); err != nil {
				return err
			}
			if err := tasks.FromIssue(ctx, a.App, issue, &flags); err != nil {
				return err
			}
			if flags.Attachments, err = tasks.Attach(attach); err != nil {
				return err
			}
			return tasks.Start(ctx, a.App, client, flags)
		}),
	}
	cmd.Flags().StringVar(&flags.Agent, "agent", "", "the agent that does it")
	cmd.Flags().StringArrayVar(&attach, "attach", nil, "give it a text `FILE`, or a PNG, JPEG, GIF or WebP image; can be repeated")
	cmd.Flags().StringSliceVar(&flags.After, "after", nil, "begin when these `tasks` have landed")
	cmd.Flags().StringVar(&flags.Base, "base", "", "the `branch` to land on (default: tasks.base, or the current branch)")
	cmd.Flags().StringVar(&issue, "issue", "", "take the text of an `ISSUE`: its number or its URL")
	cmd.AddCommand(&cobra.Command{
		Use:     "step NAME",
		Short:   "Do one step of a task's workflow: prepare, check, show or land",
		Long:    "It is a command for workflows, and works only in a step of a task.",
		Example: "  fairlead task step check",
		Hidden:  true,
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, words []string) error { return tasks.Step(cmd.Context(), a.App, words[0]) },
	})
	cmd.AddCommand(taskRestoreCommand(a), taskSnapshotsCommand(a), taskSyncCommand(a))
	return cmd
}

// optional is the text of a command line's words, as Spoken reads it; empty if there are none.
func (a *app) optional(words []string) (string, error) {
	if strings.TrimSpace(strings.Join(words, "")) == "" {
		return "", nil
	}
	text, err := a.Spoken(words)
	if err != nil {
		err = &cli.Coded{Code: cli.ExitUsage, Err: err}
	}
	return text, err
}

func tasksCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "tasks",
		Short: "List the tasks; what needs you comes first",
		Long: `It prints a line for each task, with its status and what you can do. The status is one of queued, blocked (by the
tasks of --after), working, checking, review, needs you, landing, pr open, done, failed and dropped.`,
		Example: "  fairlead tasks",
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return tasks.List(cmd.Context(), a.App) },
	}
}

func diffCommand(a *app) *cobra.Command {
	var flags tasks.DiffFlags
	cmd := &cobra.Command{
		Use:   "diff TASK",
		Short: "Show what a task has changed, committed or not, and your comments",
		Long: `While a task waits for your approval, it shows what you are asked to approve, after a line with the hash of its tree.
Otherwise it compares the task's folder with the newest commit that it has of its base branch. Your comments of all rounds stand
before it, each with its place, its round and its state: not sent, open, changed (its line has changed since) or resolved. If the
output is not a terminal, these lines go to standard error, and the patch is exact. It also works without a daemon.`,
		Example:           "  fairlead diff T12 --stat\n  fairlead diff T12 --round 2",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			return tasks.Diff(cmd.Context(), a.App, words[0], flags)
		},
	}
	cmd.Flags().IntVar(&flags.Round, "round", 0,
		"what the round with this `number` has changed since the round before; round 1 is the first work that you were shown")
	cmd.Flags().BoolVar(&flags.Stat, "stat", false, "only the names of the files and the number of changed lines")
	return cmd
}

func commentCommand(a *app) *cobra.Command {
	var resolve, reopen int
	cmd := &cobra.Command{
		Use:   "comment TASK FILE:LINE TEXT",
		Short: "Comment on a line of a task's changes, or resolve a comment",
		Long: `FILE is named as in ` + "`fairlead diff TASK`" + `; without :LINE the comment is on the whole file. ` + "`fairlead request TASK`" + ` sends
the comments that are new to the agent, each with its line. A comment stays with its text over the rounds, and
` + "`fairlead diff TASK`" + ` lists it with its number, its place and its state, until you resolve it.`,
		Example: `  fairlead comment T12 upload.go:40 "no: honour the context"
  fairlead comment T12 --resolve 3`,
		Args: func(cmd *cobra.Command, words []string) error {
			if resolve > 0 || reopen > 0 {
				return cli.Args(cobra.ExactArgs(1))(cmd, words)
			}
			return cli.Args(cobra.MinimumNArgs(3))(cmd, words)
		},
		ValidArgsFunction: a.completeRuns,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			if resolve > 0 || reopen > 0 {
				return tasks.Resolve(ctx, a.App, client, words[0], max(resolve, reopen), resolve > 0)
			}
			text, err := a.optional(words[2:])
			if err != nil {
				return err
			}
			return tasks.Comment(ctx, a.App, client, words[0], words[1], text)
		}),
	}
	cmd.Flags().IntVar(&resolve, "resolve", 0, "say that the comment with this `number` is resolved")
	cmd.Flags().IntVar(&reopen, "reopen", 0, "say that the comment with this `number` is open again")
	cmd.MarkFlagsMutuallyExclusive("resolve", "reopen")
	return cmd
}

func requestCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "request TASK [TEXT]",
		Short: "Send a task back to its agent, with your comments and a text",
		Long: `The text and the comments that are new are sent; open comments of earlier rounds are named in short. The request has the
number of the round that it is about, and begins the next one. The agent goes on in the same conversation and the same folder. If
its program cannot resume a conversation, it gets the task and your request in a new one. Then the checks run again and you are
asked again. A task that did not land because of a conflict, or of a check on the merged files, needs no text: the agent is told
what it met, and the newest commit of the base branch is merged into its folder.`,
		Example:           `  fairlead request T12 "also update the docs"`,
		Args:              cli.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			text, err := a.optional(words[1:])
			if err != nil {
				return err
			}
			return tasks.Request(ctx, a.App, client, words[0], text)
		}),
	}
}

func mergeCommand(a *app) *cobra.Command {
	return approvalCommand(a, "merge", "land it on its base branch",
		`It lands exactly what was shown when the task began to wait for you, on the newest commit of the branch. If that would
bring other changes with it, because the branch has lost commits, the task is shown to you again. Tasks land one at a time on a branch. If the
branch has moved, the checks run again on the merged files. The command waits until it has landed, and prints what it
waits for. After a conflict, or a check that fails on the merged files, the task waits for you (exit code 4): `+"`fairlead request`"+`
sends it back to its agent, with the newest commit of the branch merged into its folder, `+"`fairlead checkout`"+` is for resolving
it by hand. If the branch is checked out and has changes that are not committed, nothing lands, and the command names them.
Hooks of git do not run.`, tasks.Merge)
}

func prCommand(a *app) *cobra.Command {
	return approvalCommand(a, "pr", "publish it as a pull request",
		`Exactly what was shown is pushed to a branch of the remote (tasks.remote, or origin), as one commit by you, and the
program gh or glab creates the pull request. Failed checks and comments of people who may write to the repository go
back to the agent by themselves, and what it changes is pushed to the same pull request. The task is done when the
pull request is merged. It works for a task whose configuration lands it otherwise, too.`, tasks.Pull)
}

// approvalCommand approves a task; the approval does what follows.
func approvalCommand(a *app, verb, does, long string,
	approve func(ctx context.Context, a *cli.App, client *apiclient.Client, id string, yes api.MergeBody, wait bool) error,
) *cobra.Command {
	var noWait bool
	var yes api.MergeBody
	cmd := &cobra.Command{
		Use:               verb + " TASK",
		Short:             "Approve a task and " + does,
		Long:              long,
		Example:           "  fairlead " + verb + " T12\n  fairlead " + verb + " T12 --tree 1f0c9a3be5d7",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			return approve(ctx, a.App, client, words[0], yes, !noWait)
		}),
	}
	cmd.Flags().StringVar(&yes.Governing, "governing", "",
		"the `hash` of the governing files that you looked at, as fairlead diff prints it: a separate yes to what decides what runs later")
	cmd.Flags().StringVar(&yes.Tree, "tree", "",
		"the `hash` of the tree that you looked at, as fairlead diff prints it; if the task shows another one, nothing is approved")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the approval is recorded")
	return cmd
}

func dropCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "drop TASK",
		Short: "End a task and remove its folder; its files stay under a hidden ref",
		Long: `A task at work is cancelled. Its commits and its uncommitted files are kept under refs/fairlead/tasks/TASK; files
that git ignores are removed with the folder. A task that has landed loses only its folder. ` + "`fairlead task restore`" + `
brings it back.`,
		Example:           "  fairlead drop T12",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			return tasks.Drop(ctx, a.App, client, words[0])
		}),
	}
}

func taskRestoreCommand(a *app) *cobra.Command {
	var at int
	cmd := &cobra.Command{
		Use:   "restore TASK",
		Short: "Make a task's folder again, from a snapshot of it",
		Long: `A folder that was deleted, or removed by ` + "`fairlead drop`" + ` or by landing, is made again: its branch, and what was not
committed. Then the files of tasks.copy are copied and the commands of tasks.setup run. It never replaces a folder
that has something in it. A task that was dropped goes on from the state that it had; that needs a daemon.`,
		Example:           "  fairlead task restore T12 --at 3",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			return tasks.Restore(cmd.Context(), a.App, words[0], at)
		},
	}
	cmd.Flags().IntVar(&at, "at", 0, "the `number` of a snapshot (default: the newest one)")
	return cmd
}

func taskSyncCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sync TASK",
		Short: "Fetch the remote, so that a task can have its newest commits",
		Long: `The daemon fetches tasks.remote (or origin) into the remote-tracking branches of your repository, with your login, and
the task's folder can fetch them from its origin. It moves no branch, asks for no password and takes at most two minutes.
The command prints what has come, and how far the task's base branch is behind. With tasks.fetch in fairlead.yaml the
daemon fetches by itself.`,
		Example:           "  fairlead task sync T12",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
			return tasks.Sync(ctx, a.App, client, words[0])
		}),
	}
}

func taskSnapshotsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "snapshots TASK",
		Short: "List the snapshots of a task's folder",
		Long: `A snapshot is made every five minutes while the agent works, when a task is checked, shown or compared, and before its
folder is removed, if something has changed. The newest 50 are kept. It needs no daemon.`,
		Example:           "  fairlead task snapshots T12",
		Args:              cli.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, words []string) error {
			return tasks.Snapshots(cmd.Context(), a.App, words[0])
		},
	}
}
