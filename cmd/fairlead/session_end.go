package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli"
	dispatchcli "github.com/fairlead-dev/fairlead/cli/dispatch"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

func sessionEndCommand(a *app, path *string) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "end",
		Short: "End a dispatch: its rules are not enforced any more",
		Long: `A working agent is cancelled, and its conversation closed with a summary that says so. Nothing is
deleted. Only a person, or a program outside of the dispatch, can end it.`,
		Example: `  fairlead dispatch end --why "done for today"`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			found, err := dispatchcli.Ordering(a.App, *path, "end_asked")
			if err != nil {
				return err
			}
			done, err := dispatchcli.TellSession(a.App, found, dispatch.End{Why: why})
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(map[string]any{"path": found.Folder.Path(), "state": string(dispatch.Closed), "conversations": done.After.Made})
			}
			for _, ch := range done.Changes {
				dispatchcli.PrintMove(a.App, ch)
			}
			_, err = fmt.Fprintf(a.Out, "session %s is closed; its folder stays: %s\n", cli.Line(found.Folder.Name(), cli.SummaryWidth), cli.Plain(found.Folder.Path()))
			return err
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "why, for the record")
	return cmd
}

// loggedMost is the maximum size of a conversation's JSON in bytes.
const loggedMost = 1 << 20

func sessionLogCommand(a *app, path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "log",
		Short: "Record a conversation in messages.jsonl, from JSON on standard input",
		Long: `It replaces simple_asm_logger.py for programs that call it. The input is one JSON object with
conversation_id, timestamp, summary, files_created and agents_used, or the same as conversation_data
beside a session_path, which names the dispatch folder. A conversation that messages.jsonl has
already is not recorded twice.`,
		Example: "  fairlead dispatch log < conversation.json",
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := io.ReadAll(io.LimitReader(a.In, loggedMost+1))
			switch {
			case err != nil:
				return fmt.Errorf("read standard input: %w", err)
			case len(raw) > loggedMost:
				return cli.Usage(cmd, fmt.Errorf("the JSON has more than %d KiB; a summary is a line, not a file", loggedMost>>10))
			}
			return a.sessionLog(cmd, *path, raw)
		},
	}
}

func (a *app) sessionLog(cmd *cobra.Command, path string, raw []byte) error {
	given, err := dispatchfolder.LoggedPath(raw)
	if err != nil {
		return cli.Usage(cmd, err)
	}
	if path == "" {
		path = given
	}
	found, err := dispatchcli.Ordering(a.App, path, "log")
	if err != nil {
		return err
	}
	if given != "" && dispatchcli.SessionPath(a.App, given) != found.Folder.Path() {
		return &cli.Coded{Code: cli.ExitUsage, Err: errors.New("--path names one session, and session_path in the JSON another one; leave one of them out")}
	}
	added, err := found.Folder.Log(raw)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"path": found.Folder.Path(), "logged": added})
	}
	words := "noted in "
	if !added {
		words = "nothing to do: the conversation is noted already in "
	}
	_, err = fmt.Fprintln(a.Out, words+cli.Plain(filepath.Join(found.Folder.Path(), "conversations", "messages.jsonl")))
	return err
}
