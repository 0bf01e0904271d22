package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/outlet"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Wall says in what view setup and checks run: that of the task's agent, in which the whole clone is writable, because they make
// what the agent does not.
type Wall struct {
	Mode    string   `json:"mode,omitempty"` // the agent's word for its sandbox
	Read    []string `json:"read,omitempty"`
	Write   []string `json:"write,omitempty"`
	Hide    []string `json:"hide,omitempty"`
	Sockets []string `json:"sockets,omitempty"`
	Others  []string `json:"others,omitempty"` // workspaces of other agents

	Network network.Rules `json:"network"` // what the commands reach
}

// The words for a sandbox that differ from `workspace` here. None is as off.
const (
	wallAuto     = "auto"     // without a view where none can be made
	wallOff      = "off"      // none
	wallRequired = "required" // only where every row is held that can be
)

// Unconfined refuses a command that runs what another host has written, because this machine has no sandbox.
type Unconfined struct{ Host, Why string }

func (u *Unconfined) Error() string {
	return fmt.Sprintf("what host %s has written runs on this machine only in the sandbox of `sandbox: workspace`, and %s; let a machine with Linux 6.2 or later and Landlock lead the team, or keep the agent on this machine: remove `host` from its entry in fairlead.yaml, and begin anew", u.Host, u.Why)
}

// noView says that a command was not started because its view could not be made, which says nothing about the files.
type noView struct{ error }

func (e *noView) Unwrap() error { return e.error }

// inside is how a command of setup or checks is started, and what is to be removed after it.
type inside struct {
	argv, env []string
	dir       string
	attr      *syscall.SysProcAttr
	files     []*os.File // for it

	own    string // the folder that the view is made of; empty: there is no view
	points *sandbox.Points
	said   *sandbox.Reports
	unheld []sandbox.Row

	view    sandbox.View
	network *spawn.Network // nil: the view has no network of its own
	session string         // its name in the proxy
	stop    func()         // ends its service there; nil: there is none
}

// enter makes the view for a command in a folder, if it is to have one. The error is *Unconfined or *noView.
func (t Task) enter(ctx context.Context, argv, env []string, tree string) (*inside, error) {
	in := &inside{argv: argv, env: env, dir: filepath.Join(tree, filepath.FromSlash(t.Prefix)), attr: &syscall.SysProcAttr{}}
	off := t.Wall.Mode == "" || t.Wall.Mode == wallOff
	if off && t.From == "" {
		return in, nil
	}
	can := sandbox.Abilities()
	switch why := can.WhyNotMore(); {
	case can.By != sandbox.ByNothing:
	case t.From != "":
		return nil, &Unconfined{t.From, "there is no sandbox here: " + why}
	case t.Wall.Mode == wallAuto:
		return in, nil
	default:
		return nil, &noView{fmt.Errorf("agents.%s.sandbox keeps its commands to its folder, and there is no sandbox here: %s; fix that, or set sandbox: off", t.Agent, why)}
	}
	if err := in.make(t, t.viewed(ctx, argv, env, tree, can)); err != nil {
		return nil, &noView{errors.Join(fmt.Errorf("make the view of a command: %w", err), in.leave())}
	}
	return in, nil
}

func (in *inside) make(t Task, s places.Session) error {
	seen, err := places.Of(s)
	if err != nil {
		return err
	}
	in.own = t.viewFolder()
	if err := seen.Make(); err != nil {
		return err
	}
	view := seen.View
	view.Dir, view.Required, view.Report = in.dir, []sandbox.Row{sandbox.RowWrite}, 3
	if t.Wall.Mode == wallRequired {
		view.Required = append(view.Required, sandbox.RowInside, sandbox.RowRead, sandbox.RowSocket, sandbox.RowProcess, sandbox.RowRoot,
			sandbox.RowNetwork)
	}
	if s.Ability.Network {
		view.Network = sandbox.InsideOf(t.Wall.Network)
		in.network = &spawn.Network{
			Folder: filepath.Join(s.State, "proxy"), Agent: t.Agent, Rules: t.Wall.Network, Upstream: outlet.UpstreamOf(s.Env),
		}
		seen.Env = outlet.Environment(seen.Env)
	}
	in.view, in.session = view, filepath.Base(in.own)
	if in.points, err = sandbox.MakePoints(filepath.Dir(in.own), view); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if in.argv, err = sandbox.WrapView(exe, s.Argv, view); err != nil {
		return err
	}
	var theirs *os.File
	if in.said, theirs, err = view.OpenReports(); err != nil {
		return err
	}
	in.env, in.attr, in.files = seen.Env, view.Attr(), []*os.File{theirs}
	return nil
}

