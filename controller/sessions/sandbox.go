package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/sandbox"
	"github.com/fairlead-dev/fairlead/team"
)

// An agent with can_write or `sandbox: workspace` starts inside the sandbox, like the coordinator of a
// dispatch folder (MAIN). Its program, the adapter and their children can read everything, and write only in
// the places that this file collects.

// confinement is the sandbox of a prepared launch, as data for its host; nil: the agent has none, or it is boxed
// already, as MAIN is.
func (m *Slot) confinement(ready PreparedLaunch, commits bool) *seam.Confinement {
	if !m.Conf.Sandbox.On || ready.Boxed {
		return nil
	}
	return &seam.Confinement{
		Agent: m.Conf.Name, Driver: m.Conf.Driver, Command: m.Conf.Command, CanWrite: m.Conf.Permissions.CanWrite, Write: m.Conf.Sandbox.Write,
		Writes: ready.Writes, ReadOnly: ready.ReadOnly, Auto: m.Conf.Sandbox.Auto, Sockets: m.Conf.Sandbox.Sockets, Commits: commits,
	}
}

// confined wraps a prepared launch in the agent's sandbox, if the agent has one.
func (c *SessionController) confined(ctx context.Context, m *Slot, s team.Session, ready PreparedLaunch) (PreparedLaunch, error) {
	box := m.confinement(ready, c.opts.Config.Dispatch.Commits)
	if box == nil {
		return ready, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return PreparedLaunch{}, fmt.Errorf("the executable of fairlead cannot be found, which makes the sandbox of agent %s: %w", m.Conf.Name, err)
	}
	ready.Launch, err = c.Boxed.Confine(ctx, ready.Launch, *box, c.opts.Config.Dir, exe, c.Hooks.PrivateTemp(s.ID))
	return ready, err
}

// Confine wraps a launch in its agent's sandbox, on the host where it starts. root is the repository, exe the program
// fairlead, and temp the session's own temporary folder, which it makes.
func (p *SandboxProof) Confine(ctx context.Context, launch driver.Launch, box seam.Confinement, root, exe, temp string) (driver.Launch, error) {
	no := func(why string) (driver.Launch, error) {
		return driver.Launch{}, fmt.Errorf("agents.%s.sandbox keeps it to its workspace, and %s; it is not started without a sandbox: fix that, or set sandbox: off", box.Agent, why)
	}
	switch why := p.Missing(ctx); {
	case why != "" && box.Auto:
		return launch, nil // LayersOfAgent says so
	case why != "":
		return no(why)
	}
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return no("it has no temporary folder: " + err.Error())
	}
	box.Writes = append(slices.Clone(box.Writes), temp)
	write, err := PlacesOf(box, launch, root)
	if err != nil {
		return no(err.Error())
	}
	if box.ReadOnly {
		workspace, err := placeOf(root, launch.Dir)
		if err != nil {
			return no(err.Error())
		}
		write = slices.DeleteFunc(write, func(p string) bool { return isBelow(p, []string{workspace}) })
	}
	launch.Env = append(envWithout(launch.Env, "TMPDIR"), "TMPDIR="+temp)
	launch.Argv = sandbox.Wrap(exe, launch.Argv, sandbox.Box{Write: write, Attributes: true, Terminals: true, Sockets: box.Sockets})
	return launch, nil
}

// SandboxProof is the result of probing the sandbox on this machine, once.
type SandboxProof struct {
	Once sync.Once
	Why  string // why there is no sandbox; empty if it works
}

// Missing returns why this machine has no working sandbox; empty if a probe succeeded. The
// probe runs once.
func (p *SandboxProof) Missing(ctx context.Context) string {
	p.Once.Do(func() {
		if err := sandbox.Probe(context.WithoutCancel(ctx)); err != nil {
			p.Why = "there is no sandbox here: " + err.Error()
		}
	})
	return p.Why
}

// SandboxMissing returns why this machine has no working sandbox; see SandboxProof.Missing.
func (c *SessionController) SandboxMissing(ctx context.Context) string { return c.Boxed.Missing(ctx) }

