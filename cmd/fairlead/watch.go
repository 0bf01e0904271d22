package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/view"
)

func (a *app) watchVerb() *cobra.Command {
	var opts watched
	cmd := &cobra.Command{
		Use:   "watch [AGENT|SESSION|CHANNEL]",
		Short: "Watch the team, one agent, a session or a channel, live",
		Long: `Without a name it keeps the table of ` + "`fairlead ps`" + ` up to date; if the output is no terminal, it
prints a line for each change. With an agent it prints what the agent says, session after session,
until Ctrl-C. With a session, such as coder-17, it prints that session's output to its end, also if
it is over; ` + "`fairlead why coder`" + ` names them. With a channel it prints the newest lines, and then what
comes. If an agent has the same name as a channel, '#CHANNEL' is the channel. Escape sequences in
what agents say have no effect.`,
		Example: `  fairlead watch
  fairlead watch coder
  fairlead watch coder-17`,
		Args: func(cmd *cobra.Command, words []string) error {
			if err := opts.valid(); err != nil {
				return usage(cmd, err)
			}
			if len(words) == 0 && opts != (watched{last: watchLast}) {
				return usage(cmd, errors.New("--no-follow, --moves and --last are for channels: name one"))
			}
			return args(cobra.MaximumNArgs(1))(cmd, words)
		},
		ValidArgsFunction: a.completeWatched,
		RunE: a.reading(func(ctx context.Context, client *reader, words []string) error {
			if len(words) == 1 {
				return a.watchNamed(ctx, client, words[0], opts)
			}
			switch {
			case client.offline != nil:
				return client.offline
			case a.json || !a.screenful():
				return a.follow(ctx, client.Client, apiclient.EventsQuery{After: apiclient.FromNow})
			}
			return a.watchTeam(ctx, client.Client)
		}),
	}
	opts.flags(cmd, "of a channel: ")
	return cmd
}

// watchLast is how much of a conversation is shown to whoever begins to watch it.
const watchLast = 50

// completeWatched offers agents and channels.
func (a *app) completeWatched(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, directive := a.completeAgents(cmd, words, begun)
	return append(names, a.channelNames()...), directive
}

// watchRedraw bounds how often the table is drawn: an agent that changes a hundred times a
// second must not make a terminal flicker.
const watchRedraw = 100 * time.Millisecond

// watchTeam draws the table again whenever something changed, and each second for the ages.
func (a *app) watchTeam(ctx context.Context, client *apiclient.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		for _, err := range client.Events(ctx, apiclient.EventsQuery{After: apiclient.FromNow}) {
			if err != nil {
				ended <- err
				return
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		ended <- ctx.Err()
	}()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		if err := a.drawTeam(ctx, client); err != nil {
			return err
		}
		if err := pause(ctx, watchRedraw); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-second.C:
		case err := <-ended:
			return err
		}
	}
}

func (a *app) drawTeam(ctx context.Context, client *apiclient.Client) error {
	view, err := client.Team(ctx)
	if err != nil {
		return err
	}
	width, height := a.size()
	var table bytes.Buffer
	if err := a.printTeam(&table, view, width); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(table.String(), "\n"), "\n")
	if room := max(1, height-4); len(lines) > room {
		left := len(lines) - room + 1
		lines = append(lines[:room-1], fmt.Sprintf("… %d more; `fairlead ps` shows all", left))
	}
	head := a.paint(bold, line(view.Team+"  "+time.Now().Format(time.TimeOnly), width))
	_, err = io.WriteString(a.out, overdrawn(append([]string{head, ""}, lines...)))
	return err
}

// overdrawn is lines drawn over whatever is there, without a moment in which nothing is: a
// terminal that is cleared first flickers.
func overdrawn(lines []string) string {
	const home, restOfLine, below = "\x1b[H", "\x1b[K", "\x1b[J"
	return home + strings.Join(lines, restOfLine+"\n") + restOfLine + "\n" + below
}

// watchAgent shows one session's output after the other.
func (a *app) watchAgent(ctx context.Context, client *apiclient.Client, name string) error {
	seen := ""
	for {
		page, err := client.Journal(ctx, apiclient.JournalQuery{Tail: 1})
		if err != nil {
			return err
		}
		why, err := client.Why(ctx, name)
		if err != nil {
			return err
		}
		session := why.Agent.Session
		if session == nil || session.ID == seen {
			if session == nil && !a.json {
				fmt.Fprintln(a.err, a.paint(dim, plain(why.Verdict)+"; waiting for a session"))
			}
			if err := nextSession(ctx, client, name, page.Head); err != nil {
				return err
			}
			continue
		}
		seen = session.ID
		if !a.json {
			fmt.Fprintf(a.err, "%s\n", a.paint(bold, "── "+session.ID+" ("+session.Kind+")"))
		}
		if err := a.copyOutput(ctx, client, why.Agent, session.ID); err != nil {
			return err
		}
	}
}

