package status

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Inbox is everything that needs a person, the most urgent first: view.ByNeed says what that is.
func (c *Controller) Inbox(ctx context.Context) ([]view.InboxItem, error) {
	items, err := c.questions.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	shown, err := c.runs.Runs(ctx)
	if err != nil {
		return nil, err
	}
	var agents []view.AgentView
	var paused, refused []view.InboxItem
	var config team.ConfigState
	err = c.loop.View(ctx, func(t *team.Team) {
		for _, name := range c.order(t) {
			a := c.agentView(t.Agents[name])
			a.SetStatus(t.Stopping, c.loop.Now())
			agents = append(agents, a)
		}
		refused = view.ProviderItems(agents, c.signIn)
		config = t.Governing
		if stop := c.runs.FetchStopped(); stop != nil {
			refused = append(refused, view.FetchItem(stop.At, stop.Why))
		}
		for _, id := range t.RunIDs() {
			r := t.Runs[id]
			if r.Stage == workflow.Paused && r.PauseReason == workflow.PausedByLimit {
				paused = append(paused, view.InboxItem{
					ID: "limit/run/" + id, Kind: view.InboxLimit, Run: id, Workflow: r.Plan.Name, Since: r.UpdatedAt, Why: r.Why,
					Blocks: []string{}, Artifacts: []string{}, Logs: []string{},
				})
			}
		}
	})
	items = slices.Concat(items, view.LimitItems(agents), refused, paused)
	if beside, leads := c.cluster.Beside(); leads {
		items = append(items, view.BranchItems(beside.Left)...)
	}
	if c.opts.Unconfirmed != nil && config.Found != "" {
		if u := c.opts.Unconfirmed(config.Found); u != nil {
			items = append(items, view.ConfigItem(config.At, u))
		}
	}
	view.Blocked(items, shown)
	view.ByNeed(items)
	return items, err
}

// signIn says how a person signs in to an agent's program.
func (c *Controller) signIn(agent string) string {
	if m := c.agents.Files[agent]; m != nil {
		return driver.SignIn(m.Conf.Driver, m.Conf.Command)
	}
	return driver.SignIn("", nil)
}

const (
	lastBytes    = 32 << 10               // of the end of an output: some facts of any program
	lastWait     = 250 * time.Millisecond // for the shim, and for the output: what comes later is in the next answer
	lastTextMax  = 400                    // bytes
	lastAtOnce   = 8                      // sessions whose output is read at the same time
	sessionsRead = 100                    // sessions whose output is read for one answer
)

