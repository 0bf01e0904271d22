package server

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/claudehook"
)

func handleDispatchStart(ctx context.Context, s *Server, in *only[*api.DispatchStartBody]) (*api.DispatchView, error) {
	if err := identity(ctx).MayOrderDispatch("start", "a session"); err != nil {
		return nil, err
	}
	how := or(in.Body)
	f, err := s.engine.Dispatch.StartDispatch(s.actor(ctx), how.Mode, how.Host, how.Path)
	if err != nil {
		return nil, badPath(err, how.Path)
	}
	view, err := s.viewAt(ctx, f.Folder)
	if err == nil {
		view.Notes = append(view.Notes, f.Notes...)
	}
	return view, err
}

// badPath tells a path that cannot be a session's folder, which is a fault of the request, from an
// internal error.
func badPath(err error, at string) error {
	if at == "" || errors.As(err, new(*table.Refusal)) {
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

// target returns the dispatch as the controller takes it.
func (f found) target() dispatchctl.Target { return dispatchctl.Target{Name: f.name, Found: f.Found} }

// toSession finds the session of an order, and checks that the caller may give it.
func (s *Server) toSession(ctx context.Context, event, name string) (found, error) {
	if err := identity(ctx).MayOrderDispatch(event, name); err != nil {
		return found{}, err
	}
	f, err := s.sessionFolder(ctx, name)
	if err != nil {
		return found{}, err
	}
	return f, f.target().MayOrder(event, func() bool { pid := caller.In(ctx).Who.PID; return pid > 0 && claudehook.Within(pid) })
}

func handleDispatchInput(ctx context.Context, s *Server, in *forDispatch[api.DispatchInputBody]) (*api.DispatchInputResult, error) {
	f, err := s.toSession(ctx, "input", in.Name)
	if err != nil {
		return nil, err
	}
	was := f.Session.Made
	is, err := s.engine.Dispatch.DispatchInput(s.actor(ctx), f.target(), in.Body.Text)
	if err != nil {
		return nil, err
	}
	view, err := s.viewAt(ctx, f.Folder)
	if err != nil {
		return nil, err
	}
	told := &api.DispatchInputResult{State: is.State(), Waiting: len(is.Waiting), Now: *view}
	if is.Made > was && is.Open != nil {
		told.ConversationID, told.Workspace, told.Waiting = is.Open.ID(), f.Folder.Workspace(is.Open.N), 0
	}
	return told, nil
}

// tell is a route by which a person or a program reports what happened in a session that neither
// Claude Code nor Fairlead carries out.
func tell[In any](event string, what func(*In) (name string, say dispatch.Input)) adder {
	return answer(func(ctx context.Context, s *Server, in *In) (*api.DispatchView, error) {
		name, say := what(in)
		f, err := s.toSession(ctx, event, name)
		if err != nil {
			return nil, err
		}
		if err := s.engine.Dispatch.DispatchReport(s.actor(ctx), f.target(), event, say); err != nil {
			return nil, err
		}
		return s.viewAt(ctx, f.Folder)
	})
}

func handleDispatchDone(ctx context.Context, s *Server, in *forDispatch[*api.DispatchDoneBody]) (*api.DispatchView, error) {
	f, err := s.toSession(ctx, "done", in.Name)
	if err != nil {
		return nil, err
	}
	if err := s.engine.Dispatch.DispatchTaskDone(s.actor(ctx), f.target(), !or(in.Body).Failed, or(in.Body).Text); err != nil {
		return nil, err
	}
	return s.viewAt(ctx, f.Folder)
}

func handleDispatchEnd(ctx context.Context, s *Server, in *forDispatch[*api.NoteBody]) (*api.DispatchView, error) {
	f, err := s.toSession(ctx, "end", in.Name)
	if err != nil {
		return nil, err
	}
	if err := s.engine.Dispatch.EndDispatch(s.actor(ctx), f.target(), or(in.Body).Note); err != nil {
		return nil, err
	}
	return s.viewAt(ctx, f.Folder)
}

// ranked compares a text with a dispatch's descriptions; no list in the answer is null.
func (s *Server) ranked(is dispatch.Dispatch, text string) rank.Ranking {
	r := s.engine.Dispatch.RankDispatch(is, text)
	r.Terms, r.Scores = some(r.Terms), some(r.Scores)
	for i := range r.Scores {
		r.Scores[i].Terms = some(r.Scores[i].Terms)
	}
	return r
}

func handleRank(ctx context.Context, s *Server, in *only[api.RouteBody]) (*rank.Ranking, error) {
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
	is, err := s.engine.Dispatch.NewDispatch()
	return found{Found: dispatchfolder.Found{Session: is}}, err
}

func handlePolicyCheck(ctx context.Context, s *Server, in *only[policyCheckBody]) (*api.PolicyVerdict, error) {
	b := in.Body
	f, err := s.judged(ctx, b.Session)
	if err != nil {
		return nil, err
	}
	call := policy.Call{Tool: b.Tool, Input: b.Input.text}
	if len(call.Input) == 0 {
		call.Input = []byte("{}")
	}
	verdict, delegate := s.engine.Dispatch.JudgeDispatch(f.target(), b.State, call)
	said := &api.PolicyVerdict{Decision: "allow", Reason: verdict.Reason, Row: verdict.Row, DelegateTo: delegate}
	if !verdict.Allow {
		said.Decision = "deny"
	}
	return said, nil
}
