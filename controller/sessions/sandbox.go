package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/sandbox"
	"github.com/fairlead-dev/fairlead/team"
)

// An agent with `sandbox: workspace` is started behind the sandbox's door, as MAIN is (dispatchstart.go):
// its program, the adapter before it and all that they start read everything, and write in the places
// that are gathered here and nowhere else.

// confined puts what is to be started into the agent's sandbox, where it has one. What was put into
// MAIN's already is in a narrower one.
func (e *Controller) confined(ctx context.Context, m *Slot, s team.Session, ready PreparedLaunch) (PreparedLaunch, error) {
	if !m.Conf.Sandbox.On || ready.Boxed {
		return ready, nil
	}
	no := func(why string) (PreparedLaunch, error) {
		return PreparedLaunch{}, fmt.Errorf("agents.%s.sandbox keeps it to its workspace, and %s; it is not started without: mend that, or set sandbox: off", m.Conf.Name, why)
	}
	if why := e.NoSandbox(ctx); why != "" {
		return no(why)
	}
	exe, err := os.Executable()
	if err != nil {
		return no("this program's own file cannot be found: " + err.Error())
	}
	temp := e.Hooks.PrivateTemp(s.ID)
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return no("it has no temporary folder: " + err.Error())
	}
	write, err := e.PlacesOf(m.Conf, ready.Launch, append(slices.Clone(ready.Writes), temp))
	if err != nil {
		return no(err.Error())
	}
	ready.Launch.Env = append(envWithout(ready.Launch.Env, "TMPDIR"), "TMPDIR="+temp)
	ready.Launch.Argv = sandbox.Wrap(strings.TrimSuffix(exe, " (deleted)"), ready.Launch.Argv,
		sandbox.Box{Write: write, Attributes: true, Terminals: true, Sockets: m.Conf.Sandbox.Sockets})
	return ready, nil
}

// noSandbox says why there is no sandbox on this machine; empty: it was tried, and holds.
func (e *Controller) NoSandbox(ctx context.Context) string {
	e.Boxed.Once.Do(func() {
		if err := sandbox.Probe(context.WithoutCancel(ctx)); err != nil {
			e.Boxed.Why = "there is no sandbox here: " + err.Error()
		}
	})
	return e.Boxed.Why
}

