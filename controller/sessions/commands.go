package sessions

import (
	"context"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/team"
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
	err := c.View(ctx, func(t *team.Team) {
		name, a := ownerOf(t, id)
		if a == nil {
			return
		}
		found = true
		info.Agent, info.Driver = name, a.Settings.Driver
		if a.Session != nil && a.Session.ID == id {
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

// ownerOf finds the agent whose session id names: coder-17 is the seventeenth session of coder.
func ownerOf(t *team.Team, id string) (string, *team.Agent) {
	cut := strings.LastIndexByte(id, '-')
	if cut < 0 {
		return "", nil
	}
	n, err := strconv.ParseUint(id[cut+1:], 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != id[cut+1:] {
		return "", nil
	}
	name := id[:cut]
	a := t.Agents[name]
	if a == nil || n == 0 || n > a.Opened {
		return "", nil
	}
	return name, a
}
