package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/claudehook"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
)

// sessionConfig returns the parts of fairlead.yaml about dispatch sessions and agents' descriptions;
// without a file, nothing.
func (s *Server) sessionConfig() (*config.Config, error) {
	conf, err := config.Load(s.opts.Dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return &config.Config{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the settings for sessions: %w", err)
	}
	return conf, nil
}

// described returns the agents of a session that starts now: those of .claude/agents, and those of
// fairlead.yaml that the daemon can start. MAIN is not among them.
func (s *Server) described(conf *config.Config) ([]dispatch.Description, error) {
	home, _ := os.UserHomeDir() // on an error only the project's agents are found
	agents, _, err := dispatchfolder.Agents(s.opts.Dir, home)
	if err != nil {
		return nil, err
	}
	for _, a := range conf.Agents {
		if a.Description == "" || a.Name == conf.Dispatch.Ranker {
			continue
		}
		agents = slices.DeleteFunc(agents, func(d dispatch.Description) bool { return d.Name == a.Name })
		agents = append(agents, dispatch.Description{Name: a.Name, Text: a.Description, File: conf.File})
	}
	return slices.DeleteFunc(agents, func(d dispatch.Description) bool { return d.Name == conf.Dispatch.Main }), nil
}

// hostOf returns the default host of a session.
func hostOf(conf *config.Config, asked string) dispatch.Host {
	described := slices.ContainsFunc(conf.Agents, func(a config.Agent) bool { return a.Description != "" })
	if asked == string(dispatch.Fairlead) || asked == "" && (conf.Dispatch.Main != "" || described) {
		return dispatch.Fairlead
	}
	return dispatch.NoHost
}

func (s *Server) dispatchStart(ctx context.Context, in *dispatchStartIn) (*api.DispatchView, error) {
	if err := mayOrderSession(ctx, "start", "a session"); err != nil {
		return nil, err
	}
	var how api.DispatchStartBody
	if in.Body != nil {
		how = *in.Body
	}
	conf, err := s.sessionConfig()
	if err != nil {
		return nil, err
	}
	setup := dispatch.Setup{Mode: dispatch.Mode(how.Mode), Host: hostOf(conf, how.Host), Path: how.Path}
	if setup.Host == dispatch.Fairlead {
		setup.Lead, setup.Ranker = conf.Dispatch.Main, conf.Dispatch.Ranker
	}
	if setup.Agents, err = s.described(conf); err != nil {
		return nil, err
	}
	at := how.Path
	if at != "" && !filepath.IsAbs(at) {
		at = filepath.Join(s.opts.Dir, at)
	}
	by := s.actor(ctx)
	f, _, err := dispatchfolder.Create(at, setup, dispatchfolder.Options{Repo: s.opts.Dir, Actor: dispatchfolder.Actor{Kind: by.Kind, ID: by.ID}, Tools: conf.Dispatch.Tools, NoCommits: conf.File != "" && !conf.Dispatch.Commits})
	if err != nil {
		return nil, badPath(err, at)
	}
	return s.viewAt(ctx, f)
}

// badPath tells a path that cannot be a session's folder, which is a fault of the request, from an
// internal error.
func badPath(err error, at string) error {
	var no *machine.Refusal
	if at == "" || errors.As(err, &no) {
		return err
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || strings.ContainsRune(at, 0) {
		p := api.NewProblem(http.StatusUnprocessableEntity, "%s", err)
		p.Errors = []api.Fault{{Message: err.Error(), Location: "body.path", Value: api.Shorten(at)}}
		return p
	}
	return err
}

// viewAt returns the current view of the session in a folder.
func (s *Server) viewAt(ctx context.Context, f *dispatchfolder.Folder) (*api.DispatchView, error) {
	all, err := s.sessionFolders(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.Folder.Path() == f.Path() {
			return s.viewOf(ctx, one)
		}
	}
	is, err := f.Session()
	if err != nil {
		return nil, err
	}
	return s.viewOf(ctx, found{Found: dispatchfolder.Found{Folder: f, Session: is}, name: sessionName(f.Path(), true)})
}

// tellSession records an input in a session's folder.
func (s *Server) tellSession(ctx context.Context, f found, in dispatch.Input) (dispatch.Dispatch, error) {
	by := s.actor(ctx)
	_, is, err := f.Folder.Do(time.Now(), dispatchfolder.Actor{Kind: by.Kind, ID: by.ID}, in)
	return is, err
}

// toSession finds the session of an order, and checks that the caller may give it.
func (s *Server) toSession(ctx context.Context, event, name string) (found, error) {
	if err := mayOrderSession(ctx, event, name); err != nil {
		return found{}, err
	}
	f, err := s.sessionFolder(ctx, name)
	if who := callerIn(ctx).who; err == nil && f.Session.Host == dispatch.Claude && who.pid > 0 && claudehook.Within(who.pid) {
		return found{}, &machine.Refusal{
			Subject: f.name, Event: event, State: "asked from within the agent program", Row: "X10",
			Reason: "an agent may not lift its own restrictions: the person types /" + claudehook.CommandName + " in that program, or gives the order in another terminal",
		}
	}
	return f, err
}

// said refuses a report that only the session's host may make: the agent program by its hooks, or
// the daemon for its agents.
func (f found) said(event, row string, by ...dispatch.Host) error {
	if slices.Contains(by, f.Session.Host) {
		return nil
	}
	reason := "Claude Code carries out this session, and its hooks report what happens; give the order there"
	if f.Session.Host == dispatch.Fairlead {
		reason = "agents of fairlead.yaml carry out this session, and their sessions report what happens; give it an input"
	}
	return &machine.Refusal{Subject: f.name, Event: event, State: string(f.Session.Phase), Row: row, Reason: reason}
}

func (s *Server) dispatchInput(ctx context.Context, in *dispatchInputIn) (*api.DispatchTold, error) {
	f, err := s.toSession(ctx, "input", in.Name)
	if err != nil {
		return nil, err
	}
	if err := f.said("input", "D2", dispatch.NoHost, dispatch.Fairlead); err != nil {
		return nil, err
	}
	text := in.Body.Text
	was := f.Session.Made
	is, err := s.tellSession(ctx, f, dispatch.UserInput{Text: text, Named: policy.NamedPaths(text), Match: dispatchfolder.MatchOf(s.ranked(f.Session, text))})
	if err != nil {
		return nil, err
	}
	view, err := s.viewAt(ctx, f.Folder)
	if err != nil {
		return nil, err
	}
	told := &api.DispatchTold{State: is.State(), Waiting: len(is.Waiting), Now: *view}
	if is.Made > was && is.Open != nil {
		told.ConversationID, told.Workspace, told.Waiting = is.Open.ID(), f.Folder.Workspace(is.Open.N), 0
	}
	return told, nil
}

// tell is a route by which a person or a program reports what happened in a session that neither
// Claude Code nor Fairlead carries out.
func tell[In any](event string, what func(*In) (name string, say dispatch.Input)) adder {
	return answer(func(s *Server, ctx context.Context, in *In) (*api.DispatchView, error) {
		name, say := what(in)
		f, err := s.toSession(ctx, event, name)
		if err != nil {
			return nil, err
		}
		return s.toldBy(ctx, f, event, say)
	})
}

func (s *Server) toldBy(ctx context.Context, f found, event string, say dispatch.Input) (*api.DispatchView, error) {
	if err := f.said(event, "D3", dispatch.NoHost); err != nil {
		return nil, err
	}
	if _, err := s.tellSession(ctx, f, say); err != nil {
		return nil, err
	}
	return s.viewAt(ctx, f.Folder)
}

func (s *Server) dispatchDone(ctx context.Context, in *dispatchDoneIn) (*api.DispatchView, error) {
	f, err := s.toSession(ctx, "done", in.Name)
	if err != nil {
		return nil, err
	}
	open := f.Session.Open
	if open == nil || len(open.Tasks) == 0 {
		return nil, &machine.Refusal{Subject: f.name, Event: "done", State: string(f.Session.Phase), Row: "D4", Reason: "nobody is at work"}
	}
	task := open.Tasks[len(open.Tasks)-1]
	say := dispatch.TaskEnded{Task: task.ID, Round: task.Round, OK: true}
	if in.Body != nil {
		say.OK, say.Result = !in.Body.Failed, in.Body.Text
	}
	return s.toldBy(ctx, f, "done", say)
}

func (s *Server) dispatchEnd(ctx context.Context, in *dispatchEndIn) (*api.DispatchView, error) {
	f, err := s.toSession(ctx, "end", in.Name)
	if err != nil {
		return nil, err
	}
	if _, err := s.tellSession(ctx, f, dispatch.End{Why: noteOf(in.Body)}); err != nil {
		return nil, err
	}
	return s.viewAt(ctx, f.Folder)
}

// ranked compares a text with a session's descriptions, with the threshold of fairlead.yaml.
func (s *Server) ranked(is dispatch.Dispatch, text string) policy.Ranking {
	r := dispatchfolder.Best(is, text)
	if conf, err := s.sessionConfig(); err == nil { // if the file has become invalid, the default applies
		r = r.Over(conf.Dispatch.Threshold)
	}
	r.Terms, r.Scores = some(r.Terms), some(r.Scores)
	for i := range r.Scores {
		r.Scores[i].Terms = some(r.Scores[i].Terms)
	}
	return r
}

func (s *Server) rank(ctx context.Context, in *routeIn) (*policy.Ranking, error) {
	is, err := s.judged(ctx, in.Body.Session)
	if err != nil {
		return nil, err
	}
	ranking := s.ranked(is.Session, in.Body.Text)
	return &ranking, nil
}

// judged returns the session whose rules and descriptions apply; without a name, a session as it
// would start now.
func (s *Server) judged(ctx context.Context, name string) (found, error) {
	if name != "" {
		return s.sessionFolder(ctx, name)
	}
	conf, err := s.sessionConfig()
	if err != nil {
		return found{}, err
	}
	host := hostOf(conf, "")
	agents, err := s.described(conf)
	return found{Found: dispatchfolder.Found{Session: dispatch.Dispatch{Setup: dispatch.Setup{Host: host, Agents: agents}}}}, err
}

func (s *Server) policyCheck(ctx context.Context, in *policyCheckIn) (*api.PolicyVerdict, error) {
	b := in.Body
	f, err := s.judged(ctx, b.Session)
	if err != nil {
		return nil, err
	}
	call := policy.Call{Tool: b.Tool, Input: b.Input.text}
	if len(call.Input) == 0 {
		call.Input = []byte("{}")
	}
	if f.Session.Phase == dispatch.Closed {
		return &api.PolicyVerdict{Decision: "allow", Reason: "the session is closed, so nothing is enforced", Row: "D10"}, nil
	}
	verdict := dispatchfolder.JudgeAs(f.Session, f.Folder, s.opts.Dir, b.State == "" || b.State == dispatch.Main, call)
	if verdict.Allow {
		verdict = s.narrowed(verdict, f, b.State, call)
	}
	said := &api.PolicyVerdict{Decision: "allow", Reason: verdict.Reason, Row: verdict.Row}
	if !verdict.Allow {
		said.Decision = "deny"
		if verdict.Code == policy.DeniedMain {
			said.DelegateTo = s.ranked(f.Session, verdict.Capability).Best
		}
	}
	return said, nil
}

// narrowed limits an allowed call to the bounds that fairlead.yaml sets for the agent in this state.
func (s *Server) narrowed(verdict policy.Verdict, f found, state string, call policy.Call) policy.Verdict {
	conf, err := s.sessionConfig()
	if err != nil || f.Folder != nil && f.Session.Host != dispatch.Fairlead {
		return verdict // if the file has become invalid, the verdict is unchanged
	}
	main := state == "" || state == dispatch.Main
	if main {
		state = f.Session.Lead
	}
	agent, ok := conf.Agent(state)
	if !ok {
		return verdict
	}
	call.Dir = agent.Workspace
	return dispatchfolder.Narrowed(verdict, agent.Permissions.Bounds(), f.Session, f.Folder, agent.Workspace, main, call, nil)
}
