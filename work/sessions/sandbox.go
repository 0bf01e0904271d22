package sessions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Confinement is the view of a prepared launch, as data for its host; nil: it needs none.
func (c *Controller) Confinement(m *Slot, ready PreparedLaunch) *sessionhost.Confinement {
	box := m.Conf.Sandbox
	if ready.Wall != nil {
		box = *ready.Wall
	}
	if !box.On() && !ready.Confined {
		return nil
	}
	if ready.Confined && box.Mode != config.SandboxRequired {
		box.Mode = config.SandboxWorkspace
	}
	view := &sessionhost.Confinement{
		Agent: m.Conf.Name, Driver: m.Conf.Driver, Command: m.Conf.Command, CanWrite: m.Conf.Permissions.CanWrite,
		CannotWrite: m.Conf.Permissions.CannotWrite,
		Mode:        box.Mode, Read: box.Read, Write: box.Write, Hide: box.Hide, Sockets: box.Sockets, Local: box.Local,
		Network: m.Conf.Network,
		Writes:  ready.Writes, ReadOnly: ready.ReadOnly || m.Conf.ReadsOnly(), Clone: ready.Clone, Run: ready.Run,
	}
	for i := range c.opts.Config.Agents {
		if other := &c.opts.Config.Agents[i]; other.Name != m.Conf.Name && other.Workspace != m.Conf.Workspace {
			view.Others = append(view.Others, other.Workspace)
		}
	}
	return view
}

// Confined puts a prepared launch into the agent's view, if the agent has one.
func (c *Controller) Confined(ctx context.Context, m *Slot, s team.Session, ready PreparedLaunch) (PreparedLaunch, error) {
	box := c.Confinement(m, ready)
	if box == nil {
		return ready, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return PreparedLaunch{},
			fmt.Errorf("the executable of fairlead cannot be found, which makes the sandbox of agent %s: %w", m.Conf.Name, err)
	}
	own := c.PrivateTemp(s.ID)
	seen, err := c.Boxed.places(ctx, ready.Launch, *box, c.opts.Config.Dir, exe, own)
	if err != nil {
		return ready, err
	}
	if seen == nil { // what it would be let write is what its changes are looked at for
		would, err := placesOf(ctx, ready.Launch, *box, c.opts.Config.Dir, exe, own)
		if ready.Record != nil {
			ready.Record.Governs = err != nil || governs(c.opts.Config, would)
		}
		return ready, nil
	}
	for _, said := range seen.Said {
		c.log.Warn("a part of an agent's view was left out", "agent", m.Conf.Name, "session", s.ID, "why", said)
	}
	if ready.Record != nil {
		ready.Record.Governs = governs(c.opts.Config, seen)
	}
	if ready.Launch, err = enter(ready.Launch, *box, seen, own); err == nil {
		ready.Launch, err = WithSocket(c.opts.Sockets, ready.Launch, s.ID, exe, own)
	}
	return ready, err
}

// WithSocket gives a session in a view a socket to Fairlead of its own, which is its identity there. Landlock alone has no place for one.
// sockets is nil where none are served.
func WithSocket(sockets outside.SessionSockets, launch spawn.Launch, session, exe, own string) (spawn.Launch, error) {
	v := launch.View
	if sockets == nil || v == nil || v.By != sandbox.ByNamespaces {
		return launch, nil
	}
	if err := sockets.Open(session, socketFolder(own)); err != nil {
		return launch, errors.Join(err, places.End(own))
	}
	v.Session = socketFolder(own)
	launch.Env = throughSocket(launch.Env, exe)
	return launch, nil
}

// socketFolder is the folder of a session's socket to Fairlead, below the session's own.
func socketFolder(own string) string { return filepath.Join(own, "fairlead") }