// envWithout returns env without the variable name.
func envWithout(env []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

// PlacesOf lists the paths that an agent may write: its workspace, or the folders that can_write
// names; what git needs of the repository of a linked checkout; its program's own
// folders; what the session needs; and sandbox.write of fairlead.yaml. root is the repository. Symbolic links are
// resolved only in paths that a person configured: in a folder that the agent can write, the agent
// could have created the link, so the sandbox refuses it.
func PlacesOf(box seam.Confinement, launch driver.Launch, root string) (write []string, err error) {
	add := func(p string, err2 error) {
		if err2 != nil && err == nil {
			err = err2
		}
		if err2 == nil && !slices.Contains(write, p) {
			write = append(write, p)
		}
	}
	workspace, err := placeOf(root, launch.Dir)
	if err != nil {
		return nil, fmt.Errorf("its workspace cannot be found: %w", err)
	}
	folders := WriteFolders(box.CanWrite)
	for _, folder := range folders {
		add(FolderIn(workspace, folder))
	}
	if git := filepath.Join(workspace, ".git"); !slices.Contains(folders, ".") && box.Commits && isFolder(git) {
		add(git, nil)
	}
	for _, p := range GitFolders(workspace) {
		add(p, nil)
	}
	for _, p := range box.Writes {
		if _, fault := os.Lstat(p); fault == nil { // what a session needs exists before it starts
			add(placeOf(root, p))
		}
	}
	named, fault := namedPlaces(ProgramPlaces(box.Driver, box.Command, launch.Env), box.Write, write, workspace)
	for _, p := range named {
		add(p, nil)
	}
	return write, errors.Join(err, fault)
}

// namedPlaces resolves a program's own folders and the listed ones, without those inside a granted
// folder. A missing program folder is created, as the program would do; it is left out if that
// fails. The error names listed paths that do not exist.
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
			continue // part of a granted folder
		}
		var fault error
		if within {
			_, fault = os.Lstat(real)
		} else {
			if i < len(programs) && filepath.Ext(p) != ".json" { // a .json path is a file
				_ = os.MkdirAll(p, 0o700)
			}
			real, fault = filepath.EvalSymlinks(p)
		}
		switch {
		case fault == nil:
			named = append(named, real)
		case i >= len(programs):
			err = errors.Join(err, fmt.Errorf("sandbox.write names %s, which does not exist or cannot be reached; create it first", p))
		}
	}
	return named, err
}

// entering finds where path p enters one of the roots, which the agent may write. It returns the
// resolved root with the rest of p unresolved, since the agent could have created links in it.
// within is false if p enters none of the roots.
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

// isBelow reports whether p is one of the folders or inside one of them.
func isBelow(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") })
}

// placeOf resolves a folder to its real path. Links below the repository are not followed.
func placeOf(root, p string) (string, error) {
	if rel, err := filepath.Rel(root, p); err == nil && filepath.IsLocal(rel) {
		return Below(root, p)
	}
	return filepath.EvalSymlinks(p)
}

// WriteFolders returns the folders that hold everything which a can_write list names, because the
// kernel grants folders and does not know patterns: "src/**/*.go" is src. "." is the workspace, which
// the absence of a list and a pattern without a slash mean too.
func WriteFolders(list []string) (folders []string) {
	if list == nil {
		return []string{"."}
	}
	for _, entry := range list {
		if folder := folderOf(strings.TrimPrefix(entry, "./")); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	if slices.Contains(folders, ".") {
		folders = slices.DeleteFunc(folders, func(f string) bool { return f != "." && f[0] != '/' && f != "~" && !strings.HasPrefix(f, "~/") })
	}
	return folders
}

// folderOf returns the folder of one entry of can_write. A path whose last name has a dot is a file.
func folderOf(entry string) string {
	plain := entry
	if at := strings.IndexAny(entry, `*?[{\`); at >= 0 {
		plain = entry[:strings.LastIndexByte(entry[:at], '/')+1]
	}
	parent, name := path.Split(plain)
	switch {
	case parent == "": // a name in any folder, or a pattern for one
		return "."
	case strings.LastIndexByte(name, '.') > 0:
		plain = parent
	}
	return cmp.Or(strings.TrimRight(plain, "/"), "/")
}

// FolderIn creates a folder of the workspace and returns its path. It does not follow links that
// lead out of the workspace. A folder outside must exist.
func FolderIn(workspace, folder string) (string, error) {
	if folder == "~" || strings.HasPrefix(folder, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("can_write names %s: %w", folder, err)
		}
		folder = filepath.Join(home, folder[1:])
	}
	if filepath.IsAbs(folder) {
		real, err := filepath.EvalSymlinks(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("can_write names %s, which does not exist; create it first", folder)
		}
		return real, err
	}
	if folder == "." {
		return workspace, nil
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

const gitFileMax = 4 << 10 // bytes of a file that contains one path

// GitFolders lists what git writes outside of a linked worktree: the worktree's own records, the
// objects and the refs; not hooks or configuration. The workspace's .git file can contain anything,
// so the repository must know the worktree, too. The list is empty if the workspace is not a linked
// worktree.
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
			_ = os.Mkdir(p, 0o755) // new repositories lack it; left out if it cannot be created
		}
		if isFolder(p) {
			places = append(places, p)
		}
	}
	return places
}

func oneLineOf(file string) string {
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return "" // reading a pipe would block
	}
	text, err := ReadUpTo(file, gitFileMax)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// boxedTemp removes the temporary folder of a session that ran in a sandbox.
func (c *SessionController) boxedTemp(m *Slot, session string) {
	if !m.Conf.Sandbox.On {
		return
	}
	if err := os.RemoveAll(c.Hooks.PrivateTemp(session)); err != nil {
		c.log.Warn("the temporary folder of a session could not be removed", "session", session, "error", err)
	}
}
