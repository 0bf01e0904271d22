package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/claudehook"
	"github.com/fairlead-dev/fairlead/process/shim"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
)

// usualPlace is the folder of sessions in a repository (seed 002, Default Values).
const usualPlace = ".claude/agent-state-machine"

// byHand is the actor of entries that the command line writes.
var byHand = change.Actor{Kind: "human", ID: "cli"}

// Orders returns the orders to dispatch folders under the repository's fairlead.yaml, if it has one.
func Orders(a *cli.App) (dispatchctl.Orders, error) {
	conf, err := a.MaybeConfig()
	if err == nil && conf == nil {
		conf = &config.Config{Dir: a.Dir}
	}
	return dispatchctl.NewOrders(conf), err
}

// Session finds the folder that path names; an empty path means the open session that was started
// last.
func Session(a *cli.App, path string) (dispatchfolder.Found, error) {
	var found dispatchfolder.Found
	var err error
	if path == "" {
		found.Folder, err = dispatchfolder.Current(a.Dir)
		if err == nil && found.Folder == nil {
			return found,
				&cli.Coded{
					Code: cli.ExitRefused,
					Err: fmt.Errorf("no dispatch is open in %s; start one with `fairlead dispatch start`, or name its folder with --path",
						a.Dir),
				}
		}
	} else {
		found.Folder, err = dispatchfolder.Open(SessionPath(a, path))
	}
	if err != nil {
		if _, ok := errors.AsType[*dispatchfolder.NotASession](err); ok {
			return found, &cli.Coded{Code: cli.ExitUsage, Err: fmt.Errorf("%w; `fairlead dispatch list` shows those there are", err)}
		}
		return found, err
	}
	found.Session, err = found.Folder.Session()
	return found, err
}