// throughSocket tells a session that it reaches the team's tools through its own socket: it needs no address and no token.
func throughSocket(env []string, exe string) []string {
	env, offered := slices.Clone(env), false
	env = slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		offered = offered || name == driver.VariableMCPStdio
		return name == driver.VariableMCPURL || name == driver.VariableMCPToken || name == driver.VariableMCPStdio
	})
	if offered {
		env = append(env, driver.VariableMCPStdio+"="+string(encode.JSON([]string{exe, "mcp"})))
	}
	return env
}

// ListenAgain opens the socket of a session that an earlier daemon has started in a view.
func ListenAgain(sockets outside.SessionSockets, session, own string, log *slog.Logger) {
	folder := socketFolder(own)
	if _, err := os.Lstat(folder); err != nil || sockets == nil {
		return
	}
	if err := sockets.Open(session, folder); err != nil {
		log.Warn("a session's socket to Fairlead cannot be opened again, so it has no tools of its team", "session", session, "error", err)
	}
}

// ListenAgain opens the socket of a session that an earlier daemon has started in a view.
func (c *Controller) ListenAgain(session string) {
	ListenAgain(c.opts.Sockets, session, c.PrivateTemp(session), c.log)
}

// EndPlaces removes what the view of a session was made of, with its socket.
func EndPlaces(sockets outside.SessionSockets, session, own string) error {
	if sockets != nil {
		sockets.End(session)
	}
	return places.End(own)
}

// governs reports whether a view lets its agent write fairlead.yaml or a file that it includes.
func governs(conf *config.Config, seen *places.Places) bool {
	return slices.ContainsFunc(append(conf.Includes(), filepath.Join(conf.Dir, config.FileName)), func(file string) bool {
		real, err := filepath.EvalSymlinks(file)
		return seen.Writes(file) || err == nil && seen.Writes(real)
	})
}

// Confine puts a launch into its agent's view, on the host where it starts. root is the folder of fairlead.yaml, exe the program
// fairlead, and own the session's own folder, which it makes; [places.End] removes it.
func (p *SandboxProof) Confine(ctx context.Context, launch spawn.Launch, box sessionhost.Confinement, root, exe, own string) (spawn.Launch,
	error,
) {
	seen, err := p.places(ctx, launch, box, root, exe, own)
	if err != nil || seen == nil {
		return launch, err
	}
	return enter(launch, box, seen, own)
}

// unconfined says why an agent is not started: it would run without its view.
func unconfined(box sessionhost.Confinement, why string) error {
	return fmt.Errorf("agents.%s.sandbox keeps it to its workspace, and %s; it is not started without a sandbox: fix that, or set sandbox: off", box.Agent, why)
}

// places decides what a launch sees. Nil without an error: there is no view here, and it starts without one, as LayersOfAgent says.
func (p *SandboxProof) places(ctx context.Context, launch spawn.Launch, box sessionhost.Confinement, root, exe, own string) (*places.Places,
	error,
) {
	switch why := p.Missing(ctx); {
	case why != "" && box.Mode == config.SandboxAuto:
		return nil, nil
	case why != "":
		return nil, unconfined(box, why)
	}
	seen, err := placesOf(ctx, launch, box, root, exe, own)
	if err != nil {
		return nil, unconfined(box, err.Error())
	}
	return seen, nil
}

func enter(launch spawn.Launch, box sessionhost.Confinement, seen *places.Places, own string) (spawn.Launch, error) {
	if err := seen.Make(); err != nil {
		return spawn.Launch{}, unconfined(box, errors.Join(err, places.End(own)).Error())
	}
	launch.Env, launch.View = append(seen.Env, driver.VariableWall+"=1"), &seen.View
	if sandbox.Whole().Network {
		launch = inNetwork(launch, box, ProxyFolder(filepath.Dir(filepath.Dir(own))))
	}
	return launch, nil
}