// viewFolder is the folder of this step's views, below Fairlead's own: the daemon removes it with the step's session, if this process is
// killed.
func (t Task) viewFolder() string {
	return filepath.Join(t.Repo, filepath.FromSlash(t.Prefix), ".fairlead", "tmp", cmp.Or(t.InSession, "task-"+t.ID))
}

func (t Task) viewed(ctx context.Context, argv, env []string, tree string, can sandbox.Ability) places.Session {
	own := t.viewFolder()
	s := places.Session{
		Agent: t.Agent, Argv: argv, Env: env, Dir: tree, Root: filepath.Join(t.Repo, filepath.FromSlash(t.Prefix)),
		State: filepath.Dir(filepath.Dir(own)), Own: own,
		Read: t.Wall.Read, Write: t.Wall.Write, Hide: t.Wall.Hide, Sockets: t.Wall.Sockets, Others: t.Wall.Others,
		Ability: can, Canaries: sandbox.Canaries{PID: os.Getpid()},
	}
	s.Clone = tree
	if tree != t.Tree {
		s.Agent += ".checks" // a cache that the agent writes could answer in place of a check
		for _, path := range t.Wall.Hide {
			if name, err := filepath.Rel(t.Tree, path); err == nil && filepath.IsLocal(name) {
				s.Hide = append(slices.Clone(s.Hide), filepath.Join(tree, name))
			}
		}
	}
	s.Name, _ = t.ask(ctx, nil, "config", "--get", "user.name") // there is none, or it is not read: then a command that commits says so
	s.Mail, _ = t.ask(ctx, nil, "config", "--get", "user.email")
	return s
}

// wait waits for the end of the command. over is false if process 1 of the view is still there.
func (in *inside) wait(cmd *exec.Cmd) (over bool, err error) {
	if in.own == "" {
		return true, cmd.Wait()
	}
	in.files[0].Close()
	said := json.NewDecoder(in.said)
	var started sandbox.Started
	if err := said.Decode(&started); err != nil || started.Error != "" {
		return true, &noView{errors.Join(fmt.Errorf("its view was not made: %s", cmp.Or(started.Error, fmt.Sprint(err))), cmd.Wait())}
	}
	in.unheld = started.Unheld
	if err := in.serve(); err != nil {
		return true, &noView{errors.Join(err, cmd.Process.Kill(), cmd.Wait())}
	}
	var ended struct {
		Status *uint32 `json:"status"` // of a sandbox.Ended
	}
	if said.Decode(&ended) != nil || ended.Status == nil {
		return true, cmd.Wait() // by Landlock alone the process is the command, or process 1 was killed
	}
	if *ended.Status != 0 {
		err = endedInside(*ended.Status)
	}
	return false, err
}

// errNoStart keeps this process from starting a proxy: it runs in a session, and what it starts ends with that. The daemon starts one.
var errNoStart = errors.New("there is no proxy; the daemon starts one")

// serve has the proxy answer at the sockets of the view's network, which came with the report of its start.
func (in *inside) serve() error {
	sockets, err := in.said.Sockets(in.view)
	ctx, cancel := context.WithCancel(context.Background())
	var kept sync.WaitGroup
	in.stop = func() {
		cancel()
		kept.Wait()
		for _, f := range sockets {
			f.Close()
		}
	}
	if err != nil || in.network == nil {
		return err
	}
	o := outlet.Of(in.session, in.view, in.network, sockets)
	o.Options.Around = func(func() error) error { return errNoStart }
	kept.Go(func() { o.Keep(ctx) })
	return nil
}

// notHeld are the rows that the view did not hold. Git's is not tried here.
func (in *inside) notHeld() string {
	var words []string
	for _, row := range in.unheld {
		if !slices.Contains([]sandbox.Row{sandbox.RowGit}, row) {
			words = append(words, string(row))
		}
	}
	return strings.Join(words, ", ")
}

// leave removes what the view was made of.
func (in *inside) leave() error {
	if in.own == "" {
		return nil
	}
	if in.stop != nil {
		in.stop()
	}
	if in.said != nil {
		in.said.Close()
	}
	for _, f := range in.files {
		f.Close()
	}
	return errors.Join(in.points.Remove(), places.End(in.own))
}

// endedInside is the end of a command in a view, other than with the code 0: the wait status.
type endedInside uint32

func (e endedInside) Error() string {
	status := syscall.WaitStatus(e)
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
