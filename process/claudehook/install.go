package claudehook

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// Place is where hooks and the slash command are installed: a .claude folder, or a plugin's folder.
type Place struct {
	Dir      string // absolute
	Settings string // in Dir: settings.json, settings.local.json; empty: a plugin
	Within   string // links may not lead out of this folder; empty: they may (the user's own)

	Beside []string // other settings files that the program reads; absolute
}

// Project is a project's folder, or with local the part of it that belongs to one user.
func Project(dir string, local bool) Place {
	name, other := "settings.json", "settings.local.json"
	if local {
		name, other = other, name
	}
	at := filepath.Join(dir, ".claude")
	return Place{Dir: at, Settings: name, Within: dir, Beside: []string{filepath.Join(at, other)}}
}

// User is the user's folder, for all projects: CLAUDE_CONFIG_DIR, if it is set.
func User(home, configDir string) Place {
	return Place{Dir: cmp.Or(configDir, filepath.Join(home, ".claude")), Settings: "settings.json"}
}

// Plugin is a folder that becomes a plugin.
func Plugin(dir string) Place { return Place{Dir: dir, Within: dir} }

// Act is what a step does with a file.
type Act string

const (
	Write  Act = "write"  // a new file
	Change Act = "change" // an existing file
	Remove Act = "remove" // a file that install created
	Aside  Act = "aside"  // the user's file is renamed
	Back   Act = "back"   // and gets its name back
	Left   Act = "left"   // not touched; Note says why
)

// Step is one file of an installation.
type Step struct {
	Act  Act
	Path string
	To   string // Aside, Back: the other name
	Text []byte // Write, Change
	Note string
	mode fs.FileMode
	top  string // the folder that is removed with its last file, and those below it
}

// aside is the suffix of the user's own files while Fairlead's files have their names.
const aside = ".before-fairlead"

// plan collects steps.
type plan struct {
	place Place
	steps []Step
	err   error
}

func (p *plan) step(s Step) {
	s.top = p.place.Dir
	p.steps = append(p.steps, s)
}

// Install returns the steps that install p's hooks; none if there is nothing to do.
func Install(place Place, p Program) ([]Step, error) {
	is := &plan{place: place}
	if place.Settings == "" {
		is.file(pluginFile, pluginText)
		is.hooks("hooks/hooks.json", p)
	} else {
		is.hooks(place.Settings, p)
	}
	is.command()
	is.beside(p)
	return is.steps, is.err
}

// beside names what other settings files do to these: disable all hooks, or call another Fairlead program, so
// that each input would be recorded twice.
func (p *plan) beside(program Program) {
	for _, path := range append([]string{filepath.Join(p.place.Dir, p.place.Settings)}, p.place.Beside...) {
		text, _, err := readSmall(path)
		switch {
		case err != nil:
		case silenced(text):
			p.step(Step{
				Act: Left, Path: path,
				Note: "it has disableAllHooks, so no hook is called and nothing is enforced; remove that setting",
			})
		case path != filepath.Join(p.place.Dir, p.place.Settings) && otherHooks(text, program):
			p.step(Step{
				Act: Left, Path: path,
				Note: "its hooks call another Fairlead program, and each input would be recorded twice; install there again, or uninstall there",
			})
		}
	}
}

// Uninstall returns the steps that restore everything as it was before.
func Uninstall(place Place) ([]Step, error) {
	is := &plan{place: place}
	name := cmp.Or(place.Settings, "hooks/hooks.json")
	is.noHooks(name)
	is.noCommand()
	if place.Settings == "" {
		is.noFile(pluginFile, pluginText)
	}
	return is.steps, is.err
}

const pluginFile = ".claude-plugin/plugin.json"

const pluginText = `{
  "name": "fairlead",
  "description": "Sessions in which MAIN coordinates and agents do the work, with enforced permissions",
  "homepage": "https://github.com/fairlead-dev/fairlead"
}
`

// read returns a file's text and its real path. A nil text: the file does not exist.
func (p *plan) read(name string) (path string, text []byte, mode fs.FileMode, ok bool) {
	path = filepath.Join(p.place.Dir, filepath.FromSlash(name))
	if p.err != nil {
		return path, nil, 0, false
	}
	real, err := p.place.real(path)
	if err != nil {
		p.err = fmt.Errorf("find %s: %w", path, err)
		return path, nil, 0, false
	}
	text, mode, err = readSmall(real)
	if errors.Is(err, fs.ErrNotExist) {
		return real, nil, 0o644, true
	}
	if err != nil {
		p.err = fmt.Errorf("read %s: %w", path, err)
		return path, nil, 0, false
	}
	return real, text, mode, true
}

// real follows links where that is allowed.
func (p Place) real(path string) (string, error) {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Lstat(at); err == nil {
				return "", errors.New("it is a link whose target does not exist; remove it, or create the target")
			}
			rest = filepath.Join(filepath.Base(at), rest)
			if at == filepath.Dir(at) {
				return "", err
			}
			continue
		}
		if err != nil {
			return "", err
		}
		real = filepath.Join(real, rest)
		if p.Within == "" {
			return real, nil
		}
		within, err := filepath.EvalSymlinks(p.Within)
		if errors.Is(err, fs.ErrNotExist) {
			return real, nil // it is created below that folder
		}
		if err != nil {
			return "", err
		}
		if rel, err := filepath.Rel(within, real); err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return "", fmt.Errorf("a link leads out of %s, to %s; put a file there instead", p.Within, real)
		}
		return real, nil
	}
}

