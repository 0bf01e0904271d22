package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// sessionStatus is what `fairlead dispatch status --json` prints.
type sessionStatus struct {
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

// denialShown is a tool call that was not allowed.
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

func (a *app) sessionStatusVerb(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the state of a dispatch, and its conversations",
		Long: `It shows which agent is in charge, the tasks, the waiting requests, the last denied tool calls, and
each conversation with its files.`,
		Example: `  fairlead dispatch status
  fairlead dispatch status --path 20260801_1015 --json`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			found, err := a.session(*path)
			if err != nil {
				return err
			}
			conversations, err := found.Conversations()
			if err != nil {
				return err
			}
			status := sessionStatusOf(found, conversations)
			if status.Denials, err = denialsOf(found); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(status)
			}
			return a.printSession(status)
		},
	}
}

func sessionStatusOf(found openSession, conversations []dispatchfolder.ConversationInfo) sessionStatus {
	is := found.is
	status := sessionStatus{
		Name: found.Name(), Path: found.Path(), Mode: string(is.Mode), Host: hostWord(is.Host), Began: is.Began,
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
		status.Conversation, status.Workspace, status.Input, status.Tasks = c.ID(), found.Workspace(c.N), c.Input, c.Tasks
	}
	for _, c := range conversations {
		status.Conversations = append(status.Conversations, conversationShown{
			ID: c.ID, Began: c.Began, Summary: c.Summary, Agents: c.Agents, Files: c.Files, Open: c.Open,
		})
	}
	return status
}

// denialsOf reads the last denials of a session out of its history.
func denialsOf(found openSession) ([]denialShown, error) {
	var list []denialShown
	for from := int64(0); found.is.Denied > 0; {
		lines, next, err := found.Lines(from)
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

// What a person is shown at once: of conversations --json has all, of denials state.jsonl.
const (
	conversationsShown = 20
	denialsShown       = 5
)

func (a *app) printSession(s sessionStatus) error {
	head := "[State: " + dispatch.Display(s.State) + "]"
	switch {
	case s.Phase == string(dispatch.Closed):
		head = "closed: " + s.Ended
	case s.Conversation != "":
		head += " [Conv: " + strings.TrimPrefix(s.Conversation, "conv_") + "] " + line(s.Input, summaryWidth)
	}
	fmt.Fprintln(a.out, a.paint(bold, plain(head)))
	fmt.Fprintf(a.out, "%s  mode %s, host %s, %d agents, begun %s\n", line(s.Name, summaryWidth), plain(s.Mode), plain(s.Host), len(s.Agents), s.Began.Local().Format("2006-01-02 15:04:05"))
	fmt.Fprintln(a.out, plain(s.Path))
	for _, task := range s.Tasks {
		fmt.Fprintf(a.out, "at work: %s, for %s: %s\n", line(task.Agent, summaryWidth), ago(time.Since(task.Began)), line(task.Text, summaryWidth))
	}
	for i, text := range s.Waiting {
		fmt.Fprintf(a.out, "waits (%d): %s\n", i+1, line(text, summaryWidth))
	}
	a.printDenials(s)
	if len(s.Conversations) == 0 {
		_, err := fmt.Fprintln(a.out, "\n"+nothingYet(s))
		return err
	}
	fmt.Fprintln(a.out)
	shown := s.Conversations
	if len(shown) > conversationsShown {
		fmt.Fprintln(a.out, a.paint(dim, fmt.Sprintf("(%d earlier ones; --json has them)", len(shown)-conversationsShown)))
		shown = shown[len(shown)-conversationsShown:]
	}
	for _, c := range shown {
		mark := ""
		if c.Open {
			mark = "  (open)"
		}
		fmt.Fprintf(a.out, "%s  %s  %s%s\n", line(c.ID, stepWidth), clock(c.Began), line(c.Summary, summaryWidth), mark)
		if len(c.Agents) > 0 {
			fmt.Fprintln(a.out, "    by "+line(strings.Join(c.Agents, ", "), summaryWidth))
		}
		for _, f := range c.Files {
			fmt.Fprintln(a.out, "    "+line(f.Path, errorWidth))
		}
	}
	return nil
}

// printDenials shows what was not allowed, and who could have done it.
func (a *app) printDenials(s sessionStatus) {
	for _, d := range s.Denials {
		what := line(d.Tool, stepWidth)
		if d.Call != "" {
			what += ": " + line(d.Call, summaryWidth)
		}
		row := ""
		if a.verbose {
			row = " [" + plain(d.Row) + "]"
		}
		fmt.Fprintf(a.out, "denied%s %s  %s  %s\n", row, clock(d.At), line(dispatch.Display(d.By), stepWidth), what)
		fmt.Fprintln(a.out, a.paint(dim, "    "+line(d.Reason, errorWidth)))
		if d.Delegate != "" {
			fmt.Fprintln(a.out, "    "+line(d.Delegate, stepWidth)+" could do it")
		}
	}
	if more := s.Denied - len(s.Denials); more > 0 {
		fmt.Fprintf(a.out, "denied before: %d more; state.jsonl has each with its reason\n", more)
	}
}

// nothingYet says how the first conversation of a session would begin.
func nothingYet(s sessionStatus) string {
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

// sessionListed is one line of `fairlead dispatch list --json`.
type sessionListed struct {
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

func (a *app) sessionListVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the dispatches of the repository, the open ones first",
		Long:    "The newest come first.",
		Example: "  fairlead dispatch list",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			found, err := dispatchfolder.List(a.dir)
			if err != nil {
				return err
			}
			list := make([]sessionListed, 0, len(found))
			for _, f := range slices.Backward(found) {
				list = append(list, sessionListedOf(f))
			}
			slices.SortStableFunc(list, func(a, b sessionListed) int {
				switch {
				case a.Open == b.Open:
					return 0
				case a.Open:
					return -1
				default:
					return 1
				}
			})
			if a.json {
				return a.printJSON(map[string]any{"sessions": list})
			}
			return a.printSessions(list)
		},
	}
}

func sessionListedOf(f dispatchfolder.Found) sessionListed {
	l := sessionListed{Name: f.Folder.Name(), Path: f.Folder.Path(), Open: f.Open(), Wrong: f.Fault}
	if f.Fault != "" {
		return l
	}
	l.Mode, l.Host, l.State, l.Made, l.Began = string(f.Session.Mode), hostWord(f.Session.Host), f.Session.State(), f.Session.Made, f.Session.Began
	if f.Session.Phase == dispatch.Closed {
		l.State = string(dispatch.Closed)
	}
	return l
}

func (a *app) printSessions(list []sessionListed) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.out, "there is no session here; `fairlead dispatch start` begins one")
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tSTATE\tMODE\tHOST\tCONVERSATIONS")
	for _, l := range list {
		if l.Wrong != "" {
			fmt.Fprintf(w, "%s\t%s\n", line(l.Name, summaryWidth), line(l.Wrong, summaryWidth))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", line(l.Name, summaryWidth), line(l.State, summaryWidth), plain(l.Mode), plain(l.Host), l.Made)
	}
	return w.Flush()
}
