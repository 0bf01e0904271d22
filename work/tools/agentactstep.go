package tools

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"

	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/runs"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/channel"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/runstate"
)

// ActReported is a report that was written.
type ActReported struct {
	Run    string `json:"run_id"`
	Step   string `json:"step_id"`
	Status string `json:"status"`
	Path   string `json:"path"`
}

// ActReportStep writes the report of the step that a session is for, where the step's report
// belongs, whole or not at all. It is checked first, as it will be when the session has ended; until
// then the last one counts.
func (c *Controller) ActReportStep(ctx context.Context, caller AgentCaller, report runs.AgentReport) (ActReported, error) {
	var f runs.StepFacts
	var no error
	var begun time.Time
	if err := c.loop.View(ctx, func(t *team.Team) {
		_, s, err := c.acting(t, caller)
		if no = err; err != nil {
			return
		}
		run, step, isStep := team.StepOf(s.For)
		ok := false
		if isStep {
			f, ok = c.runs.FactsOf(t, *s, run, workflow.StepID(step))
			begun = cmp.Or(s.StartedAt, s.OpenedAt)
		}
		switch {
		case !isStep:
			no = &table.Refusal{
				Subject: caller.Agent, Event: "report_step", State: "session for " + s.For.String(), Row: "W3",
				Reason: "this session is for no step of a run; there is nothing to report here, end your answer when you are done",
			}
		case !ok:
			no = &table.Refusal{
				Subject: "step " + step + " of run " + run, Event: "report_step", State: "over", Row: "W3",
				Reason: "this attempt is over; what it reports now is late",
			}
		}
	}); err != nil || no != nil {
		return ActReported{}, cmp.Or(err, no)
	}
	done := ActReported{Run: f.Cmd.RunID, Step: f.Cmd.StepID, Path: f.Report}
	content, err := f.ReportFile(report, begun)
	if err != nil {
		return done, err
	}
	of, err := f.Wanted()
	if err != nil {
		return done, err
	}
	read, err := runstate.ParseReport("the report", content, of)
	if err != nil {
		return done,
			&table.Refusal{
				Subject: "step " + done.Step + " of run " + done.Run, Event: "report_step", State: string(workflow.Running),
				Row: "W3", Reason: err.Error(),
			}
	}
	done.Status = read.Status
	dir := filepath.Dir(f.Report)
	if err := os.MkdirAll(dir, runs.DirMode); err != nil {
		return done, fmt.Errorf("make the folder of the reports: %w", err)
	}
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return done, fmt.Errorf("the folder of the reports, %s, is a link or lies behind one: put a folder there; nothing was written", dir)
	}
	if err := file.ReplaceUnsynced(f.Report, content, workspace.StateMode); err != nil {
		return done, fmt.Errorf("write the report: %w", err)
	}
	return done, nil
}

// ActSetStatus says in a few words what the agent is at, for people.
func (c *Controller) ActSetStatus(ctx context.Context, caller AgentCaller, text string) error {
	var no error
	if err := c.loop.View(ctx, func(t *team.Team) {
		m, _, over := c.acting(t, caller)
		if no = over; over == nil && m.Run != "" {
			no = &table.Refusal{
				Subject: caller.Agent, Event: "set_status", State: "a step without an agent", Row: "S10",
				Reason: "only agents of fairlead.yaml have a status; print it instead, and the step's log has it",
			}
		}
	}); err != nil || no != nil {
		return cmp.Or(err, no)
	}
	c.untilSeen(ctx, caller)
	_, err := c.loop.Submit(ctx, byCaller(caller), caller.Agent,
		team.StatusSaid{Session: caller.Session, Text: loop.FirstLine(strings.TrimSpace(text))})
	return err
}

// ActHere is who is there, as one agent sees it.
type ActHere struct {
	You      ActYou       `json:"you"`
	Channels []ActChannel `json:"channels"`
	Agents   []ActAgent   `json:"agents"`
	Held     bool         `json:"held,omitempty"` // the team: nothing begins until a person releases it
}

// ActYou is the agent itself.
type ActYou struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	For     string `json:"for"`               // what this session is for
	Channel string `json:"channel,omitempty"` // where it is answering
	Turn    uint64 `json:"turn,omitempty"`    // the turn that it holds there; 0: none
	Run     string `json:"run_id,omitempty"`
	Step    string `json:"step_id,omitempty"`
	Git     string `json:"git,omitempty"` // why a commit fails here, and the ways around
}

