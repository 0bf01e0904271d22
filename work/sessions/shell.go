package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// A shell is a program that a person runs in the view of an agent or of a task. `fairlead shell` starts it, on the person's terminal,
// and this daemon decides what it sees. Its folder is beside those of sessions: it has a record, and the shell's own home folder,
// unless a session runs whose folders it shares. `fairlead shell` puts a locked file into it, and process 1 of the view holds the lock,
// too: the shell is over when the lock is free, however its processes ended.

const (
	shellPrefix    = ".shell-" // no session has such a name
	shellRecord    = "shell.json"
	shellLock      = "lock"
	shellBytesMax  = 4 << 10                // of the record: three names
	shellsMax      = 16                     // at a time; each is looked at while it is open
	shellLook      = 200 * time.Millisecond // the kernel tells no process that another one's lock is free
	shellBeginMost = 30 * time.Second       // from the answer to the lock, which takes milliseconds
)

// IsShell reports whether a folder among those of sessions belongs to a shell.
func IsShell(name string) bool { return strings.HasPrefix(name, shellPrefix) }

// ShellOf says what a shell is to see.
type ShellOf struct {
	Agent   string
	Run     string               // the task in whose folder it is; empty: the agent's workspace
	Dir     string               // the folder
	Clone   string               // the clone that the folder is in; empty: none
	Session string               // the session that works there now; empty: none
	Env     []string             // further variables of that session
	Seen    *sessionhost.RunView // what that session sees of its run
}

// shellIs is the record of a shell.
type shellIs struct {
	Agent   string `json:"agent"`
	Run     string `json:"run,omitempty"`
	Governs bool   `json:"governs,omitempty"` // it can write fairlead.yaml
}

// ShellIn decides what a shell sees, makes its folders, and records that it is opened. The shell is always in a view, also if the
// agent has none.
func (c *Controller) ShellIn(ctx context.Context, by change.Actor, of ShellOf) (view.Shell, error) {
	no := func(reason string) (view.Shell, error) {
		return view.Shell{},
			&table.Refusal{Subject: cmp.Or(of.Run, of.Agent), Event: "open_shell", State: "closed", Row: "E7", Reason: reason}
	}
	var m *Slot
	if err := c.loop.View(ctx, func(*team.Team) { m = c.Slots[of.Agent] }); err != nil {
		return view.Shell{}, err
	}
	if m == nil {
		return no("agent " + of.Agent + " is not in fairlead.yaml, which says what the view has")
	}
	if why := c.Boxed.Missing(ctx); why != "" {
		return no(why + "; a shell is opened only in a view: `fairlead doctor` says what this machine needs for one")
	}
	if open := c.shells(); len(open) >= shellsMax {
		return no(fmt.Sprintf("%d shells are open, which is the most; leave one", len(open)))
	}
	if of.Run == "" {
		if err := os.MkdirAll(of.Dir, 0o755); err != nil { //nolint:gosec // as public as its repository
			return view.Shell{}, fmt.Errorf("create the agent's workspace: %w", err)
		}
	}
	folder := c.PrivateTemp(shellPrefix + strings.ToLower(rand.Text()))
	shell, is, err := c.shell(ctx, m, of, folder)
	if err == nil {
		err = c.recordShell(ctx, by, is, team.ShellOpened)
	}
	if err != nil {
		return view.Shell{}, errors.Join(err, places.End(folder))
	}
	c.loop.Go(func(ctx context.Context) { c.followShell(ctx, folder, is, by) })
	return shell, nil
}