// sessionOwner finds whose session a name is, as coder-17 is coder's; an agent of that very
// name goes before it.
func (a *app) sessionOwner(ctx context.Context, client *apiclient.Client, name string) (view.WhyView, bool) {
	cut := strings.LastIndexByte(name, '-')
	if cut <= 0 || strings.Trim(name[cut+1:], "0123456789") != "" {
		return view.WhyView{}, false
	}
	if _, err := client.Why(ctx, name); !unknown(err) {
		return view.WhyView{}, false
	}
	why, err := client.Why(ctx, name[:cut])
	return why, err == nil
}

// watchSession shows what one session says or said, and how it ended.
func (a *app) watchSession(ctx context.Context, client *apiclient.Client, of view.WhyView, session string) error {
	if err := a.copyOutput(ctx, client, of.Agent, session); err != nil || a.json {
		return err
	}
	for _, s := range of.Sessions {
		if s.ID == session && s.EndedAt != nil {
			fmt.Fprintln(a.err, a.paint(bold, "── "+s.ID+": "+line(string(s.Outcome)+" "+s.Why, 200)))
		}
	}
	return nil
}

// nextSession waits until a session of the agent is opened.
func nextSession(ctx context.Context, client *apiclient.Client, name string, after uint64) error {
	query := apiclient.EventsQuery{After: int64(after), Entity: "session/" + name} //nolint:gosec // no journal is that long
	for change, err := range client.Events(ctx, query) {
		if err != nil {
			return err
		}
		if change.To == "opened" || change.To == "running" {
			return nil
		}
	}
	return ctx.Err()
}

// copyOutput shows what a session says as its driver understands it; as JSON, the output as
// it comes.
func (a *app) copyOutput(ctx context.Context, client *apiclient.Client, agent view.AgentView, session string) error {
	d, known := drivers()[agent.Driver]
	if a.json || !known {
		return a.copyRaw(ctx, client, session)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire := listening{client: client, session: session}
	conv := d.Converse(driver.Agent{Name: agent.Name}, driver.Session{ID: session}, wire)
	for fact, err := range conv.Facts(ctx, 0) {
		if err != nil {
			return err
		}
		if err := a.printFact(fact); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (a *app) printFact(fact driver.Fact) error {
	text, end := plain(fact.Text), "\n"
	if fact.Part {
		end = ""
	}
	switch fact.Kind {
	case driver.Said:
	case driver.Thought:
		text = a.paint(dim, text)
	case driver.ToolCalled:
		text = a.paint(bold, "> "+plain(fact.Tool)) + " " + text
	case driver.UsageReported:
		text = a.paint(dim, fmt.Sprintf("used %d + %d tokens, $%.4f", fact.Usage.InputTokens, fact.Usage.OutputTokens, fact.Usage.CostUSD))
	case driver.Listening:
		text = a.paint(dim, "listens for what it is told next")
	case driver.PermissionAsked:
		text = a.paint(yellow, "asks: ") + text + a.paint(dim, "  (fairlead inbox)")
	case driver.PermissionAnswered:
		text = a.paint(dim, "was told: "+text)
	case driver.PermissionWithdrawn:
		text = a.paint(dim, "does not ask any more")
	case driver.ConversationNamed:
		text = a.paint(dim, conversedWords(fact.Conversation))
	case driver.RateLimited:
		text = a.paint(yellow, limitWords(fact)) + " " + text
	case driver.Stopped:
		text = a.paint(dim, "ended: "+plain(fact.Stop.Reason+" "+fact.Stop.Detail))
	default:
		text = a.paint(yellow, string(fact.Kind)+":") + " " + text
	}
	_, err := io.WriteString(a.out, text+end)
	return err
}

// conversedWords says which conversation a program holds, and what holds the program.
func conversedWords(c driver.Conversed) string {
	words := "conversation " + line(c.ID, stepWidth)
	if c.Resumed {
		words = "goes on with " + words
	}
	for _, part := range []string{c.Program, c.Model, c.Mode, c.Enforced} {
		if part != "" {
			words += ", " + line(part, 80)
		}
	}
	return words
}

func limitWords(fact driver.Fact) string {
	if fact.Until.IsZero() {
		return "rate limited:"
	}
	return "rate limited until " + clockAt(fact.Until) + ":"
}

func (a *app) copyRaw(ctx context.Context, client *apiclient.Client, session string) error {
	for heard, err := range client.Output(ctx, session, apiclient.OutputQuery{}) {
		if err != nil || heard.End != nil {
			return err
		}
		if err := a.printJSON(map[string]any{"session": session, "offset": heard.Offset, "end": heard.Output.End, "text": heard.Text}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// listening is a session's output over the API; nothing can be said on it.
type listening struct {
	client  *apiclient.Client
	session string
}

func (l listening) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	out, in := io.Pipe()
	go func() {
		for heard, err := range l.client.Output(ctx, l.session, apiclient.OutputQuery{From: offset}) {
			if err != nil {
				in.CloseWithError(err)
				return
			}
			if heard.End != nil {
				break
			}
			if _, err := io.WriteString(in, heard.Text); err != nil {
				return // nobody reads any more
			}
		}
		_ = in.Close() // a pipe closes without fail
	}()
	return out, nil
}

func (listening) Send(context.Context, []byte) error { return io.ErrClosedPipe }

func (listening) CloseInput(context.Context) error { return io.ErrClosedPipe }
