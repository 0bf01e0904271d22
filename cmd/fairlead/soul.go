package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	crewcli "github.com/fairlead-dev/fairlead/cli/crew"
)

func crewShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print how a crew member described itself (its soul)",
		Long: `It prints the text that the member wrote when it took its name. The member gets this text back
each time it wakes, and it never changes. On a terminal, control characters are replaced.`,
		Example:           "  fairlead crew show Wren",
		Args:              cli.Args(cobra.MatchAll(cobra.ExactArgs(1), namesSomebody)),
		ValidArgsFunction: a.completeCrew,
		RunE: a.reading(func(ctx context.Context, client *cli.Reader, words []string) error {
			doc, err := client.Crew.Document(ctx, words[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(doc)
			}
			soul := doc.Soul
			if soul == "" {
				return fmt.Errorf("%s is %s and has no soul: it has not said who it is", cli.Line(crewcli.CrewName(doc), crewcli.NameWidth), cli.Plain(doc.Status))
			}
			if cli.Tty(a.Out) {
				soul = cli.Plain(soul)
			}
			if _, err := io.WriteString(a.Out, soul); err != nil {
				return err
			}
			if soul[len(soul)-1] != '\n' {
				_, err = fmt.Fprintln(a.Out)
			}
			return err
		}),
	}
}

func importCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE|FOLDER...",
		Short: "Import crew members from the documents of another machine",
		Long: `A file is the document of one member, as .fairlead/agents keeps it. Of a folder, every file that
ends in .json is imported. An imported member is unknown until the lead reports on it. A member
that is here already, or whose seat is taken, is refused. - reads standard input.`,
		Example: "  fairlead crew import ../laptop/.fairlead/agents",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			var errs []error
			for _, name := range names {
				files, err := crewcli.DocumentsIn(name)
				errs = append(errs, err)
				for _, file := range files {
					errs = append(errs, crewcli.ImportOne(ctx, a.App, client, file))
				}
			}
			return errors.Join(errs...)
		}),
	}
}

func transcriptCommand(a *app) *cobra.Command {
	var asked crewcli.SaidIn
	cmd := &cobra.Command{
		Use:   "transcript",
		Short: "Print what agents and people said, with speaker and session",
		Long: `It covers all channels and the sessions of the lead. It prints the newest lines, oldest first.
The journal keeps them, so they outlive the sessions.`,
		Example: `  fairlead crew transcript --limit 20
  fairlead crew transcript --speaker Wren --search parser`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, words []string) error {
			if asked.Limit < 1 {
				return cli.Usage(cmd, errors.New("--limit is how many lines to show: at least 1"))
			}
			return a.reading(func(ctx context.Context, client *cli.Reader, _ []string) error {
				return crewcli.Transcript(ctx, a.App, client.Client, asked)
			})(cmd, words)
		},
	}
	cmd.Flags().StringVar(&asked.Speaker, "speaker", "", "only what this one said")
	cmd.Flags().StringVar(&asked.Session, "session", "", "only what was said in this session, as the lines with ── name it")
	cmd.Flags().StringVar(&asked.Search, "search", "", "only what has these words in it, in any case")
	cmd.Flags().IntVar(&asked.Limit, "limit", crewcli.TranscriptLast, "at most so many")
	if err := cmd.RegisterFlagCompletionFunc("speaker", a.completeCrew); err != nil {
		panic("fairlead: transcript has no --speaker: " + err.Error())
	}
	return cmd
}
