package sessions

import (
	"context"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// SessionInfo describes a current or past session.
type SessionInfo struct {
	Agent   string
	Open    bool // more output may come
	Outcome string
	Why     string
	Driver  string
}

// Session finds a session by its id. Only the output is known of a session older than the ones that
// the team remembers.
func (c *Controller) Session(ctx context.Context, id string) (SessionInfo, error) {
	var info SessionInfo
	found := false
	err := c.loop.View(ctx, func(t *team.Team) {
		name, a := ownerOf(t, id)
		if a == nil {
			info, found = stepSession(t, id)
			return
		}
		found = true
		info.Agent, info.Driver = name, a.Settings.Driver
		if a.Open(id) != nil {
			info.Open = true
			return
		}
		for _, s := range a.Past {
			if s.ID == id {
				info.Outcome, info.Why = string(s.Outcome), s.Why
			}
		}
	})
	if err == nil && !found {
		err = &team.Unknown{What: "session", Name: id}
	}
	return info, err
}

// stepSession finds the session of a run's step that has no agent: build@f8c1-2 is the second of step build
// of run f8c1.
func stepSession(t *team.Team, id string) (info SessionInfo, found bool) {
	name, n, ok := numbered(id)
	run, step, isStep := StepParts(name)
	if !ok || !isStep {
		return SessionInfo{}, false
	}
	info = SessionInfo{Agent: name, Driver: PoolDriver}
	if s := t.Pool.Sessions[run+"/"+step]; s != nil && s.ID == id {
		info.Open = true
		return info, true
	}
	r := t.Runs[run]
	if r == nil {
		return SessionInfo{}, false
	}
	_, p, known := r.Find(workflow.StepID(step))
	return info, known && n > 0 && n <= p.N
}

// numbered splits a session's id into the name of its slot and its number.
func numbered(id string) (name string, n uint64, ok bool) {
	cut := strings.LastIndexByte(id, '-')
	if cut < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(id[cut+1:], 10, 64)
	return id[:cut], n, err == nil && strconv.FormatUint(n, 10) == id[cut+1:]
}

// ownerOf finds the agent whose session id names: coder-17 is the seventeenth session of coder.
func ownerOf(t *team.Team, id string) (string, *team.Agent) {
	name, n, ok := numbered(id)
	if !ok {
		return "", nil
	}
	a := t.Agents[name]
	if a == nil || n == 0 || n > a.Opened {
		return "", nil
	}
	return name, a
}
