package places

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/removal"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

const takenBytesMax = 1 << 20 // of one file of settings

// takenFile is a file below State with the content of another.
type takenFile struct {
	from, to string
	once     bool // only where it is missing
	mayMiss  bool
	keep     bool  // where it is missing, what is there already stays
	link     bool  // it is only read, so it may be the same file
	most     int64 // bytes; 0: takenBytesMax
}

// environment sets the variables of the view.
func (m *maker) environment() {
	home, temp, run := m.home, "/tmp", sandbox.RuntimeDir
	if m.landlock() {
		home, temp, run = m.View.Home, m.View.Temp, filepath.Join(m.Own, "runtime")
		m.point = append(m.point, run)
		m.reachable()
		for _, p := range []string{home, temp, run} {
			m.View.Places = append(m.View.Places, sandbox.Place{Path: p, Access: sandbox.Write})
		}
	}
	m.env.set("HOME", home)
	m.env.set("TMPDIR", temp)
	m.env.set("XDG_RUNTIME_DIR", run)
	for variable, prefix := range map[string]string{
		"SSH_AUTH_SOCK": "", "DBUS_SESSION_BUS_ADDRESS": "unix:path=",
		"DOCKER_HOST": "unix://",
	} {
		if value, is := strings.CutPrefix(m.env.get(variable), prefix); is && !slices.Contains(m.Sockets, value) {
			m.env.drop(variable) // it is not there, and a program would wait for it
		}
	}
	m.Places.Env = m.env.list
}

// reachable makes links in the home folder of a session whose mechanism mounts nothing, to what is at the person's.
func (m *maker) reachable() {
	for _, p := range slices.Sorted(keys(m.list)) {
		if !isBelow(p, m.real) || m.list[p].Access == sandbox.Hide || isWithin(p, m.State) || isWithin(p, m.Root) || isWithin(p, m.Dir) {
			continue
		}
		at := filepath.Join(m.View.Home, strings.TrimPrefix(p, m.real))
		taken := false
		for other := range m.links {
			taken = taken || isWithin(at, other) || isWithin(other, at)
		}
		if !taken {
			m.links[at] = p
		}
	}
}

// Make makes what the view needs on disk, but for the places that say so themselves. [End] removes it.
func (p *Places) Make() error {
	s := p.session
	if err := os.MkdirAll(s.Own, 0o700); err != nil {
		return err
	}
	state, err := os.OpenRoot(s.State)
	if err != nil {
		return err
	}
	defer state.Close()
	for _, dir := range p.point {
		if err := point(state, s.State, dir); err != nil {
			return fmt.Errorf("make the folder %s of a session: %w", dir, err)
		}
	}
	for name, text := range p.files {
		if err := put(state, s.State, name, text); err != nil {
			return err
		}
	}
	for _, t := range p.taken {
		if err := t.take(state, s.State); err != nil {
			return fmt.Errorf("give the session its %s: %w", t.to, err)
		}
	}
	for at, to := range p.links {
		if err := link(state, s.State, at, to); err != nil {
			return err
		}
	}
	return p.makeLogins(state)
}

// End takes the tokens that a session has refreshed to the person's files, and removes the session's own folder. It may be called
// again, and in another process. The folders that were made in the workspace go with the session's process; see [sandbox.Place].
func End(own string) error {
	return errors.Join(endLogins(filepath.Dir(filepath.Dir(own))), removal.Tree(own))
}

// point makes a folder below State. What else is at its place, such as a link that a program made, goes.
func point(state *os.Root, at, dir string) error {
	rel, err := filepath.Rel(at, dir)
	if err != nil {
		return err
	}
	part := ""
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		part = filepath.Join(part, name)
		info, err := state.Lstat(part)
		if err == nil && !info.IsDir() {
			err = errors.Join(state.Remove(part), fs.ErrNotExist)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = state.Mkdir(part, 0o700)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// put writes a file below State, in the place of whatever is there.
func put(state *os.Root, at, name string, text []byte) error {
	rel, err := filepath.Rel(at, name)
	if err != nil {
		return err
	}
	if err := point(state, at, filepath.Dir(name)); err != nil {
		return err
	}
	if info, err := state.Lstat(rel); err == nil && info.IsDir() {
		if err := state.RemoveAll(rel); err != nil {
			return err
		}
	}
	temp := rel + ".fairlead-new"
	_ = state.RemoveAll(temp) // of a daemon that was killed
	f, err := state.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return state.Rename(temp, rel)
}

func link(state *os.Root, at, name, to string) error {
	rel, err := filepath.Rel(at, name)
	if err != nil {
		return err
	}
	if err := point(state, at, filepath.Dir(name)); err != nil {
		return err
	}
	if err := state.RemoveAll(rel); err != nil {
		return err
	}
	return state.Symlink(to, rel)
}

// take copies the file.
func (t takenFile) take(state *os.Root, at string) error {
	rel, err := filepath.Rel(at, t.to)
	if err != nil {
		return err
	}
	if t.once {
		if info, err := state.Lstat(rel); err == nil && info.Mode().IsRegular() {
			return nil
		}
	}
	real, err := filepath.EvalSymlinks(t.from)
	if t.mayMiss && errors.Is(err, fs.ErrNotExist) {
		if err = nil; !t.once && !t.keep {
			err = state.RemoveAll(rel) // the person has removed it, too
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	if err != nil {
		return err
	}
	if t.link {
		if err := point(state, at, filepath.Dir(t.to)); err != nil {
			return err
		}
		_ = state.RemoveAll(rel)
		if os.Link(real, t.to) == nil {
			return nil
		}
	}
	text, err := readSmall(real, cmp.Or(t.most, takenBytesMax))
	if err != nil {
		return nil //nolint:nilerr // a program gets on without its settings; a step says what it misses
	}
	return put(state, at, t.to, text)
}

const runFileMax = 64 << 20 // of a file of a run that is copied
