package dispatch

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// SessionStatus is what `fairlead dispatch status --json` prints.
type SessionStatus struct {
	Name          string              `json:"name"`
	Path          string              `json:"path"`
	Mode          string              `json:"mode"`
	Host          string              `json:"host"`
	Began         time.Time           `json:"began"`
	State         string              `json:"state"`
	Phase         string              `json:"phase"`
	Conversation  string              `json:"conversation_id,omitempty"` // the open one
	Workspace     string              `json:"workspace,omitempty"`
	Input         string              `json:"input,omitempty"`
	Tasks         []dispatch.Task     `json:"tasks,omitempty"`
	Permissions   json.RawMessage     `json:"permissions"`
	Agents        []string            `json:"agents"`
	Conversations []conversationShown `json:"conversations"`
	Waiting       []string            `json:"waiting,omitempty"`
	Denied        int                 `json:"denied"`
	Denials       []denialShown       `json:"denials,omitempty"` // the last ones, the newest last
	Ended         string              `json:"ended,omitempty"`
}

// denialShown is a tool call that was denied.
type denialShown struct {
	At           time.Time `json:"at"`
	Conversation string    `json:"conversation_id,omitempty"`
	dispatch.Denied
}

// conversationShown is one of the conversations of a session.
type conversationShown struct {
	ID      string          `json:"conversation_id"`
	Began   time.Time       `json:"began"`
	Summary string          `json:"summary"`
	Agents  []string        `json:"agents_used,omitempty"`
	Files   []dispatch.File `json:"files_created,omitempty"`
	Open    bool            `json:"open,omitempty"`
}

// SessionStatusOf is the status of an open dispatch folder.
func SessionStatusOf(found dispatchfolder.Found, conversations []dispatchfolder.ConversationInfo) SessionStatus {
	is := found.Session
	status := SessionStatus{
		Name: found.Folder.Name(), Path: found.Folder.Path(), Mode: string(is.Mode), Host: hostWord(is.Host), Began: is.Began,
		State: is.State(), Phase: string(is.Phase), Permissions: is.Permissions(), Denied: is.Denied, Ended: is.Ended,
		Agents: []string{}, Conversations: []conversationShown{},
	}
	for _, d := range is.Agents {
		status.Agents = append(status.Agents, d.Name)
	}
	for _, w := range is.Waiting {
		status.Waiting = append(status.Waiting, w.Text)
	}
	if c := is.Open; c != nil {
		status.Conversation, status.Workspace, status.Input, status.Tasks = c.ID(), found.Folder.Workspace(c.N), c.Input, c.Tasks
	}
	for _, c := range conversations {
		status.Conversations = append(status.Conversations, conversationShown{
			ID: c.ID, Began: c.Began, Summary: c.Summary, Agents: c.Agents, Files: c.Files, Open: c.Open,
		})
	}
	return status
}

// DenialsOf reads the last denials from a session's history.
func DenialsOf(found dispatchfolder.Found) ([]denialShown, error) {
	var list []denialShown
	for from := int64(0); found.Session.Denied > 0; {
		lines, next, err := found.Folder.Lines(from)
		if err != nil {
			return nil, err
		}
		if next == from {
			break
		}
		for _, l := range lines {
			if d := l.Change.Body.Denied; d != nil {
				one := denialShown{At: l.Change.At, Denied: *d}
				if n := l.Change.Body.Conversation; n > 0 {
					one.Conversation = dispatch.ConversationID(n)
				}
				list = append(list, one)
			}
		}
		list = list[max(0, len(list)-denialsShown):]
		from = next
	}
	return list, nil
}

// How much is shown to people: --json has all conversations, state.jsonl all denials.
const (
	conversationsShown = 20
	denialsShown       = 5
)