// requires are the rows that have to hold for a mode.
var requires = map[string][]sandbox.Row{
	config.SandboxWorkspace: {sandbox.RowWrite},
	config.SandboxRequired: {
		sandbox.RowWrite, sandbox.RowAttributes, sandbox.RowInside, sandbox.RowRead, sandbox.RowNames, sandbox.RowSocket,
		sandbox.RowProcess, sandbox.RowGit,
		sandbox.RowRoot, sandbox.RowNetwork,
	},
}

// placesOf decides what a launch sees of this machine. Nothing is changed.
func placesOf(ctx context.Context, launch spawn.Launch, box sessionhost.Confinement, root, exe, own string) (*places.Places, error) {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("the folder of fairlead.yaml cannot be found: %w", err)
	}
	if rel, err := filepath.Rel(root, own); err == nil && filepath.IsLocal(rel) {
		own = filepath.Join(real, rel)
	}
	s := places.Session{
		Agent: box.Agent, Driver: box.Driver, Command: box.Command, Argv: launch.Argv, Env: launch.Env, Dir: launch.Dir, Root: root,
		Exe: exe,
		Own: own, State: filepath.Dir(filepath.Dir(own)),
		CanWrite: box.CanWrite, CannotWrite: box.CannotWrite, Read: box.Read, Write: box.Write, Hide: box.Hide, Sockets: box.Sockets,
		ReadOnly: box.ReadOnly, Needs: box.Writes, Others: box.Others, Clone: box.Clone, Ability: sandbox.Whole(),
	}
	if r := box.Run; r != nil {
		s.Run = places.Run{Dir: r.Dir, Reports: r.Reports, Artifacts: r.Artifacts, Files: r.Files, Folders: r.Folders}
	}
	s.Name, s.Mail = identity(ctx, root, launch.Env)
	s.Canaries = sandbox.Canaries{PID: os.Getpid()}
	for _, name := range []string{"token", "journal.db", "settings.json"} {
		if file := filepath.Join(s.State, name); isFile(file) {
			s.Canaries.Read, s.Canaries.Write = file, file
			break
		}
	}
	seen, err := places.Of(s)
	if err != nil {
		return nil, err
	}
	seen.View.Required = requires[box.Mode]
	return seen, nil
}

func isFile(p string) bool {
	info, err := os.Lstat(p)
	return err == nil && info.Mode().IsRegular()
}

// identity is who the person is for git, from the person's own settings.
func identity(ctx context.Context, root string, env []string) (name, mail string) {
	cmd := exec.CommandContext(ctx, "git", "-C", root, "config", "--null", "--get-regexp", `^user\.(name|email)$`)
	cmd.Env = env
	out, err := cmd.Output()
	if err != nil {
		return "", "" // there is none, or no git
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		switch key, value, _ := strings.Cut(entry, "\n"); key {
		case "user.name":
			name = value
		case "user.email":
			mail = value
		}
	}
	return name, mail
}

// SandboxProof is the result of probing the sandbox on this machine, once.
type SandboxProof struct {
	Once sync.Once
	Why  string // why there is no sandbox; empty if it works
}

// Missing returns why this machine has no working sandbox; empty if a trial succeeded. It is tried once.
func (p *SandboxProof) Missing(context.Context) string {
	p.Once.Do(func() {
		if a := sandbox.Abilities(); a.By == sandbox.ByNothing {
			p.Why = "there is no sandbox here: " + a.WhyNotMore() + " (`fairlead doctor` says what helps)"
		}
	})
	return p.Why
}

// SandboxMissing returns why this machine has no working sandbox; see SandboxProof.Missing.
func (c *Controller) SandboxMissing(ctx context.Context) string { return c.Boxed.Missing(ctx) }

// EndView removes what the view of a session was made of.
func (c *Controller) EndView(session string) {
	if err := EndPlaces(c.opts.Sockets, session, c.PrivateTemp(session)); err != nil {
		c.log.Warn("what belongs to the view of a session could not be removed", "session", session, "error", err)
	}
}