// shell makes the folders of a shell, and what the caller has to know.
func (c *Controller) shell(ctx context.Context, m *Slot, of ShellOf, folder string) (shell view.Shell, is shellIs, err error) {
	agent, err := c.AgentFor(m, "")
	if err != nil {
		return shell, is, err
	}
	exe, err := os.Executable()
	if err != nil {
		return shell, is, fmt.Errorf("the executable of fairlead cannot be found, which makes the view: %w", err)
	}
	agent.Workspace, agent.Env = of.Dir, append(agent.Env, of.Env...)
	env := driver.Environment(agent, driver.Session{Kind: "shell"}, driver.Needs(m.Driver, agent)...)
	env = slices.DeleteFunc(env, func(kv string) bool { // it is no session
		return strings.HasPrefix(kv, "FAIRLEAD_SESSION=") || strings.HasPrefix(kv, "FAIRLEAD_ATTEMPT=")
	})
	program, _ := driver.FindProgram(agent, env) // without the agent's program the shell has one less
	ready := PreparedLaunch{
		Launch: spawn.Launch{Argv: []string{program}, Dir: of.Dir, Env: env}, Clone: of.Clone, Run: of.Seen,
		Confined: true,
	}
	box := c.Confinement(m, ready)
	own, shared := folder, false
	if of.Session != "" {
		if info, err := os.Lstat(c.PrivateTemp(of.Session)); err == nil && info.IsDir() {
			own, shared = c.PrivateTemp(of.Session), true
		}
	}
	seen, err := placesOf(ctx, ready.Launch, *box, c.opts.Config.Dir, exe, own)
	if err == nil && !shared {
		err = seen.Make()
	}
	if err != nil {
		return shell, is, fmt.Errorf("make a view for a shell: %w", err)
	}
	is = shellIs{of.Agent, of.Run, governs(c.opts.Config, seen)}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return shell, is, err
	}
	if err := file.Replace(filepath.Join(folder, shellRecord), encode.JSON(is), 0o600); err != nil {
		return shell, is, fmt.Errorf("write the record of a shell: %w", err)
	}
	launch := spawn.Launch{Argv: ready.Launch.Argv, Env: append(seen.Env, driver.VariableWall+"=1"), View: &seen.View}
	network := ""
	if sandbox.Whole().Network {
		launch = inNetwork(launch, *box, ProxyFolder(filepath.Dir(filepath.Dir(folder))))
		network = string(encode.JSON(launch.Network))
	}
	shell = view.Shell{
		Agent: of.Agent, Task: of.Run, Dir: seen.View.Dir, Shell: shellIn(seen), View: string(encode.JSON(launch.View)),
		Lock: filepath.Join(folder, shellLock), Network: network,
		Env: launch.Env, Made: filepath.Join(c.opts.Config.Dir, ".fairlead", "sessions"),
		Notes: slices.Clone(seen.Said),
	}
	if !m.Conf.Sandbox.On() {
		shell.Notes = append(shell.Notes,
			fmt.Sprintf("agents.%s.sandbox is off, so its program runs without a wall; this shell has the one that `sandbox: %s` makes",
				of.Agent, config.SandboxWorkspace))
	}
	return shell, is, nil
}

// shellIn is the shell that a person gets: the usual one, if it is in the view.
func shellIn(seen *places.Places) string {
	usual := ""
	for _, kv := range seen.Env {
		if value, ok := strings.CutPrefix(kv, "SHELL="); ok {
			usual = value
		}
	}
	for _, p := range []string{usual, "/bin/bash"} {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && seen.Sees(p) {
			return p
		}
	}
	return "/bin/sh"
}

// recordShell tells the journal that a shell was opened, or is over.
func (c *Controller) recordShell(ctx context.Context, by change.Actor, is shellIs, what team.Shell) error {
	ev := loop.EventBy(by, is.Agent, what)
	if is.Run != "" {
		ev.Agent, ev.Run = "", is.Run
	}
	_, err := c.loop.Do(ctx, loop.Request{Event: ev})
	return err
}

// shells are the folders of all shells.
func (c *Controller) shells() []string {
	found, _ := filepath.Glob(c.PrivateTemp(shellPrefix + "*")) // the pattern is valid
	return found
}

// FollowShells follows the shells that an earlier daemon has opened.
func (c *Controller) FollowShells() {
	for _, folder := range c.shells() {
		var is shellIs
		text, err := ReadUpTo(filepath.Join(folder, shellRecord), shellBytesMax)
		if err == nil {
			err = json.Unmarshal(text, &is)
		}
		if err != nil { // it was not opened
			c.endShell(folder)
			continue
		}
		c.loop.Go(func(ctx context.Context) { c.followShell(ctx, folder, is, ByRecovery) })
	}
}

// followShell waits until a shell is over, then removes what was made for it. If this daemon ends first, the next one goes on.
func (c *Controller) followShell(ctx context.Context, folder string, is shellIs, by change.Actor) {
	for until := time.Now().Add(shellBeginMost); ; {
		if begun, held := isHeld(filepath.Join(folder, shellLock)); !held && (begun || time.Now().After(until)) {
			break
		}
		if !retry.Rest(ctx, shellLook) {
			return
		}
	}
	c.endShell(folder)
	if is.Governs { // what ran in it may have written fairlead.yaml
		if _, err := c.loop.Submit(ctx, ByShim, "", team.ConfigExposed{}); err != nil && ctx.Err() == nil {
			c.log.Warn("fairlead.yaml is not compared after a shell that could write it", "error", err)
		}
	}
	if err := c.recordShell(ctx, by, is, team.ShellEnded); err != nil && ctx.Err() == nil {
		c.log.Warn("the end of a shell is not in the journal", "agent", is.Agent, "task", is.Run, "error", err)
	}
}

// endShell removes what was made for a shell.
func (c *Controller) endShell(folder string) {
	err := places.End(folder)
	if err := errors.Join(err, sandbox.RemovePoints(filepath.Join(c.opts.Config.Dir, ".fairlead", "sessions"))); err != nil {
		c.log.Warn("what was made for a shell could not be removed", "folder", folder, "error", err)
	}
}

// isHeld reports whether a file is there, and whether a process holds a lock of it.
func isHeld(path string) (there, held bool) {
	f, err := os.Open(path)
	if err != nil {
		return false, false
	}
	defer f.Close()
	return true, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil //nolint:gosec // a descriptor fits an int
}
