package crew

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
	crewctl "github.com/fairlead-dev/fairlead/controller/crew"
)

// documentMost is as much as the document of an agent may be; the daemon takes no more.
const documentMost = 2 << 20

// DocumentsIn are the documents of a folder; of what is no folder, itself. Read like the folder
// of a team: what is hidden or ends otherwise is no document.
func DocumentsIn(name string) ([]string, error) {
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
		return nil, fmt.Errorf("no file in %s ends in .json; a team's documents are in its .fairlead/agents", cli.Line(name, cli.ErrorWidth))
	}
	return files, nil
}

// ImportOne imports one document of a crew member.
func ImportOne(ctx context.Context, a *cli.App, client *apiclient.Client, name string) error {
	data, err := document(a, name)
	if err != nil {
		return err
	}
	doc, err := client.ImportDocument(ctx, data)
	if err != nil {
		return fmt.Errorf("%s: %w", cli.Line(name, cli.ErrorWidth), err)
	}
	if a.JSON {
		return a.PrintJSON(doc)
	}
	_, err = fmt.Fprintf(a.Out, "%s is in the team as %s, on seat %d: %s\n", cli.Line(CrewName(doc), cli.CrewNameWidth), cli.Plain(doc.ID), doc.Seat, cli.Plain(doc.Status))
	return err
}

// document reads a file that may be anything, as far as the daemon would take it.
func document(a *cli.App, name string) ([]byte, error) {
	from := a.In
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
		return nil, fmt.Errorf("%s has more than %d MiB; no agent's document is so long", cli.Line(name, cli.ErrorWidth), documentMost>>20)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%s: this is no document of an agent, which is a JSON object; those of a team are in its .fairlead/agents", cli.Line(name, cli.ErrorWidth))
	}
	return data, nil
}

// SaidIn is what `fairlead crew transcript` was asked for.
type SaidIn struct {
	Speaker, Session, Search string
	Limit                    int
}

const (
	TranscriptLast = 50
	transcriptMost = 500 // of one page
)

// Transcript prints what was said, filtered by speaker and session.
func Transcript(ctx context.Context, a *cli.App, client *apiclient.Client, asked SaidIn) error {
	page, err := newest(ctx, client, asked)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(page)
	}
	if len(page.Messages) == 0 {
		_, err := fmt.Fprintln(a.Out, "nothing of that kind was said yet")
		return err
	}
	if page.More {
		fmt.Fprintln(a.Out, a.Paint(cli.Dim, "(older lines are left out; --limit shows more of them)"))
	}
	show := channels.NewConversation(a)
	last := ""
	for _, m := range page.Messages {
		if m.Session != "" && m.Session != last { // a person speaks from outside of all sessions
			show.Note(m.At, cli.Dim, "── "+m.Session)
			last = m.Session
		}
		where := ""
		if m.Channel != "" {
			where = "  in " + cli.Line(m.Channel, channels.ChannelWidth)
		}
		colour := cli.Bold
		if m.Kind == channels.EntryHuman {
			colour = cli.Green
		}
		fmt.Fprintf(&show.Out, "%s  %s%s\n", cli.Clock(m.At), a.Paint(colour, cli.Line(m.Speaker, channels.SpeakerWidth)), a.Paint(cli.Dim, where))
		show.Text(m.Text)
	}
	return show.Flush()
}

// newest gathers pages from the newest on until there are enough of them. A search may answer
// with a page that has few lines, or none, and more before it.
func newest(ctx context.Context, client *apiclient.Client, asked SaidIn) (crewctl.TranscriptPage, error) {
	query := crewctl.TranscriptQuery{Speaker: asked.Speaker, Session: asked.Session, Text: asked.Search}
	var all crewctl.TranscriptPage
	for {
		query.Limit = min(asked.Limit-len(all.Messages), transcriptMost)
		page, err := client.Transcript(ctx, query)
		if err != nil {
			return all, err
		}
		all.Messages = append(page.Messages, all.Messages...)
		all.More, all.Next, all.Head = page.More, page.Next, max(all.Head, page.Head)
		if !page.More || len(all.Messages) >= asked.Limit || page.Next == 0 {
			return all, nil
		}
		query.Before = page.Next
	}
}
