package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
)

func (a *app) crewShowVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print how a crew member described itself (its soul)",
		Long: `It prints the text that the member wrote when it took its name. The member gets this text back
each time it wakes, and it never changes. On a terminal, control characters are replaced.`,
		Example:           "  fairlead crew show Wren",
		Args:              args(cobra.MatchAll(cobra.ExactArgs(1), namesSomebody)),
		ValidArgsFunction: a.completeCrew,
		RunE: a.reading(func(ctx context.Context, client *reader, words []string) error {
			doc, err := client.Document(ctx, words[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(doc)
			}
			soul := doc.Soul
			if soul == "" {
				return fmt.Errorf("%s is %s and has no soul: it has not said who it is", line(crewName(doc), crewNameWidth), plain(doc.Status))
			}
			if tty(a.out) {
				soul = plain(soul)
			}
			if _, err := io.WriteString(a.out, soul); err != nil {
				return err
			}
			if soul[len(soul)-1] != '\n' {
				_, err = fmt.Fprintln(a.out)
			}
			return err
		}),
	}
}

// documentMost is as much as the document of an agent may be; the daemon takes no more.
const documentMost = 2 << 20

func (a *app) importVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE|FOLDER...",
		Short: "Import crew members from the documents of another machine",
		Long: `A file is the document of one member, as .fairlead/agents keeps it. Of a folder, every file that
ends in .json is imported. An imported member is unknown until the lead reports on it. A member
that is here already, or whose seat is taken, is refused. - reads standard input.`,
		Example: "  fairlead crew import ../laptop/.fairlead/agents",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: a.asking(func(ctx context.Context, client *apiclient.Client, names []string) error {
			var errs []error
			for _, name := range names {
				files, err := documentsIn(name)
				errs = append(errs, err)
				for _, file := range files {
					errs = append(errs, a.importOne(ctx, client, file))
				}
			}
			errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
			if len(errs) == 1 {
				return errs[0] // its own words and its own exit code, without a wrapping
			}
			return errors.Join(errs...)
		}),
	}
}

// documentsIn are the documents of a folder; of what is no folder, itself. Read like the folder
// of a team: what is hidden or ends otherwise is no document.
func documentsIn(name string) ([]string, error) {
	if info, err := os.Stat(name); name == "-" || err != nil || !info.IsDir() {
		return []string{name}, nil //nolint:nilerr // who reads it says what is wrong with it
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("read the folder of documents: %w", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file in %s ends in .json; a team's documents are in its .fairlead/agents", line(name, errorWidth))
	}
	return files, nil
}

func (a *app) importOne(ctx context.Context, client *apiclient.Client, name string) error {
	data, err := a.document(name)
	if err != nil {
		return err
	}
	doc, err := client.ImportDocument(ctx, data)
	if err != nil {
		return fmt.Errorf("%s: %w", line(name, errorWidth), err)
	}
	if a.json {
		return a.printJSON(doc)
	}
	_, err = fmt.Fprintf(a.out, "%s is in the team as %s, on seat %d: %s\n", line(crewName(doc), crewNameWidth), plain(doc.ID), doc.Seat, plain(doc.Status))
	return err
}

// document reads a file that may be anything, as far as the daemon would take it.
func (a *app) document(name string) ([]byte, error) {
	from := a.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read the document: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was read
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, documentMost+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the document: %w", err)
	case len(data) > documentMost:
		return nil, fmt.Errorf("%s has more than %d MiB; no agent's document is so long", line(name, errorWidth), documentMost>>20)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%s: this is no document of an agent, which is a JSON object; those of a team are in its .fairlead/agents", line(name, errorWidth))
	}
	return data, nil
}

// saidIn is what `fairlead crew transcript` was asked for.
type saidIn struct {
	speaker, session, search string
	limit                    int
}

const (
	transcriptLast = 50
	transcriptMost = 500 // of one page
)

func (a *app) transcriptVerb() *cobra.Command {
	var asked saidIn
	cmd := &cobra.Command{
		Use:   "transcript",
		Short: "Print what agents and people said, with speaker and session",
		Long: `It covers all channels and the sessions of the lead. It prints the newest lines, oldest first.
The journal keeps them, so they outlive the sessions.`,
		Example: `  fairlead crew transcript --limit 20
  fairlead crew transcript --speaker Wren --search parser`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, words []string) error {
			if asked.limit < 1 {
				return usage(cmd, errors.New("--limit is how many lines to show: at least 1"))
			}
			return a.reading(func(ctx context.Context, client *reader, _ []string) error {
				return a.transcript(ctx, client.Client, asked)
			})(cmd, words)
		},
	}
	cmd.Flags().StringVar(&asked.speaker, "speaker", "", "only what this one said")
	cmd.Flags().StringVar(&asked.session, "session", "", "only what was said in this session, as the lines with ── name it")
	cmd.Flags().StringVar(&asked.search, "search", "", "only what has these words in it, in any case")
	cmd.Flags().IntVar(&asked.limit, "limit", transcriptLast, "at most so many")
	if err := cmd.RegisterFlagCompletionFunc("speaker", a.completeCrew); err != nil {
		panic("fairlead: transcript has no --speaker: " + err.Error())
	}
	return cmd
}

func (a *app) transcript(ctx context.Context, client *apiclient.Client, asked saidIn) error {
	page, err := newest(ctx, client, asked)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(page)
	}
	if len(page.Messages) == 0 {
		_, err := fmt.Fprintln(a.out, "nothing of that kind was said yet")
		return err
	}
	if page.More {
		fmt.Fprintln(a.out, a.paint(dim, "(older lines are left out; --limit shows more of them)"))
	}
	show := a.conversation()
	last := ""
	for _, m := range page.Messages {
		if m.Session != "" && m.Session != last { // a person speaks from outside of all sessions
			show.note(m.At, dim, "── "+m.Session)
			last = m.Session
		}
		where := ""
		if m.Channel != "" {
			where = "  in " + line(m.Channel, channelWidth)
		}
		colour := bold
		if m.Kind == entryHuman {
			colour = green
		}
		fmt.Fprintf(&show.out, "%s  %s%s\n", clock(m.At), a.paint(colour, line(m.Speaker, speakerWidth)), a.paint(dim, where))
		show.text(m.Text)
	}
	return show.flush()
}

// newest gathers pages from the newest on until there are enough of them. A search may answer
// with a page that has few lines, or none, and more before it.
func newest(ctx context.Context, client *apiclient.Client, asked saidIn) (crewctl.TranscriptPage, error) {
	query := crewctl.TranscriptQuery{Speaker: asked.speaker, Session: asked.session, Text: asked.search}
	var all crewctl.TranscriptPage
	for {
		query.Limit = min(asked.limit-len(all.Messages), transcriptMost)
		page, err := client.Transcript(ctx, query)
		if err != nil {
			return all, err
		}
		all.Messages = append(page.Messages, all.Messages...)
		all.More, all.Next, all.Head = page.More, page.Next, max(all.Head, page.Head)
		if !page.More || len(all.Messages) >= asked.limit || page.Next == 0 {
			return all, nil
		}
		query.Before = page.Next
	}
}
