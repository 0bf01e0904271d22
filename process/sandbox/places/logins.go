package places

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/fairlead-dev/fairlead/files/login"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// unset is the folder, in a session's own, of empty files and folders for settings that the person does not have.
const unset = "unset"

// login gives the program the files with which it is signed in, from the store that all sessions share. It returns the folder that is
// at the program's: the agent's own, or the store itself.
func (m *maker) login(p program, person, own string) (folder string) {
	if p.login == "" {
		return own
	}
	if m.landlock() { // no file can be at two paths; the store follows the person's file
		m.logins = append(m.logins, login.Beside(m.State, p.login, person, own))
		return own
	}
	store := login.In(m.State, p.login, person, !p.renames)
	m.logins = append(m.logins, store)
	if p.renames {
		return store.Folder
	}
	there := store.Names()
	for name := range login.Files(p.login) {
		if slices.Contains(there, name) {
			from := filepath.Join(store.Folder, name)
			m.single[from] = true
			m.add(sandbox.Place{Path: filepath.Join(person, name), From: from, Access: sandbox.Write})
		} else {
			m.unused = append(m.unused, filepath.Join(own, name))
		}
	}
	return own
}

// sealed puts the person's settings over those in a folder that agents share, read-only. One that the person does not have is empty,
// so that no agent makes it for another.
func (m *maker) sealed(p program, person string) {
	for _, name := range p.settings {
		at := filepath.Join(person, name)
		own := filepath.Join(m.Own, unset, name)
		m.files[own] = nil
		if filepath.Ext(name) == ".json" {
			m.files[own] = []byte("{}\n")
		}
		m.taken = append(m.taken, takenFile{from: at, to: own, mayMiss: true, keep: true})
		m.single[own] = true
		m.add(sandbox.Place{Path: at, From: own, Access: sandbox.Read})
	}
	for _, name := range p.folders {
		m.add(sandbox.Place{Path: filepath.Join(person, name), From: filepath.Join(m.Own, unset, name), Access: sandbox.Read})
	}
}

// makeLogins makes the stores, and the files on which those of a store or of settings are mounted.
func (p *Places) makeLogins(state *os.Root) error {
	for _, at := range p.mounts {
		if err := mountPoint(state, p.session.State, at); err != nil {
			return fmt.Errorf("make the file %s of a session: %w", at, err)
		}
	}
	for _, at := range p.unused { // a program takes an empty file for a broken login
		if rel, err := filepath.Rel(p.session.State, at); err == nil {
			if info, err := state.Lstat(rel); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
				_ = state.Remove(rel)
			}
		}
	}
	for _, store := range p.logins {
		if err := store.Keep(); err != nil {
			return err
		}
		if _, err := store.Sync(true); err != nil { // the daemon says what it does not take
			return err
		}
	}
	return nil
}

// mountPoint makes an empty file. One that is there is not replaced: in the view of another session, that would take the mount away.
func mountPoint(state *os.Root, at, name string) error {
	rel, err := filepath.Rel(at, name)
	if err != nil {
		return err
	}
	if err := point(state, at, filepath.Dir(name)); err != nil {
		return err
	}
	if info, err := state.Lstat(rel); err == nil && !info.Mode().IsRegular() {
		if err := state.RemoveAll(rel); err != nil {
			return err
		}
	}
	// A program of this agent may run, and replace it by a link meanwhile.
	f, err := os.OpenFile(filepath.Join(at, rel), os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return errors.Join(f.Truncate(0), f.Close())
	}
	return f.Close()
}

// endLogins takes what was refreshed to the person's files.
func endLogins(state string) error {
	stores, err := login.Stores(state)
	faults := []error{err}
	for _, store := range stores {
		_, err := store.Sync(false)
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