// envWithout is an environment with one variable less.
func envWithout(env []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

// placesOf is where an agent may write: its workspace, or the folders of it that can_write names; what
// git needs of a checkout's repository; its program's own folders; what the session needs (more), and what
// fairlead.yaml adds. Links are followed to what a person named alone: below a place that the agent
// may write it could have laid them, and the sandbox refuses them.
func (e *Controller) PlacesOf(conf *config.Agent, launch driver.Launch, more []string) (write []string, err error) {
	add := func(p string, err2 error) {
		if err2 != nil && err == nil {
			err = err2
		}
		if err2 == nil && !slices.Contains(write, p) {
			write = append(write, p)
		}
	}
	workspace, err := e.placeOf(launch.Dir)
	if err != nil {
		return nil, fmt.Errorf("its workspace cannot be found: %w", err)
	}
	if folders, narrow := PlainFolders(conf.Permissions.CanWrite); narrow {
		for _, folder := range folders {
			add(FolderIn(workspace, folder))
		}
		if git := filepath.Join(workspace, ".git"); e.opts.Config.Dispatch.Commits && isFolder(git) {
			add(git, nil)
		}
	} else {
		add(workspace, nil)
	}
	for _, p := range GitFolders(workspace) {
		add(p, nil)
	}
	for _, p := range more {
		if _, fault := os.Lstat(p); fault == nil { // what a session needs is there when it begins
			add(e.placeOf(p))
		}
	}
	named, fault := namedPlaces(ProgramPlaces(conf, launch.Env), conf.Sandbox.Write, write, workspace)
	for _, p := range named {
		add(p, nil)
	}
	return write, errors.Join(err, fault)
}

// namedPlaces are a program's own folders and those that a person lists, beside what is granted: as the
// kernel names them. A program's folder that is not there is made, since the program would; where that
// cannot be it is left out. The error is a listed one that is not there.
func namedPlaces(programs, listed, granted []string, workspace string) (named []string, err error) {
	all := append(slices.Clone(programs), listed...)
	granted = slices.Clone(granted)
	for _, p := range all {
		if real, fault := filepath.EvalSymlinks(p); fault == nil {
			granted = append(granted, real)
		}
	}
	hands := append(slices.Clone(granted), workspace)
	for i, p := range all {
		real, within := entering(p, hands)
		if within && isBelow(real, granted) {
			continue // with what it lies in
		}
		var fault error
		if within {
			_, fault = os.Lstat(real)
		} else {
			if i < len(programs) && filepath.Ext(p) != ".json" { // the one file among them
				_ = os.MkdirAll(p, 0o700)
			}
			real, fault = filepath.EvalSymlinks(p)
		}
		switch {
		case fault == nil:
			named = append(named, real)
		case i >= len(programs):
			err = errors.Join(err, fmt.Errorf("sandbox.write names %s, which does not exist or cannot be reached; make it first", p))
		}
	}
	return named, err
}

// entering is where a path gets into one of the folders that the agent may write, and its rest as it is
// spelled: from there on the agent could have laid links. False: it gets into none.
func entering(p string, roots []string) (real string, within bool) {
	p = filepath.Clean(p)
	for at := 1; at < len(p); at++ {
		if p[at] != filepath.Separator {
			continue
		}
		parent, err := filepath.EvalSymlinks(p[:at])
		if err != nil {
			return "", false
		}
		if isBelow(parent, roots) {
			return parent + p[at:], true
		}
	}
	return "", false
}

// isBelow says whether a path is one of the folders or lies below one.
func isBelow(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") })
}

// placeOf is a folder as the kernel names it.
func (e *Controller) placeOf(p string) (string, error) {
	if rel, err := filepath.Rel(e.opts.Config.Dir, p); err == nil && filepath.IsLocal(rel) {
		return Below(e.opts.Config.Dir, p)
	}
	return filepath.EvalSymlinks(p)
}

// plainFolders are the folders that a list of can_write stands for; false: it is not there, or names more
// than folders, so that the kernel cannot hold it.
func PlainFolders(list []string) (folders []string, narrow bool) {
	if list == nil {
		return nil, false
	}
	for _, entry := range list {
		folder := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(entry, "./"), "**"), "/")
		if folder == "" || strings.ContainsAny(folder, `*?[{\`) || folder == entry && !strings.Contains(entry, "/") {
			return nil, false // a name without a slash may be a file's, in any folder
		}
		folders = append(folders, folder)
	}
	return folders, true
}

// folderIn makes a folder of the workspace ready, without following a link that leads out of it.
func FolderIn(workspace, folder string) (string, error) {
	if rest, ok := strings.CutPrefix(folder, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(home, rest)
	}
	if filepath.IsAbs(folder) {
		return filepath.EvalSymlinks(folder)
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return "", err
	}
	defer root.Close()
	_, err = root.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		err = root.MkdirAll(folder, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("can_write names %s, which cannot be used: %w", folder, err)
	}
	return filepath.Join(workspace, folder), nil
}

func isFolder(p string) bool {
	info, err := os.Lstat(p)
	return err == nil && info.IsDir()
}

const gitFileMax = 4 << 10 // of a file that names a path

// gitFolders are what git writes outside of a checkout that is one of several of its repository: the
// checkout's own records, objects and refs; not the hooks and not the configuration. The file .git lies in
// the workspace and may say anything, so the repository has to know the checkout, too. None: it is no
// such checkout.
func GitFolders(workspace string) []string {
	file := filepath.Join(workspace, ".git")
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	said, ok := strings.CutPrefix(oneLineOf(file), "gitdir: ")
	if !ok {
		return nil
	}
	if !filepath.IsAbs(said) {
		said = filepath.Join(workspace, said)
	}
	own, err := filepath.EvalSymlinks(said)
	if err != nil || filepath.Base(filepath.Dir(own)) != "worktrees" {
		return nil
	}
	back := oneLineOf(filepath.Join(own, "gitdir"))
	if !filepath.IsAbs(back) {
		back = filepath.Join(own, back)
	}
	if at, err := filepath.EvalSymlinks(back); err != nil || at != file {
		return nil
	}
	common := filepath.Dir(filepath.Dir(own))
	places := []string{own}
	for _, name := range []string{"objects", "refs", "logs"} {
		p := filepath.Join(common, name)
		if name == "logs" {
			_ = os.Mkdir(p, 0o755) // of a repository in which nothing was noted yet; where it cannot be made it is left out
		}
		if isFolder(p) {
			places = append(places, p)
		}
	}
	return places
}

func oneLineOf(file string) string {
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return "" // a pipe would be waited for
	}
	text, err := ReadUpTo(file, gitFileMax)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// boxedTemp removes the temporary folder of a session that was in a sandbox.
func (e *Controller) boxedTemp(m *Slot, session string) {
	if !m.Conf.Sandbox.On {
		return
	}
	if err := os.RemoveAll(e.Hooks.PrivateTemp(session)); err != nil {
		e.log.Warn("the temporary folder of a session could not be removed", "session", session, "error", err)
	}
}
