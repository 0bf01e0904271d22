package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/process/claudehook"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// job is a work of a session folder, as it stood when its agent's session was prepared.
type Job struct {
	Name    string
	Folder  *dispatchfolder.Folder
	Session dispatch.Dispatch
	Work    dispatch.Action
}

// Main says whether the job is MAIN's.
func (j *Job) Main() bool { return j.Work.Task == 0 }

// jobOf finds what a session is to do. errNotAsked: nothing any more.
func (c *Controller) JobOf(ctx context.Context, s team.Session) (*Job, error) {
	name, work, ok := team.DispatchActionOf(s.For)
	if !ok {
		panic("engine: no work of a session folder: " + s.For.String())
	}
	path := ""
	if err := c.loop.View(ctx, func(t *team.Team) {
		if f := t.Dispatches[name]; f != nil {
			path = f.Path
		}
	}); err != nil {
		return nil, err
	}
	folder, err := dispatchfolder.Open(path)
	if err != nil {
		return nil, err
	}
	now, err := folder.Session()
	if err != nil {
		return nil, err
	}
	return &Job{Name: name, Folder: folder, Session: now, Work: work}, nil
}

// due fills in what the work is, by the folder's own last line. False: it is not to be done any more.
func (j *Job) due() bool {
	for _, w := range j.Session.Due() {
		if w.Key() == j.Work.Key() {
			j.Work = w
			return true
		}
	}
	return false
}

// prepareWork says how an agent's process is started that has work in a session folder.
func (c *Controller) PrepareWork(ctx context.Context, m *sessions.Slot, s team.Session) (sessions.PreparedLaunch, error) {
	j, err := c.JobOf(ctx, s)
	if err != nil {
		return sessions.PreparedLaunch{}, fmt.Errorf("look at its session folder: %w", err)
	}
	if !j.due() {
		c.FolderState.Poke() // the team does not know yet
		return sessions.PreparedLaunch{}, errors.New("the conversation went on without it")
	}
	agent, err := c.sessions.AgentFor(m, "")
	if err != nil {
		return sessions.PreparedLaunch{}, err
	}
	if err := os.MkdirAll(agent.Workspace, 0o755); err != nil { //nolint:gosec // as public as its repository
		return sessions.PreparedLaunch{}, fmt.Errorf("its workspace cannot be made: %w", err)
	}
	n := j.Work.Conversation
	state := j.Work.Agent
	if j.Main() {
		state = dispatch.Main
		agent.Env = append(agent.Env, "GIT_OPTIONAL_LOCKS=0") // git writes its index when it is only asked
	}
	agent.Env = append(agent.Env,
		"FAIRLEAD_FOLDER="+filepath.Clean(filepath.Join(j.Folder.Workspace(n), "..", "..", "..")),
		"FAIRLEAD_CONVERSATION="+dispatch.ConversationID(n), "FAIRLEAD_STATE="+state,
		"FAIRLEAD_OUTPUTS="+strings.TrimSuffix(j.Folder.Workspace(n), string(filepath.Separator)),
		"FAIRLEAD_DIALOGUE="+j.Folder.DialoguePath(n))
	if err := m.Driver.Check(agent); err != nil {
		return sessions.PreparedLaunch{}, err
	}
	session := driver.Session{ID: s.ID, Kind: driver.Work, Prompt: workPrompt(&j.Session, j.Folder, j.Work), PromptIsTask: true, Attempt: 1}
	places := []string{filepath.Dir(j.Folder.DialoguePath(n))}
	if !j.Main() {
		ready, err := c.sessions.Launch(ctx, m, s, agent, session)
		ready.Writes = places
		return ready, err
	}
	wall, layers, err := c.mainWall(ctx, places[0])
	if err != nil {
		return sessions.PreparedLaunch{}, err
	}
	ready, err := c.sessions.Launch(ctx, m, s, agent, session)
	if err != nil {
		return sessions.PreparedLaunch{}, err
	}
	check := view.Layer{Name: "check", Text: "not needed: the kernel keeps it from writing"}
	ready.Writes, ready.Wall, ready.ReadOnly = places, wall, wall != nil
	if wall == nil {
		check = c.rememberTree(m.Conf.Name, s.ID)
	}
	layers = append(layers, check)
	if m.Conf.Driver == config.DriverClaude {
		layers = append(layers, otherHooks(agent.Workspace, wall != nil)...)
	}
	c.setLayers(j.Name, layers)
	return ready, nil
}

// otherHooks names the user's hooks that Claude Code calls for MAIN's shell commands. boxed says whether the kernel
// holds MAIN's process, and so also what a hook makes of a command.
func otherHooks(dir string, boxed bool) (layers []view.Layer) {
	home, _ := os.UserHomeDir() // none: hooks of the user are not found
	for _, other := range (claudehook.Hook{Env: os.Getenv, Home: home}).OtherHooks(dir) {
		if len(layers) == otherHooksMax {
			break
		}
		layers = append(layers,
			view.Layer{
				Name: "other hooks", Holds: boxed,
				Text: "Claude Code calls " + other.String() + ", which may allow or replace a shell command",
			})
	}
	return layers
}

const otherHooksMax = 10 // doctor has more

// mainWall is the wall around MAIN, which lets it write in its conversation's folder only. Nil: there is none, and the layer says
// why.
func (c *Controller) mainWall(ctx context.Context, conversation string) (*config.AgentSandbox, []view.Layer, error) {
	rules := view.Layer{
		Name: "rules", Holds: true,
		Text: "what it asks for, and what it is seen to call, is judged by the permissions of " + dispatch.Main,
	}
	wall := c.opts.Config.Dispatch.Sandbox
	wall.Mode = cmp.Or(wall.Mode, config.SandboxAuto)
	no := func(why string) (*config.AgentSandbox, []view.Layer, error) {
		if wall.Mode == config.SandboxRequired || wall.Mode == config.SandboxWorkspace {
			return nil, nil,
				fmt.Errorf("dispatch.sandbox is %s, and %s; set it to auto, or run on a machine that can make one", wall.Mode, why)
		}
		return nil, []view.Layer{rules, {Name: "sandbox", Text: why}}, nil
	}
	if wall.Mode == config.SandboxOff {
		return no("dispatch.sandbox is off")
	}
	if why := c.sessions.SandboxMissing(ctx); why != "" {
		return no(why)
	}
	return &wall,
		[]view.Layer{
			rules,
			{
				Name: "sandbox", Holds: true,
				Text: "it and all that it starts see the repository read-only, and write in " + conversation +
					", in a home and a temporary folder of their own, and nowhere else; the network is open",
			},
		}, nil
}

func (c *Controller) setLayers(folder string, layers []view.Layer) {
	c.FolderState.Mu.Lock()
	defer c.FolderState.Mu.Unlock()
	c.FolderState.layers[folder] = layers
}

// LayersOf lists the layers that hold MAIN's permissions in a folder.
func (c *Controller) LayersOf(folder string) []view.Layer {
	c.FolderState.Mu.Lock()
	defer c.FolderState.Mu.Unlock()
	return append([]view.Layer(nil), c.FolderState.layers[folder]...)
}