// Working lists what runs now, the longest first: the sessions of agents, and steps without an agent.
func (c *Controller) Working(ctx context.Context) ([]view.WorkView, error) {
	all := []view.WorkView{}
	shown, err := c.runs.Runs(ctx)
	if err != nil {
		return nil, err
	}
	byID := map[string]view.RunView{}
	for _, r := range shown {
		byID[r.ID] = r
	}
	err = c.loop.View(ctx, func(t *team.Team) {
		for _, name := range c.order(t) {
			v := c.agentView(t.Agents[name])
			v.SetStatus(t.Stopping, c.loop.Now())
			for _, s := range v.Sessions {
				all = append(all, workOf(v, s, byID))
			}
			if len(v.Sessions) == 0 && v.Status != view.StatusIdle && v.Status != view.StatusFailed {
				all = append(all, workOf(v, view.SessionView{}, byID))
			}
		}
		for _, s := range t.Pool.Sessions {
			if run, step, ok := team.StepOf(s.For); ok {
				w := view.WorkView{
					Session: s.ID, Status: view.StatusRunning, Host: view.HostOfSession(t, s.ID), Run: run, Step: step,
					Since: view.Moment(s.StartedAt),
				}
				if s.Phase != session.Running {
					w.Status = view.StatusIdle
				}
				all = append(all, ofRun(w, byID))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if !c.readOnly() { // the output goes on after a moment
		c.lastWords(ctx, all)
	}
	slices.SortStableFunc(all, func(a, b view.WorkView) int {
		return cmp.Or(since(a).Compare(since(b)), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Session, b.Session))
	})
	return all, nil
}

func since(w view.WorkView) time.Time {
	if w.Since == nil {
		return time.Time{}
	}
	return *w.Since
}

func workOf(v view.AgentView, s view.SessionView, runs map[string]view.RunView) view.WorkView {
	w := view.WorkView{
		Agent: v.Name, Session: s.ID, Status: v.Status, Why: v.StatusWhy, Purpose: s.For.Kind, Host: s.Host, Since: s.StartedAt,
		Context: s.Context,
		CostUSD: v.UsageToday.CostUSD, Tokens: v.UsageToday.InputTokens + v.UsageToday.OutputTokens,
	}
	if v.Says != nil {
		w.Says = v.Says.Text
	}
	w.Run, w.Step, _ = team.StepOf(s.For)
	return ofRun(w, runs)
}

func ofRun(w view.WorkView, runs map[string]view.RunView) view.WorkView {
	if r, ok := runs[w.Run]; ok {
		w.Workflow = r.Workflow
		if r.Task != nil {
			w.Title, w.FilesChanged = r.Task.Title, r.Task.FilesChanged
		}
	}
	return w
}

// lastWords adds the last line of each session's output.
func (c *Controller) lastWords(ctx context.Context, all []view.WorkView) {
	ctx, cancel := context.WithTimeout(ctx, lastWait)
	defer cancel()
	var reading sync.WaitGroup
	places := make(chan struct{}, lastAtOnce)
	left := sessionsRead
	for i := range all {
		if all[i].Session == "" || left == 0 {
			continue
		}
		left--
		reading.Go(func() {
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return
			}
			all[i].Last, all[i].LastAt = c.lastOf(ctx, all[i].Session)
			<-places
		})
	}
	reading.Wait()
}

// lastOf is the last thing that a running session said or did; empty if it is not known in time.
func (c *Controller) lastOf(ctx context.Context, id string) (text string, at *time.Time) {
	proc := c.sessions.Proc(id)
	if proc == nil {
		return "", nil
	}
	proof, err := proc.Evidence(ctx)
	if err != nil || proof.Bytes == 0 {
		return "", nil
	}
	from := max(0, proof.Bytes-lastBytes)
	out, info, err := c.sessions.Output(ctx, id, from)
	if err != nil {
		return "", nil
	}
	stop := context.AfterFunc(ctx, func() { _ = out.Close() })
	content, err := io.ReadAll(io.LimitReader(out, proof.Bytes-from))
	if stop() {
		_ = out.Close()
	}
	if err != nil && len(content) == 0 {
		return "", nil
	}
	if from > 0 { // the first line is not whole
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	d := c.opts.Drivers[info.Driver]
	if d == nil {
		return lastLine(string(content)), view.Moment(proof.LastByteAt)
	}
	conv := d.Converse(driver.Agent{Name: info.Agent}, driver.Session{ID: id}, driver.Recorded{Text: content})
	for fact, err := range conv.Facts(ctx, 0) {
		if err != nil {
			break
		}
		if word := factLine(fact); word != "" {
			text = word
		}
	}
	return text, view.Moment(proof.LastByteAt)
}

// factLine is a fact in one line; empty if it says nothing to a person.
func factLine(fact driver.Fact) string {
	switch fact.Kind {
	case driver.Said, driver.Thought, driver.ToolCalled, driver.PermissionAsked:
		if line := lastLine(fact.Text); line != "" {
			return line
		}
		return lastLine(fact.Tool)
	default:
		return ""
	}
}

// lastLine is the last line of a text that is for people: markers are for Fairlead.
func lastLine(text string) string {
	var scan marker.Scanner
	var said []byte
	for _, piece := range slices.Concat(scan.Write([]byte(text)), scan.Flush()) {
		if piece.Marker == nil {
			said = append(said, piece.Text...)
		}
	}
	said = bytes.TrimRight(said, " \t\r\n")
	line := bytes.TrimSpace(said[bytes.LastIndexByte(said, '\n')+1:])
	return strings.ToValidUTF8(clip.To(string(line), lastTextMax), "\uFFFD")
}