// readSmall reads a regular file of a size that people write.
func readSmall(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // the caller adds the context
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // the caller adds the context
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, settingsBytesMax+1))
	if err == nil && len(text) > settingsBytesMax {
		err = fmt.Errorf("it has more than %d bytes", settingsBytesMax)
	}
	if text == nil {
		text = []byte{}
	}
	return text, info.Mode().Perm(), err
}

// hooks adds Fairlead's hooks to a settings file, and keeps a copy of the old text.
func (p *plan) hooks(name string, program Program) {
	path, text, mode, ok := p.read(name)
	if !ok {
		return
	}
	with, err := AddHooks(text, program)
	if err != nil {
		p.err = fmt.Errorf("add hooks to %s: %w; the file is unchanged", path, err)
		return
	}
	switch {
	case text == nil:
		p.step(Step{Act: Write, Path: path, Text: with, mode: mode})
	case string(with) != string(text):
		if had, err := HasHooks(text); err == nil && !had {
			p.step(Step{Act: Write, Path: path + aside, Text: text, mode: mode, Note: "a copy of the previous file"})
		}
		p.step(Step{Act: Change, Path: path, Text: with, mode: mode})
	}
}

func (p *plan) noHooks(name string) {
	path, text, mode, ok := p.read(name)
	if !ok || text == nil {
		return
	}
	left, err := RemoveHooks(text)
	if err != nil {
		p.err = fmt.Errorf("remove the hooks from %s: %w; remove those that end in %q by hand", path, err, strings.TrimSpace(mark))
		return
	}
	switch {
	case left == nil:
		p.step(Step{Act: Remove, Path: path})
	case string(left) != string(text):
		p.step(Step{Act: Change, Path: path, Text: left, mode: mode})
	}
	kept, _, err := readSmall(path + aside)
	switch {
	case err != nil:
	case left != nil && string(kept) == string(left):
		p.step(Step{Act: Remove, Path: path + aside})
	default:
		p.step(Step{
			Act: Left, Path: path + aside,
			Note: "the file was changed since this copy was made; delete the copy when you no longer need it",
		})
	}
}

// command installs the slash command. An existing file that Fairlead did not write belongs to the user.
func (p *plan) command() {
	p.sealed("commands/"+CommandName+".md", sealed(commandBody))
}

func (p *plan) sealed(name, wanted string) {
	path, text, mode, ok := p.read(name)
	switch {
	case !ok || string(text) == wanted:
		return
	case text == nil:
	case untouched(string(text)):
		p.step(Step{Act: Change, Path: path, Text: []byte(wanted), mode: mode})
		return
	default:
		if _, err := os.Lstat(path + aside); err == nil {
			p.err = fmt.Errorf("%s was not written by Fairlead, and %s exists already; move one of the two", path, path+aside)
			return
		}
		p.step(Step{Act: Aside, Path: path, To: path + aside, Note: "it existed before; uninstall restores it"})
	}
	p.step(Step{Act: Write, Path: path, Text: []byte(wanted), mode: mode})
}

func (p *plan) noCommand() {
	path, text, _, ok := p.read("commands/" + CommandName + ".md")
	if !ok {
		return
	}
	for _, other := range p.place.Beside {
		settings, _, err := readSmall(other)
		if has, wrong := HasHooks(settings); filepath.Dir(other) == p.place.Dir && err == nil && wrong == nil && has {
			return // other settings need it
		}
	}
	if text != nil && !untouched(string(text)) {
		if strings.Contains(string(text), sealBegin) {
			p.step(Step{Act: Left, Path: path, Note: "it was changed since Fairlead wrote it; delete it when you no longer need it"})
		}
		return
	}
	if text != nil {
		p.step(Step{Act: Remove, Path: path})
	}
	if _, err := os.Lstat(path + aside); err == nil {
		p.step(Step{Act: Back, Path: path + aside, To: path})
	}
}

// file writes a whole file, and refuses to overwrite another one.
func (p *plan) file(name, wanted string) {
	path, text, mode, ok := p.read(name)
	switch {
	case !ok || string(text) == wanted:
	case text != nil:
		p.err = fmt.Errorf("%s exists already and belongs to another plugin; choose another folder", path)
	default:
		p.step(Step{Act: Write, Path: path, Text: []byte(wanted), mode: mode})
	}
}

func (p *plan) noFile(name, wanted string) {
	path, text, _, ok := p.read(name)
	switch {
	case !ok || text == nil:
	case string(text) == wanted:
		p.step(Step{Act: Remove, Path: path})
	default:
		p.step(Step{Act: Left, Path: path, Note: "it was changed since Fairlead wrote it; delete it when you no longer need it"})
	}
}

// Apply carries out the steps. Each file is replaced atomically; after an error, calling it again does the
// remaining steps.
func Apply(steps []Step) error {
	for _, s := range steps {
		if err := s.apply(); err != nil {
			return fmt.Errorf("%s %s: %w", s.Act, s.Path, err)
		}
	}
	return nil
}

func (s Step) apply() error {
	switch s.Act {
	case Write, Change:
		if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil { //nolint:gosec // as public as the repository
			return err //nolint:wrapcheck // the caller adds the context
		}
		return file.Replace(s.Path, s.Text, s.mode)
	case Remove:
		if err := os.Remove(s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err //nolint:wrapcheck // the caller adds the context
		}
		s.emptied()
	case Aside, Back:
		return os.Rename(s.Path, s.To) //nolint:wrapcheck // the caller adds the context
	case Left:
	}
	return nil
}

// emptied removes folders that a removed file left empty.
func (s Step) emptied() {
	for dir := filepath.Dir(s.Path); dir == s.top || strings.HasPrefix(dir, s.top+"/"); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil { // something else is in it
			return
		}
	}
}
