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

// documentMost is the maximum size of an agent's document in bytes; the daemon has the same limit.
const documentMost = 2 << 20

// DocumentsIn returns the documents in a folder, or the name itself if it is not a folder. Hidden
// files and files with another extension are not documents.
func DocumentsIn(name string) ([]string, error) {
	if info, err := os.Stat(name); name == "-" || err != nil || !info.IsDir() {
		return []string{name}, nil //nolint:nilerr // reading the file reports what is wrong with it
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
	doc, err := client.Crew.Import(ctx, data)
	if err != nil {
		return fmt.Errorf("%s: %w", cli.Line(name, cli.ErrorWidth), err)
	}
	return a.Say(doc, "%s is in the crew as %s, on seat %d: %s", cli.Line(CrewName(doc), NameWidth), cli.Plain(doc.ID), doc.Seat, cli.Plain(doc.Status))
}

// document reads a file as long as the daemon would accept it.
func document(a *cli.App, name string) ([]byte, error) {
	from := a.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read the document: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, documentMost+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the document: %w", err)
	case len(data) > documentMost:
		return nil, fmt.Errorf("%s has more than %d MiB, the limit for an agent's document", cli.Line(name, cli.ErrorWidth), documentMost>>20)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, fmt.Errorf("%s: this is not an agent's document, which is a JSON object; a team's documents are in its .fairlead/agents", cli.Line(name, cli.ErrorWidth))
	}
	return data, nil
}

// SaidIn are the options of `fairlead crew transcript`.
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
		_, err := fmt.Fprintln(a.Out, "there are no matching messages yet")
		return err
	}
	if page.More {
		fmt.Fprintln(a.Out, a.Paint(cli.Dim, "(older lines are left out; --limit shows more of them)"))
	}
	show := channels.NewConversation(a)
	last := ""
	for _, m := range page.Messages {
		if m.Session != "" && m.Session != last { // a person's messages belong to no session
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

// newest collects pages from the newest backwards until there are enough messages. A page of a
// search may have few messages or none, although more precede it.
func newest(ctx context.Context, client *apiclient.Client, asked SaidIn) (crewctl.TranscriptPage, error) {
	query := crewctl.TranscriptQuery{Speaker: asked.Speaker, Session: asked.Session, Text: asked.Search}
	var all crewctl.TranscriptPage
	for {
		query.Limit = min(asked.Limit-len(all.Messages), transcriptMost)
		page, err := client.Crew.Transcript(ctx, query)
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