// ActChannel is a channel that the agent is in.
type ActChannel struct {
	Name   string            `json:"name"`
	Holder string            `json:"holder,omitempty"`
	Turn   uint64            `json:"turn"`
	Queue  []string          `json:"queue"` // the speakers after the one that has the turn, in order
	Lead   string            `json:"lead,omitempty"`
	States map[string]string `json:"states"` // OFFLINE, IDLE, QUEUED, ACTIVE, WAITING
	Why    string            `json:"why,omitempty"`
}

// ActAgent is one of the team.
type ActAgent struct {
	Name   string `json:"name"`
	About  string `json:"about,omitempty"`
	Works  bool   `json:"works"` // a session of it is open
	Status string `json:"status,omitempty"`
	Waits  string `json:"waits,omitempty"` // rate limited by its provider
}

const (
	hereMax      = 200 // agents, and members of one channel, that are listed; who is in larger ones has other ways
	aboutChars   = 200
	hereChannels = 50
)

// ActWhoIsHere says who is in the agent's channels and in which state, and who else is in the team.
// channel empty: all of them.
func (c *Controller) ActWhoIsHere(ctx context.Context, caller AgentCaller, channel string) (ActHere, error) {
	here := ActHere{Channels: []ActChannel{}, Agents: []ActAgent{}}
	var no error
	var conf *config.Agent
	dir := "" // where the session works, if that is no clone of its own
	err := c.loop.View(ctx, func(t *team.Team) {
		m, s, over := c.acting(t, caller)
		if no = over; over != nil {
			return
		}
		conf, dir = m.Conf, m.Conf.Workspace
		if run, _, isStep := team.StepOf(s.For); isStep {
			if dir, _ = runs.Checkout(t, run); dir == "" && t.Runs[run] != nil {
				dir = t.Runs[run].RepoDir
			} else {
				dir = ""
			}
		}
		here.You = youOf(t, caller, s)
		here.Held = t.Hold.On
		circle := t.ChannelsOf(caller.Agent)
		for name, ch := range t.Channels.ByID {
			if string(ch.Settings.Lead) == caller.Agent && !slices.Contains(circle, string(name)) {
				circle = append(circle, string(name))
			}
		}
		slices.Sort(circle)
		if channel != "" {
			if !slices.Contains(circle, channel) {
				no = &team.Unknown{What: "channel of yours", Name: clip.Text(channel, loop.ActorBytesMax), Known: circle}
				return
			}
			circle = []string{channel}
		}
		for _, name := range circle[:min(len(circle), hereChannels)] {
			here.Channels = append(here.Channels, c.channelHere(t, name))
		}
		for _, name := range t.Names() {
			if a := t.Agents[name]; !a.Removed && len(here.Agents) < hereMax {
				here.Agents = append(here.Agents, c.agentHere(a))
			}
		}
	})
	if conf != nil && dir != "" {
		here.You.Git = sessions.CommitRefusal(conf, dir, c.sessions.Wall(ctx, conf).By)
	}
	return here, cmp.Or(err, no)
}

func youOf(t *team.Team, c AgentCaller, s *team.Session) ActYou {
	you := ActYou{Agent: c.Agent, Session: c.Session, For: s.For.String()}
	you.Run, you.Step, _ = team.StepOf(s.For)
	if s.ServesChannels() && s.Delivery != nil && !team.IsLeadToken(s.Delivery.Token) {
		h := holding{token: s.Delivery.Token}
		h.see(t)
		you.Channel = string(h.token.Channel)
		if !h.late {
			you.Turn = h.token.Turn
		}
	}
	return you
}

func (c *Controller) channelHere(t *team.Team, name string) ActChannel {
	ch := t.Channels.ByID[channel.ChannelID(name)]
	view := ActChannel{
		Name: name, Holder: string(ch.Head.Holder), Turn: ch.Head.Turn, Queue: []string{}, Lead: string(ch.Settings.Lead),
		States: map[string]string{}, Why: turns.ParkedWords(ch),
	}
	for _, agent := range ch.Queue() {
		view.Queue = append(view.Queue, string(agent))
	}
	for _, agent := range turns.MembersOf(ch, t.ChannelConfigs[name].Agents) {
		if len(view.States) < hereMax {
			view.States[agent] = string(t.Channels.StateOf(channel.AgentID(agent), channel.ChannelID(name)))
		}
	}
	return view
}

func (c *Controller) agentHere(a *team.Agent) ActAgent {
	view := ActAgent{Name: a.Name, Works: len(a.Sessions()) > 0}
	if m := c.sessions.Slots[a.Name]; m != nil {
		view.About = clip.Text(loop.FirstLine(m.Conf.Description), aboutChars)
	}
	if a.Says != nil {
		view.Status = a.Says.Text
	}
	if a.Waits() {
		view.Waits = a.LimitedWhy()
	}
	return view
}
