package agents

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/termtext"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// watchRedraw bounds how often the table is drawn, so that an agent that changes a hundred times a
// second does not make the terminal flicker.
const watchRedraw = 100 * time.Millisecond

// watchFlush is how long the words of an agent wait for more, so that they are written together.
const watchFlush = 20 * time.Millisecond

// WatchTeam redraws the table after each change, and every second to update ages.
func WatchTeam(ctx context.Context, a *cli.App, client *apiclient.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, ended := client.Changed(ctx, apiclient.EventsQuery{After: apiclient.FromNow})
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		if err := drawTeam(ctx, a, client); err != nil {
			return err
		}
		if err := cli.Pause(ctx, watchRedraw); err != nil {
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

func drawTeam(ctx context.Context, a *cli.App, client *apiclient.Client) error {
	view, err := client.Agents(ctx)
	if err != nil {
		return err
	}
	width, height := a.Size()
	var table bytes.Buffer
	if err := PrintTeam(a, &table, view, width); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(table.String(), "\n"), "\n")
	if room := max(1, height-4); len(lines) > room {
		left := len(lines) - room + 1
		lines = append(lines[:room-1], fmt.Sprintf("… %d more; `fairlead ps` shows all", left))
	}
	head := a.Paint(cli.Bold, cli.Line(view.Team+"  "+time.Now().Format(time.TimeOnly), width))
	_, err = io.WriteString(a.Out, overdrawn(append([]string{head, ""}, lines...)))
	return err
}

// overdrawn draws lines over the previous ones without clearing the terminal first, which would
// flicker.
func overdrawn(lines []string) string {
	home, restOfLine, below := termtext.Own("\x1b[H"), termtext.Own("\x1b[K"), termtext.Own("\x1b[J")
	return home + strings.Join(lines, restOfLine+"\n") + restOfLine + "\n" + below
}

// watchAgent shows the output of one session after the other.
func watchAgent(ctx context.Context, a *cli.App, client *apiclient.Client, name string) error {
	seen := map[string]bool{}
	for {
		page, err := client.Journal(ctx, apiclient.JournalQuery{Tail: 1})
		if err != nil {
			return err
		}
		why, err := client.Why(ctx, name)
		if err != nil {
			return err
		}
		open := why.Agent.Sessions // slot 0 first
		at := slices.IndexFunc(open, func(s view.SessionView) bool { return !seen[s.ID] })
		if at < 0 {
			if len(open) == 0 && !a.JSON {
				fmt.Fprintln(a.Err, a.Paint(cli.Dim, cli.Plain(why.Verdict)+"; waiting for a session"))
			}
			if err := nextSession(ctx, client, name, page.Head); err != nil {
				return err
			}
			continue
		}
		session := open[at]
		seen[session.ID] = true
		if !a.JSON {
			fmt.Fprintf(a.Err, "%s\n", a.Paint(cli.Bold, "── "+session.ID+" ("+session.Kind+")"))
			if _, _, isStep := team.StepOf(session.For); !isStep { // most steps work in a clone of their own
				sayLayer(a, why.Layers, view.LayerGit)
			}
		}
		if err := copyOutput(ctx, a, client, why.Agent, session.ID); err != nil {
			return err
		}
	}
}

// sayLayer prints one of the layers that restrict an agent, if there is that one.
func sayLayer(a *cli.App, layers []view.Layer, name string) {
	for _, l := range layers {
		if l.Name == name && l.Holds {
			fmt.Fprintln(a.Err, a.Paint(cli.Dim, cli.Plain(l.Text)))
		}
	}
}

// sessionOwner finds the agent of a session's name: coder-17 belongs to coder. An agent with exactly
// that name takes precedence. A step without an agent stands for itself: build@f8c1 for build@f8c1-2.
func sessionOwner(ctx context.Context, client *apiclient.Client, name string) (view.WhyView, bool) {
	cut := strings.LastIndexByte(name, '-')
	if cut <= 0 || strings.Trim(name[cut+1:], "0123456789") != "" {
		return view.WhyView{}, false
	}
	if _, _, isStep := sessions.StepParts(name[:cut]); isStep {
		return view.WhyView{Agent: view.AgentView{Name: name[:cut], Driver: sessions.PoolDriver}}, true
	}
	if _, err := client.Why(ctx, name); !cli.Unknown(err) {
		return view.WhyView{}, false
	}
	why, err := client.Why(ctx, name[:cut])
	return why, err == nil
}

// watchSession shows the output of one session and how it ended.
func watchSession(ctx context.Context, a *cli.App, client *apiclient.Client, of view.WhyView, session string) error {
	if err := copyOutput(ctx, a, client, of.Agent, session); err != nil || a.JSON {
		return err
	}
	for _, s := range of.Sessions {
		if s.ID == session && s.EndedAt != nil {
			fmt.Fprintln(a.Err, a.Paint(cli.Bold, "── "+s.ID+": "+cli.Line(string(s.Outcome)+" "+s.Why, 200)))
		}
	}
	return nil
}

// nextSession waits until a session of the agent is opened.
func nextSession(ctx context.Context, client *apiclient.Client, name string, after uint64) error {
	_, err := client.Next(ctx, after, func(change api.Change) bool {
		ofSession := strings.HasPrefix(change.Entity, "session/") && team.AgentOf(change.Entity) == name
		return ofSession && (change.To == "opened" || change.To == "running")
	})
	return err
}

// copyOutput prints a session's output as its driver understands it; as JSON, the unchanged output.
func copyOutput(ctx context.Context, a *cli.App, client *apiclient.Client, agent view.AgentView, session string) error {
	d, known := cli.Drivers()[agent.Driver]
	if a.JSON || !known {
		return copyRaw(ctx, a, client, session)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire := listening{client: client, session: session}
	conv := d.Converse(driver.Agent{Name: agent.Name}, driver.Session{ID: session}, wire)
	var p factPrinter
	var mu sync.Mutex
	out := bufio.NewWriter(a.Out) // output that has ended has very many lines
	flush := func() error { mu.Lock(); defer mu.Unlock(); return out.Flush() }
	go func() {
		for cli.Pause(ctx, watchFlush) == nil {
			_ = flush() // the next write has the same error
		}
	}()
	write := func(text string) error { mu.Lock(); defer mu.Unlock(); _, err := out.WriteString(text); return err }
	for fact, err := range conv.Facts(ctx, 0) {
		if err == nil {
			err = write(p.line(a, fact))
		}
		if err != nil {
			return errors.Join(err, flush())
		}
	}
	return errors.Join(flush(), ctx.Err())
}

// factPrinter formats facts. Words arrive in parts, and other facts may come between two parts of a
// line: those get lines of their own, so that usage is not within a word.
type factPrinter struct {
	open driver.FactKind // of the line that continues; empty: none
	torn bool            // another fact has ended that line early
}

// line formats one fact with its line breaks.
func (p *factPrinter) line(a *cli.App, fact driver.Fact) string {
	before, end := "", "\n"
	goesOn := (fact.Kind == driver.Said || fact.Kind == driver.Thought) && fact.Kind == p.open && fact.Tool == ""
	switch {
	case goesOn && p.torn && fact.Text == "" && !fact.Part: // only the end of a line that was ended already
		*p = factPrinter{}
		return ""
	case p.open != "" && !p.torn && !goesOn:
		before, p.torn = "\n", true
	}
	switch {
	case fact.Part:
		end, *p = "", factPrinter{open: fact.Kind}
	case goesOn:
		*p = factPrinter{}
	}
	return before + factText(a, fact) + end
}

func factText(a *cli.App, fact driver.Fact) string {
	text := cli.Plain(fact.Text)
	switch fact.Kind {
	case driver.Said:
		if fact.Tool != "" { // not the agent's words: what a tool printed or changed
			text = a.Paint(cli.Dim, "  "+strings.ReplaceAll(text, "\n", "\n  "))
		}
	case driver.Thought:
		text = a.Paint(cli.Dim, text)
	case driver.ToolCalled:
		text = a.Paint(cli.Bold, "> "+cli.Plain(fact.Tool)) + " " + text
	case driver.UsageReported:
		text = a.Paint(cli.Dim,
			fmt.Sprintf("used %d + %d tokens, $%.4f", fact.Usage.InputTokens, fact.Usage.OutputTokens, fact.Usage.CostUSD))
	case driver.Listening:
		text = a.Paint(cli.Dim, "waits for its next input")
	case driver.PermissionAsked:
		text = a.Paint(cli.Yellow, "asks: ") + text + a.Paint(cli.Dim, "  (fairlead inbox)")
	case driver.PermissionAnswered:
		text = a.Paint(cli.Dim, "input: "+text)
	case driver.PermissionWithdrawn:
		text = a.Paint(cli.Dim, "no longer asks")
	case driver.TextRead:
		text = a.Paint(cli.Dim, "was told: ") + text
	case driver.ConversationNamed:
		text = a.Paint(cli.Dim, conversedWords(*fact.Conversation))
	case driver.ProviderAway:
		text = a.Paint(cli.Yellow, "waits: ") + view.ProviderWords(string(fact.Provider)) + ": " + text
	case driver.RateLimited:
		text = a.Paint(cli.Yellow, limitWords(fact)) + " " + text
	case driver.Stopped:
		text = a.Paint(cli.Dim, "ended: "+cli.Plain(fact.Stop.Reason+" "+fact.Stop.Detail))
	default:
		text = a.Paint(cli.Yellow, string(fact.Kind)+":") + " " + text
	}
	return text
}

// conversedWords says which conversation a program has open, and in which sandbox it runs.
func conversedWords(c driver.Conversed) string {
	words := "conversation " + cli.Line(c.ID, cli.StepWidth)
	if c.Resumed {
		words = "resumes " + words
	}
	for _, part := range []string{c.Program, c.Model, c.Mode, c.Enforced} {
		if part != "" {
			words += ", " + cli.Line(part, 80)
		}
	}
	return words
}

func limitWords(fact driver.Fact) string {
	if fact.Until.IsZero() {
		return "rate limited:"
	}
	return "rate limited until " + cli.ClockAt(fact.Until) + ":"
}

func copyRaw(ctx context.Context, a *cli.App, client *apiclient.Client, session string) error {
	for heard, err := range client.Output(ctx, session, apiclient.OutputQuery{}) {
		if err != nil || heard.End != nil {
			return err
		}
		if err := a.PrintJSON(map[string]any{
			"session": session, "offset": heard.Offset, "end": heard.Output.End,
			"text": heard.Text,
		}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// listening is a session's output over the API; it accepts no input.
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
				return // the reader is gone
			}
		}
		_ = in.Close() // closing a pipe never fails
	}()
	return out, nil
}

func (listening) Send(context.Context, []byte) error { return io.ErrClosedPipe }

func (listening) CloseInput(context.Context) error { return io.ErrClosedPipe }

// WatchNamed shows the agent or the channel with a name.
func WatchNamed(ctx context.Context, a *cli.App, client *cli.Reader, name string, opts channels.Watched) error {
	channel, sure := strings.CutPrefix(name, "#")
	if _, _, isStep := sessions.StepParts(name); isStep && !sure { // it cannot be a channel's name
		if step, ok := sessionOwner(ctx, client.Client, name); ok {
			return watchSession(ctx, a, client.Client, step, name)
		}
	}
	_, err := client.Channels.Show(ctx, channel)
	if sure || err == nil && !agentToo(ctx, a, client.Client, name) {
		if err != nil {
			return err
		}
		return channels.WatchChannel(ctx, a, client, channel, opts)
	}
	if err != nil && !cli.Unknown(err) {
		return err
	}
	if opts != (channels.Watched{Last: cli.WatchLast}) {
		return &cli.Coded{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("%s is not a channel; --no-follow, --moves and --last are for channels only", cli.Line(name, cli.ErrorWidth)),
		}
	}
	if agent, ok := sessionOwner(ctx, client.Client, name); ok {
		return watchSession(ctx, a, client.Client, agent, name)
	}
	if client.Offline != nil {
		return client.Offline
	}
	return watchAgent(ctx, a, client.Client, name)
}

// agentToo reports whether a channel's name is also an agent's; the agent is shown then.
func agentToo(ctx context.Context, a *cli.App, client *apiclient.Client, name string) bool {
	if _, err := client.Why(ctx, name); err != nil {
		return false
	}
	if !a.JSON {
		fmt.Fprintf(a.Err, "an agent and a channel have this name; this is the agent, for the channel use `fairlead watch '#%s'`\n",
			cli.Plain(name))
	}
	return true
}
