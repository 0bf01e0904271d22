package claudehook

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/policy"
)

// hosted answers for an agent that the daemon runs for a dispatch (FAIRLEAD_FOLDER). The daemon reads its
// output and ends it; the hook only checks that its role permits each tool call, also where the program would
// not ask. ok is false if the agent is not the daemon's.
func (h Hook) hosted(is Event) (a Answer, ok bool) {
	path := h.Env("FAIRLEAD_FOLDER")
	if path == "" || is.Name != PreToolUse && is.Name != PostToolUse {
		return Answer{}, false
	}
	folder, s, err := openHosted(path)
	if err != nil {
		return failed(is.Name, fmt.Errorf("find the session that this agent works for: %w", err)), true
	}
	if s.Phase == dispatch.Closed || s.Host != dispatch.Fairlead {
		return Answer{}, false
	}
	if is.Tool == "" {
		return failed(is.Name, errNoTool), true
	}
	v := &visit{Hook: h, Event: is, folder: folder, session: s, hosted: true}
	v.task = v.hostedTask()
	call := v.call()
	v.Agent, call.AgentID = "", "" // the program's own subagents have the rights of the agent that called them
	if v.task != nil {
		call.AgentID = fmt.Sprintf("%s/%d/%d", s.Open.ID(), v.task.ID, v.task.Round)
	}
	verdict := dispatchfolder.Judge(s, folder, "", call)
	if words, held := selfRelease(call); held {
		verdict = policy.Deny(policy.DeniedProtected, words)
	}
	switch {
	case verdict.Allow:
		return Answer{}, true
	case is.Name == PostToolUse:
		return v.tooLate(verdict), true
	}
	return v.deny(verdict), true
}

func openHosted(path string) (*dispatchfolder.Folder, dispatch.Dispatch, error) {
	var s dispatch.Dispatch
	if !filepath.IsAbs(path) {
		return nil, s, errors.New("FAIRLEAD_FOLDER is not an absolute path")
	}
	folder, err := dispatchfolder.Open(path)
	if err != nil {
		return nil, s, err //nolint:wrapcheck // the caller adds the context
	}
	s, err = folder.Session()
	return folder, s, err //nolint:wrapcheck // the caller adds the context
}

// worksIn is the conversation in which the daemon gave this agent a task, which may have ended; 0: the
// program has its own dispatch, and means the open conversation.
func (v *visit) worksIn() int {
	if !v.hosted {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(v.Env("FAIRLEAD_CONVERSATION"), "conv_"))
	if err != nil {
		return 0
	}
	return n
}

// hostedTask is the task that the daemon gave to this agent; nil: it is MAIN, or its task has ended, so that
// it has MAIN's rights.
func (v *visit) hostedTask() *dispatch.Task {
	c, state := v.session.Open, v.Env("FAIRLEAD_STATE")
	if c == nil || state == dispatch.Main || v.Env("FAIRLEAD_CONVERSATION") != c.ID() {
		return nil
	}
	for i := range c.Tasks {
		if c.Tasks[i].Agent == state {
			return &c.Tasks[i]
		}
	}
	return nil
}