// PrintSession prints the status of a dispatch folder.
func PrintSession(a *cli.App, s SessionStatus) error {
	head := "[State: " + dispatch.Display(s.State) + "]"
	switch {
	case s.Phase == string(dispatch.Closed):
		head = "closed: " + s.Ended
	case s.Conversation != "":
		head += " [Conv: " + strings.TrimPrefix(s.Conversation, "conv_") + "] " + cli.Line(s.Input, cli.SummaryWidth)
	}
	fmt.Fprintln(a.Out, a.Paint(cli.Bold, cli.Plain(head)))
	fmt.Fprintf(a.Out, "%s  mode %s, host %s, %s, begun %s\n", cli.Line(s.Name, cli.SummaryWidth), cli.Plain(s.Mode), cli.Plain(s.Host), cli.HowMany(len(s.Agents), "agent", "agents"), s.Began.Local().Format("2006-01-02 15:04:05"))
	fmt.Fprintln(a.Out, cli.Plain(s.Path))
	for _, task := range s.Tasks {
		fmt.Fprintf(a.Out, "at work: %s, for %s: %s\n", cli.Line(task.Agent, cli.SummaryWidth), cli.Ago(time.Since(task.Began)), cli.Line(task.Text, cli.SummaryWidth))
	}
	for i, text := range s.Waiting {
		fmt.Fprintf(a.Out, "waits (%d): %s\n", i+1, cli.Line(text, cli.SummaryWidth))
	}
	printDenials(a, s)
	if len(s.Conversations) == 0 {
		_, err := fmt.Fprintln(a.Out, "\n"+nothingYet(s))
		return err
	}
	fmt.Fprintln(a.Out)
	shown := s.Conversations
	if len(shown) > conversationsShown {
		fmt.Fprintln(a.Out, a.Paint(cli.Dim, fmt.Sprintf("(%d earlier ones; --json has them)", len(shown)-conversationsShown)))
		shown = shown[len(shown)-conversationsShown:]
	}
	for _, c := range shown {
		mark := ""
		if c.Open {
			mark = "  (open)"
		}
		fmt.Fprintf(a.Out, "%s  %s  %s%s\n", cli.Line(c.ID, cli.StepWidth), cli.Clock(c.Began), cli.Line(c.Summary, cli.SummaryWidth), mark)
		if len(c.Agents) > 0 {
			fmt.Fprintln(a.Out, "    by "+cli.Line(strings.Join(c.Agents, ", "), cli.SummaryWidth))
		}
		for _, f := range c.Files {
			fmt.Fprintln(a.Out, "    "+cli.Line(f.Path, cli.ErrorWidth))
		}
	}
	return nil
}

// printDenials prints what was denied, and which agent could have done it.
func printDenials(a *cli.App, s SessionStatus) {
	for _, d := range s.Denials {
		what := cli.Line(d.Tool, cli.StepWidth)
		if d.Call != "" {
			what += ": " + cli.Line(d.Call, cli.SummaryWidth)
		}
		row := ""
		if a.Verbose {
			row = " [" + cli.Plain(d.Row) + "]"
		}
		fmt.Fprintf(a.Out, "denied%s %s  %s  %s\n", row, cli.Clock(d.At), cli.Line(dispatch.Display(d.By), cli.StepWidth), what)
		fmt.Fprintln(a.Out, a.Paint(cli.Dim, "    "+cli.Line(d.Reason, cli.ErrorWidth)))
		if d.Delegate != "" {
			fmt.Fprintln(a.Out, "    "+cli.Line(d.Delegate, cli.StepWidth)+" could do it")
		}
	}
	if more := s.Denied - len(s.Denials); more > 0 {
		fmt.Fprintf(a.Out, "denied before: %d more; state.jsonl has each with its reason\n", more)
	}
}

// nothingYet says how the first conversation of a session begins.
func nothingYet(s SessionStatus) string {
	switch {
	case s.Phase == string(dispatch.Closed):
		return "there was no conversation"
	case s.Mode == string(dispatch.Response):
		return "no message yet; a file of text (*.md, *.txt) in the session's inbox/ is one"
	case s.Host == string(dispatch.Claude):
		return "no conversation yet; what is typed into Claude Code begins one"
	}
	return "no conversation yet; `fairlead dispatch input TEXT` begins one"
}

// SessionListed is one line of `fairlead dispatch list --json`.
type SessionListed struct {
	Name  string    `json:"name"`
	Path  string    `json:"path"`
	Open  bool      `json:"open"`
	Mode  string    `json:"mode"`
	Host  string    `json:"host"`
	State string    `json:"state"`
	Made  int       `json:"conversations"`
	Began time.Time `json:"began"`
	Wrong string    `json:"wrong,omitempty"` // why it cannot be read
}

// SessionListedOf is one row of the list of dispatch folders.
func SessionListedOf(f dispatchfolder.Found) SessionListed {
	l := SessionListed{Name: f.Folder.Name(), Path: f.Folder.Path(), Open: f.Open(), Wrong: f.Fault}
	if f.Fault != "" {
		return l
	}
	l.Mode, l.Host, l.State, l.Made, l.Began = string(f.Session.Mode), hostWord(f.Session.Host), f.Session.State(), f.Session.Made, f.Session.Began
	if f.Session.Phase == dispatch.Closed {
		l.State = string(dispatch.Closed)
	}
	return l
}

// PrintSessions prints a line for each dispatch folder.
func PrintSessions(a *cli.App, list []SessionListed) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.Out, "there is no dispatch here; `fairlead dispatch start` starts one")
		return err
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSTATE\tMODE\tHOST\tCONVERSATIONS")
	for _, l := range list {
		if l.Wrong != "" {
			fmt.Fprintf(w, "%s\t%s\n", cli.Line(l.Name, cli.SummaryWidth), cli.Line(l.Wrong, cli.SummaryWidth))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", cli.Line(l.Name, cli.SummaryWidth), cli.Line(l.State, cli.SummaryWidth), cli.Plain(l.Mode), cli.Plain(l.Host), l.Made)
	}
	return w.Flush()
}
