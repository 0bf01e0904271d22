package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
	"github.com/fairlead-dev/fairlead/sandbox"
	"github.com/fairlead-dev/fairlead/team"
)

// Layer is one of the three things that keep MAIN from what it may not do.
type Layer struct {
	Name  string `json:"name"` // rules, sandbox, check
	Holds bool   `json:"holds"`
	Text  string `json:"text"`
}

// job is a work of a session folder, as it stood when its agent's session was prepared.
type job struct {
	name    string
	folder  *dispatchfolder.Folder
	session dispatch.Session
	work    dispatch.Work
}

func (j *job) main() bool { return j.work.Task == 0 }

// jobOf finds what a session is to do. errNotAsked: nothing any more.
func (e *Engine) jobOf(ctx context.Context, s team.Session) (*job, error) {
	name, work, ok := team.WorkOf(s.For)
	if !ok {
		panic("engine: no work of a session folder: " + s.For.String())
	}
	path := ""
	if err := e.View(ctx, func(t *team.Team) {
		if f := t.Folders[name]; f != nil {
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
	return &job{name: name, folder: folder, session: now, work: work}, nil
}

// due fills in what the work is, by the folder's own last line. False: it is not to be done any more.
func (j *job) due() bool {
	for _, w := range j.session.Due() {
		if w.Key() == j.work.Key() {
			j.work = w
			return true
		}
	}
	return false
}

// prepareWork says how an agent's process is started that has work in a session folder.
func (e *Engine) prepareWork(ctx context.Context, m *member, s team.Session) (readied, error) {
	j, err := e.jobOf(ctx, s)
	if err != nil {
		return readied{}, fmt.Errorf("look at its session folder: %w", err)
	}
	if !j.due() {
		e.folders.poke() // the team does not know yet
		return readied{}, errors.New("the conversation went on without it")
	}
	agent, err := e.agentFor(m)
	if err != nil {
		return readied{}, err
	}
	if err := os.MkdirAll(agent.Workspace, 0o755); err != nil { //nolint:gosec // as public as its repository
		return readied{}, fmt.Errorf("its workspace cannot be made: %w", err)
	}
	n := j.work.Conversation
	state := j.work.Agent
	if j.main() {
		state = dispatch.Main
		agent.Env = append(agent.Env, "GIT_OPTIONAL_LOCKS=0") // git writes its index when it is only asked
	}
	agent.Env = append(agent.Env,
		"FAIRLEAD_FOLDER="+filepath.Clean(filepath.Join(j.folder.Workspace(n), "..", "..", "..")),
		"FAIRLEAD_CONVERSATION="+dispatch.ConversationID(n), "FAIRLEAD_STATE="+state,
		"FAIRLEAD_OUTPUTS="+strings.TrimSuffix(j.folder.Workspace(n), string(filepath.Separator)), "FAIRLEAD_DIALOGUE="+j.folder.DialoguePath(n))
	if err := m.driver.Check(agent); err != nil {
		return readied{}, err
	}
	session := driver.Session{ID: s.ID, Kind: driver.Work, Prompt: workPrompt(&j.session, j.folder, j.work), Told: true, Attempt: 1}
	places := []string{j.folder.Workspace(n), j.folder.DialoguePath(n)}
	if !j.main() {
		ready, err := e.launch(ctx, m, s, agent, session)
		ready.writes = places
		return ready, err
	}
	box, layers, err := e.mainBoxed(ctx, s, j)
	if err != nil {
		return readied{}, err
	}
	if box != nil {
		agent.Env = append(agent.Env, "TMPDIR="+e.privateTemp(s.ID))
	}
	ready, err := e.launch(ctx, m, s, agent, session)
	if err != nil {
		return readied{}, err
	}
	check := Layer{Name: "check", Text: "not needed: the kernel keeps it from writing"}
	ready.writes = places
	if box != nil {
		ready.boxed = true
		ready.launch.Argv = sandbox.Wrap(box.exe, ready.launch.Argv, box.box)
	} else {
		check = e.rememberTree(m.conf.Name, s.ID)
	}
	e.setLayers(j.name, append(layers, check))
	return ready, nil
}

// privateTemp is MAIN's own folder for what it throws away.
func (e *Engine) privateTemp(session string) string {
	return filepath.Join(e.opts.Config.Dir, ".fairlead", "tmp", session)
}

// mainBox is how MAIN is started in a sandbox.
type mainBox struct {
	exe string
	box sandbox.Box
}

// sandboxProof is what was found out about this machine, once.
type sandboxProof struct {
	once sync.Once
	why  string // why there is none; empty: it holds
}

// mainBoxed says whether MAIN's process is kept from writing by the kernel. Nil: it is not, and the layer
// says why.
func (e *Engine) mainBoxed(ctx context.Context, s team.Session, j *job) (*mainBox, []Layer, error) {
	rules := Layer{Name: "rules", Holds: true, Text: "what it asks for, and what it is seen to call, is judged by the permissions of " + dispatch.Main}
	want := cmp.Or(e.opts.Config.Session.Sandbox, config.SandboxAuto)
	no := func(why string) (*mainBox, []Layer, error) {
		if want == config.SandboxRequired {
			return nil, nil, fmt.Errorf("session.sandbox is required, and %s; set it to auto, or run on a kernel that has Landlock", why)
		}
		return nil, []Layer{rules, {Name: "sandbox", Text: why}}, nil
	}
	if want == config.SandboxOff {
		return no("session.sandbox is off")
	}
	if why := e.noSandbox(ctx); why != "" {
		return no(why)
	}
	exe, err := os.Executable()
	if err != nil {
		return no("this program's own file cannot be found: " + err.Error())
	}
	if err := os.MkdirAll(e.privateTemp(s.ID), 0o700); err != nil {
		return no(err.Error())
	}
	outputs, err := below(j.folder.Path(), j.folder.Workspace(j.work.Conversation))
	if err != nil {
		return no(err.Error())
	}
	temp, err := below(e.opts.Config.Dir, e.privateTemp(s.ID))
	if err != nil {
		return no(err.Error())
	}
	write := []string{outputs, temp}
	return &mainBox{exe: strings.TrimSuffix(exe, " (deleted)"), box: sandbox.Box{Write: write}},
		[]Layer{rules, {Name: "sandbox", Holds: true, Text: "the kernel (Landlock) lets it and all that it starts write below " + write[0] + " and its own temporary folder, and nowhere else; the network is open, and a program that must write settings of its own does not start in it"}}, nil
}

// below is a path below a root, as the kernel names it. Links are followed to the root alone: one that
// lies below it somebody has laid there, and the sandbox refuses it.
func below(root, path string) (string, error) {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	return filepath.Join(real, rel), nil
}

func (e *Engine) setLayers(folder string, layers []Layer) {
	e.folders.mu.Lock()
	defer e.folders.mu.Unlock()
	e.folders.layers[folder] = layers
}

func (e *Engine) layersOf(folder string) []Layer {
	e.folders.mu.Lock()
	defer e.folders.mu.Unlock()
	return append([]Layer(nil), e.folders.layers[folder]...)
}