// SessionPath resolves a session's name: a path, or a name in the list.
func SessionPath(a *cli.App, name string) string {
	if home, err := os.UserHomeDir(); err == nil {
		name = dispatchfolder.InHome(name, home)
	}
	if !strings.ContainsRune(name, filepath.Separator) && name != "." && name != ".." {
		if usual := filepath.Join(a.Dir, filepath.FromSlash(usualPlace), name); isFolder(usual) && !isFolder(name) {
			return usual
		}
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Ordering is Session for orders that an agent may not give.
func Ordering(a *cli.App, path, event string) (dispatchfolder.Found, error) {
	found, err := Session(a, path)
	if err != nil {
		return found, err
	}
	return found, outside(a, event, found.Folder.Path(), found.Session.Host)
}

// outside refuses orders that an agent may not give (X10): an agent could name the paths that it may
// write, or lift its own restrictions. Processes that an agent program starts count as the agent.
func outside(a *cli.App, event, folder string, host dispatch.Host) error {
	no := &table.Refusal{
		Subject: filepath.Base(folder), Event: event, Row: "X10",
		Reason: "an agent may not act as a person, nor start or end the session that it works in; ask the person whose session this is",
	}
	switch at := shim.Here(a.Dir); {
	case at.Session != "":
		no.State = "asked from within " + at.Session
		return no
	case at.Foreign != "":
		no.State = "asked from within " + at.Foreign + " of another repository"
		return no
	}
	is := dispatch.Dispatch{Setup: dispatch.Setup{Host: host}}
	return dispatchctl.Target{Name: no.Subject, Found: dispatchfolder.Found{Session: is}}.MayOrder(event,
		func() bool { return claudehook.Within(os.Getpid()) })
}

// repoOf returns the repository whose usual folder contains a session; if it is elsewhere, the present one.
func repoOf(a *cli.App, folder *dispatchfolder.Folder) string {
	if folder == nil {
		return a.Dir
	}
	repo, usual := strings.CutSuffix(filepath.Dir(folder.Path()), string(filepath.Separator)+filepath.FromSlash(usualPlace))
	if !usual {
		return a.Dir
	}
	return repo
}

// The words for what carries out a session.
const (
	HostNone     = "none"
	HostFairlead = "fairlead"
)

// SessionBegun is what `fairlead dispatch start --json` prints.
type SessionBegun struct {
	Path   string   `json:"path"`
	State  string   `json:"state"`
	Mode   string   `json:"mode"`
	Name   string   `json:"name"`
	Host   string   `json:"host"`
	Agents int      `json:"agents"`
	Notes  []string `json:"notes,omitempty"`
}

// SessionStart starts a dispatch folder and prints its initial status.
func SessionStart(ctx context.Context, a *cli.App, path string, mode dispatch.Mode, host string) error {
	where := filepath.Join(a.Dir, filepath.FromSlash(usualPlace), "new")
	if path != "" {
		home, _ := os.UserHomeDir() // none: ~ is a name
		abs, err := filepath.Abs(dispatchfolder.InHome(path, home))
		if err != nil {
			return fmt.Errorf("find %s: %w", path, err)
		}
		path, where = abs, abs
	}
	if err := outside(a, "session_start", where, dispatch.NoHost); err != nil {
		return err
	}
	orders, err := Orders(a)
	if err != nil {
		return err
	}
	if host, err = served(a, orders, host); err != nil {
		return err
	}
	f, err := orders.StartDispatch(byHand, string(mode), host, path)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(SessionBegun{
			Path: f.Path(), State: f.Is.State(), Mode: string(f.Is.Mode), Name: f.Name(),
			Host: hostWord(f.Is.Host), Agents: len(f.Is.Agents), Notes: f.Notes,
		})
	}
	for _, note := range f.Notes {
		fmt.Fprintln(a.Err, "note: "+cli.Line(note, cli.ErrorWidth))
	}
	_, err = fmt.Fprint(a.Out, cli.Plain(strings.TrimRight(dispatchfolder.Status(f.Is, len(f.Is.Agents)), "\n"))+"\n")
	return err
}

// served returns what carries out the dispatch, HostFairlead or HostNone. Without --host it is HostNone if no
// daemon runs; with --host fairlead that is an error.
func served(a *cli.App, orders dispatchctl.Orders, host string) (string, error) {
	if host == HostNone || host == "" && !orders.CanHost() {
		return HostNone, nil
	}
	if _, err := a.Load(); err != nil {
		return "", err // it says how to make a fairlead.yaml
	}
	client, err := a.Dial()
	switch {
	case err == nil:
		_ = client.Close() // the connection only shows that a daemon runs
		return HostFairlead, nil
	case host == "" && errors.As(err, new(*apiclient.NoDaemon)):
		return HostNone, nil
	default:
		return "", err
	}
}

func hostWord(h dispatch.Host) string {
	if h == dispatch.NoHost {
		return HostNone
	}
	return string(h)
}

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
			body := change.As[dispatch.Body](l.Change.Body)
			if d := body.Denied; d != nil {
				one := denialShown{At: l.Change.At, Denied: *d}
				if n := body.Conversation; n > 0 {
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
	fmt.Fprintf(a.Out, "%s  mode %s, host %s, %s, begun %s\n", cli.Line(s.Name, cli.SummaryWidth), cli.Plain(s.Mode), cli.Plain(s.Host),
		cli.HowMany(len(s.Agents), "agent", "agents"), s.Began.Local().Format("2006-01-02 15:04:05"))
	fmt.Fprintln(a.Out, cli.Plain(s.Path))
	for _, task := range s.Tasks {
		fmt.Fprintf(a.Out, "at work: %s, for %s: %s\n", cli.Line(task.Agent, cli.SummaryWidth), cli.Ago(time.Since(task.Began)),
			cli.Line(task.Text, cli.SummaryWidth))
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
	l.Mode, l.Host, l.State, l.Made, l.Began = string(f.Session.Mode), hostWord(f.Session.Host), f.Session.State(), f.Session.Made,
		f.Session.Began
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", cli.Line(l.Name, cli.SummaryWidth), cli.Line(l.State, cli.SummaryWidth), cli.Plain(l.Mode),
			cli.Plain(l.Host), l.Made)
	}
	return w.Flush()
}
