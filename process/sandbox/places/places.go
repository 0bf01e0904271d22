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
	"syscall"

	"github.com/fairlead-dev/fairlead/files/login"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// Session is what is known about a session before its view is made. All paths are absolute.
type Session struct {
	Agent   string
	Driver  string   // the word of fairlead.yaml
	Command []string // the agent's, as it is configured
	Argv    []string // what is started
	Env     []string // and its environment
	Dir     string   // the workspace
	Root    string   // the folder of fairlead.yaml
	Exe     string   // the program fairlead
	State   string   // .fairlead: it is never visible
	Own     string   // the session's own folder, below State

	CanWrite    []string // of the permissions; nil: everything in the workspace
	CannotWrite []string
	Read        []string // of the key sandbox
	Write       []string
	Hide        []string
	Sockets     []string
	ReadOnly    bool // the workspace is only read
	Brief       bool // it starts the programs of Command and builds nothing, so it needs no others and no caches

	Clone    string   // a clone that Fairlead made for this work: its .git is the agent's; empty: none
	Others   []string // workspaces of other agents
	Needs    []string // folders that the session writes, beside all that the key says
	Run      Run
	Name     string // of the person, for commits
	Mail     string
	Ability  sandbox.Ability
	Canaries sandbox.Canaries
}

// Run is what a step of a run needs of the run's folder.
type Run struct {
	Dir       string   // the run's folder; empty: the session is no step
	Reports   string   // the folder of its report
	Artifacts string   // the folder of its artifacts
	Files     []string // files in the run's folder that the step reads
	Folders   []string // and folders
}

// Places is a view with what belongs to it.
type Places struct {
	View     sandbox.View
	Env      []string // the session's environment
	Patterns []string // what the permissions name and no place holds: the rules alone deny it
	Said     []string // what was left out, and why

	session Session
	point   []string          // folders below State that have to exist
	files   map[string][]byte // files below State, by path
	taken   []takenFile       // files below State with the content of others
	links   map[string]string // links below State: from the path to what they lead to
	mounts  []string          // files below State on which another one is mounted
	unused  []string          // files below State that were in mounts
	logins  []login.Store
}

// maker collects the places of one session.
type maker struct {
	Session
	*Places
	list    map[string]sandbox.Place
	home    string // as it is written
	real    string // the home folder without links
	at      string // its place in the view
	env     environ
	unseen  map[string]string // programs that are not visible, and why
	led     int               // folders that links on PATH lead to
	aliases [][2]string       // paths as they are written, with the real ones
	theirs  []string          // the real paths of Others
	single  map[string]bool   // what of State is a place and no folder
}

// Of decides what a session sees.
func Of(s Session) (*Places, error) {
	p := &Places{session: s, files: map[string][]byte{}, links: map[string]string{}}
	m := &maker{
		Session: s, Places: p, list: map[string]sandbox.Place{}, unseen: map[string]string{}, single: map[string]bool{},
		env: environOf(s.Env),
	}
	var err error
	if m.Root, err = filepath.EvalSymlinks(s.Root); err != nil {
		return nil, fmt.Errorf("find the folder of fairlead.yaml: %w", err)
	}
	if m.Dir, err = settled(s.Root, m.Root, s.Dir); err != nil {
		return nil, fmt.Errorf("find its workspace: %w", err)
	}
	m.homes()
	m.repository()
	if err := m.workspace(); err != nil {
		return nil, err
	}
	m.private()
	if err := m.configured(); err != nil {
		return nil, err
	}
	m.git()
	m.settings()
	m.run()
	m.toolchains()
	m.program()
	if !m.Brief {
		m.caches()
	}
	if err := m.finish(); err != nil {
		return nil, err
	}
	return p, nil
}

// landlock reports whether nothing can be mounted: a folder is then at its own path, and only there.
func (m *maker) landlock() bool { return m.Ability.By != sandbox.ByNamespaces }

// add takes a place. One that was there before at the same path is replaced.
func (m *maker) add(p sandbox.Place) {
	if p.From == p.Path {
		p.From = ""
	}
	m.list[p.Path] = p
}

func (m *maker) read(p string) { m.add(sandbox.Place{Path: p, Access: sandbox.Read}) }

// homes decides where the home folder is in the view: at the path of the person's own, so that paths in settings stay right.
func (m *maker) homes() {
	m.home = filepath.Clean(m.env.get("HOME"))
	if !filepath.IsAbs(m.home) { // a service may have none
		m.home = anonymous
	}
	m.real = m.home
	if real, err := filepath.EvalSymlinks(m.home); err == nil {
		m.real = real
	}
	m.at = m.real
	if m.at == m.Dir ||
		slices.ContainsFunc(noHomes, func(p string) bool { return m.at == p || p != "/tmp" && p != "/" && isBelow(m.at, p) }) {
		m.home, m.at = anonymous, anonymous
	}
	m.View.Home, m.View.Temp, m.View.HomeAt = filepath.Join(m.Own, "home"), filepath.Join(m.Own, "tmp"), m.at
	m.point = append(m.point, m.View.Home, m.View.Temp)
	m.View.Dir = m.Dir
	m.known(m.home, m.at)
	m.known(filepath.Clean(m.Session.Root), m.Root)
	m.known(filepath.Clean(m.Session.Dir), m.Dir)
	m.files[filepath.Join(m.View.Home, ".gitconfig")] = m.gitconfig()
}

// known notes that a folder is known by another path, too, on links of a person: it is there in the view as well.
func (m *maker) known(as, real string) {
	if as != real && filepath.IsAbs(as) {
		m.aliases = append(m.aliases, [2]string{as, real})
	}
}

// noHomes cannot be home folders of a view: it has its own there.
var noHomes = []string{"/", "/proc", "/sys", "/dev", "/run", "/tmp"}

// anonymous is the home folder of a session whose person has none that can be used.
const anonymous = "/home/agent"

// wide reports whether a folder cannot be a place as a whole, because the home folder is in it.
func (m *maker) wide(p string) bool {
	return p == "/" || isWithin(m.real, p) || isWithin(m.home, p)
}

// repository makes the files of the repository visible, and of the team's folder, where the workspace is a part of them.
func (m *maker) repository() {
	for _, p := range []string{m.Root, topOf(m.Dir)} {
		if p != "" && isWithin(m.Dir, p) && !m.wide(p) {
			m.read(p)
		}
	}
}

// belongs refuses a workspace of another user where the view can show one user only: git and other programs would see an unknown
// owner, and nothing could be written.
func (m *maker) belongs() error {
	info, err := os.Lstat(m.Dir)
	if err != nil || m.landlock() || !m.Ability.Users {
		return err
	}
	if is, known := info.Sys().(*syscall.Stat_t); known && int(is.Uid) != os.Geteuid() {
		return fmt.Errorf("the workspace %s belongs to user %d, and Fairlead runs as user %d; run Fairlead as that user, or give it the folder with chown", m.Dir, is.Uid, os.Geteuid())
	}
	return nil
}

// workspace adds the workspace, or what of it may be written.
func (m *maker) workspace() error {
	if err := m.belongs(); err != nil {
		return err
	}
	folders := WriteFolders(m.CanWrite)
	whole := slices.Contains(folders, ".")
	access := sandbox.Read
	if whole && !m.ReadOnly {
		access = sandbox.Write
	}
	m.add(sandbox.Place{Path: m.Dir, Access: access})
	m.Patterns = partial(m.CanWrite)
	for _, entry := range m.CannotWrite {
		folder, is := wholeFolder(entry)
		if !is {
			m.Patterns = append(m.Patterns, entry)
			continue
		}
		at, missing, err := m.inWorkspace(folder)
		if err != nil || !isBelow(at, m.Dir) {
			m.Patterns = append(m.Patterns, entry)
			continue
		}
		m.add(sandbox.Place{Path: at, Access: sandbox.Read, Make: missing})
	}
	if m.ReadOnly {
		return nil
	}
	for _, folder := range folders {
		at, missing, err := m.inWorkspace(folder)
		switch {
		case err != nil:
			return err
		case missing && !isWithin(at, m.Dir):
			return fmt.Errorf("can_write names %s, which does not exist; create it first", folder)
		case m.wide(at) && !isWithin(m.Dir, at):
			return fmt.Errorf("can_write names %s, which is or contains the home folder; name a folder in it", folder)
		}
		if before, is := m.list[at]; is && before.Access == sandbox.Read && at != m.Dir && !isWithin(m.Dir, at) {
			continue // cannot_write wins
		}
		if at != m.Dir {
			m.add(sandbox.Place{Path: at, Access: sandbox.Write, Make: missing})
		}
	}
	return nil
}

// inWorkspace is the path of a folder that the permissions name. In the workspace no link is followed: the agent can make one.
func (m *maker) inWorkspace(folder string) (at string, missing bool, err error) {
	if folder == "~" || strings.HasPrefix(folder, "~/") {
		folder = filepath.Join(m.real, folder[1:])
	}
	if filepath.IsAbs(folder) && !isWithin(folder, m.Dir) {
		at, err = filepath.EvalSymlinks(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return folder, true, nil
		}
		return at, false, err
	}
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(m.Dir, folder)
	}
	switch info, err := linkless(m.Dir, folder); {
	case errors.Is(err, fs.ErrNotExist):
		return folder, true, nil
	case err != nil:
		return folder, false, fmt.Errorf("can_write names %s, which cannot be used: %w", folder, err)
	case !info.IsDir():
		return folder, false, fmt.Errorf("the permissions name %s as a folder, and it is a file", folder)
	}
	return folder, false, nil
}

// private hides what is Fairlead's own, and the folders of other agents and of other tasks.
func (m *maker) private() {
	for _, p := range m.Others {
		other, err := settled(m.Session.Root, m.Root, p)
		if err != nil {
			continue // it is not there
		}
		if m.theirs = append(m.theirs, other); isWithin(m.Dir, other) {
			continue // this workspace is a part of it
		}
		if isWithin(other, m.Dir) {
			m.read(other)
		} else {
			m.add(sandbox.Place{Path: other, Access: sandbox.Hide})
		}
	}
	for _, top := range []string{m.Root, topOf(m.Dir)} {
		for _, name := range []string{".agents/runs", ".agents/worktrees"} {
			at := filepath.Join(top, name)
			_, err := os.Lstat(at)
			if top != "" && (err == nil || top == m.Root) {
				m.add(sandbox.Place{Path: at, Access: sandbox.Hide, Make: err != nil})
			}
		}
	}
	if state, err := filepath.EvalSymlinks(m.State); err == nil {
		m.add(sandbox.Place{Path: state, Access: sandbox.Hide})
	}
}

// configured adds what the key sandbox says.
func (m *maker) configured() error {
	var faults []error
	open := func(p, key string, access sandbox.Access) {
		real, err := m.settle(p)
		if err != nil {
			faults = append(faults, fmt.Errorf("sandbox.%s names %s, which does not exist or cannot be reached; create it first", key, p))
			return
		}
		if m.wide(real) && real != m.Dir {
			faults = append(faults, fmt.Errorf("sandbox.%s names %s, which is or contains the home folder; name a folder in it", key, p))
			return
		}
		m.add(sandbox.Place{Path: real, Access: access})
		m.known(p, real)
	}
	for _, p := range m.Read {
		open(p, "read", sandbox.Read)
	}
	for _, p := range m.Session.Write {
		open(p, "write", sandbox.Write)
	}
	for _, p := range m.Needs {
		if real, err := m.settle(p); err == nil { // what a session needs exists before it starts
			m.add(sandbox.Place{Path: real, Access: sandbox.Write})
		}
	}
	for _, p := range m.Hide {
		real, err := m.settle(p)
		m.add(sandbox.Place{Path: real, Access: sandbox.Hide, Make: err != nil})
	}
	m.View.Sockets = slices.Clone(m.Sockets)
	return errors.Join(faults...)
}

// settle resolves the links of a path that a person has written. Below the workspace there are none: the agent could have made
// them.
func (m *maker) settle(p string) (string, error) {
	if at, within := m.entering(p); within {
		_, err := linkless(m.Dir, at)
		return at, err
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return p, err
	}
	return real, nil
}

// entering finds where a path enters the workspace, on links of a person. It returns the workspace with the rest as it is.
func (m *maker) entering(p string) (at string, within bool) {
	if isWithin(p, m.Dir) {
		return p, true
	}
	for i := 1; i < len(p); i++ {
		if p[i] != filepath.Separator {
			continue
		}
		parent, err := filepath.EvalSymlinks(p[:i])
		if err != nil {
			return "", false
		}
		if isWithin(parent, m.Dir) {
			return parent + p[i:], true
		}
	}
	return "", false
}

// settings makes .claude read-only: what is there decides what runs in later sessions, and outside.
func (m *maker) settings() {
	for _, top := range []string{m.Dir, topOf(m.Dir), m.Root} {
		if top == "" || m.covering(top).Access != sandbox.Write {
			continue
		}
		at := filepath.Join(top, ".claude")
		if _, is := m.list[at]; is {
			continue
		}
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			m.add(sandbox.Place{Path: at, Access: sandbox.Read, Make: true})
		case err == nil && info.IsDir():
			m.read(at)
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			m.Said = append(m.Said, at+" is a symbolic link, which no place holds; make it a folder")
			if real, err := filepath.EvalSymlinks(at); err == nil && isBelow(real, m.Dir) {
				m.read(real)
			}
		}
	}
}

// covering is the innermost place that contains a path, or the path's own; the zero place: none does.
func (m *maker) covering(p string) sandbox.Place {
	for at := p; ; at = filepath.Dir(at) {
		if found, is := m.list[at]; is {
			return found
		}
		if at == "/" {
			return sandbox.Place{}
		}
	}
}

// visible reports whether a path is in the view without a place of its own.
func (m *maker) visible(p string) bool {
	covered := m.covering(p)
	return covered.Path != "" && covered.Access != sandbox.Hide || isSystem(p)
}

// finish leaves out what says nothing new, gives each hidden folder that has a place in it another
// form, and makes places of the folders between a writable place and what is protected in it.
func (m *maker) finish() error {
	m.prune()
	if !m.landlock() {
		m.cover()
		m.guard()
		m.alias()
		m.points()
	}
	for _, p := range slices.Sorted(keys(m.list)) {
		m.View.Places = append(m.View.Places, m.list[p])
	}
	m.View.Canaries = m.Canaries
	m.View = m.Ability.Apply(m.View)
	m.environment()
	slices.Sort(m.Patterns)
	m.Patterns = slices.Compact(m.Patterns)
	return nil
}

// prune leaves out what has the access that the place around it has, and what is hidden where nothing is to be seen.
func (m *maker) prune() {
	for _, p := range slices.SortedFunc(keys(m.list), func(a, b string) int { return cmp.Compare(len(a), len(b)) }) {
		place := m.list[p]
		around := m.covering(filepath.Dir(p))
		missing := around.Path == ""
		if isBelow(p, m.at) && !isBelow(around.Path, m.at) { // in the session's own home folder, whatever is around that
			missing, around = true, sandbox.Place{}
		}
		switch {
		case place.Access == sandbox.Hide && (missing && !isSystem(p) || around.Access == sandbox.Hide || around.From != ""),
			place.Access == around.Access && place.From == "" && around.From == "" && (!place.Make || place.Access == sandbox.Write),
			place.Access == sandbox.Read && place.From == "" && missing && isSystem(p):
			delete(m.list, p)
		case isBelow(place.From, m.State) && !isWithin(p, m.at) && around.Access != sandbox.Hide && !isBelow(around.From, m.State) &&
			(!missing || isSystem(p)):
			if _, err := os.Lstat(p); err != nil {
				delete(m.list, p) // it would be in a folder of the machine that has no such name
			}
		case place.Make && place.Access == sandbox.Hide && around.Access != sandbox.Write:
			if _, err := os.Lstat(p); err != nil {
				delete(m.list, p) // it is missing, and the agent cannot make it
			}
		}
	}
}

// cover replaces each hidden folder in which there is another place: an empty folder of the session with the points for these
// stands there.
func (m *maker) cover() {
	for _, p := range slices.Sorted(keys(m.list)) {
		if m.list[p].Access != sandbox.Hide {
			continue
		}
		for q, other := range m.list {
			if isBelow(q, p) && other.Access != sandbox.Hide && m.covering(filepath.Dir(q)).Path == p {
				m.list[p] = sandbox.Place{
					Path: p, From: filepath.Join(m.Own, "hidden", strings.ReplaceAll(strings.Trim(p, "/"), "/", "+")),
					Access: sandbox.Read,
				}
				break
			}
		}
	}
}

// points notes the mount points in folders below State.
func (m *maker) points() {
	for p, place := range m.list {
		if isBelow(place.From, m.State) && !m.single[place.From] {
			m.point = append(m.point, place.From)
		}
		if around := m.covering(filepath.Dir(p)); isBelow(around.From, m.State) {
			at := filepath.Join(around.From, strings.TrimPrefix(p, around.Path))
			if info, err := os.Stat(cmp.Or(place.From, p)); m.single[place.From] || err == nil && !info.IsDir() {
				m.mounts = append(m.mounts, at)
			} else {
				m.point = append(m.point, at)
			}
		}
	}
}

// guard makes a place of each folder between a writable place and one in it that is not as writable. A mount point cannot be
// renamed, so no other folder takes the place of what is protected.
func (m *maker) guard() {
	for _, p := range slices.Sorted(keys(m.list)) {
		place := m.list[p]
		if place.Access != sandbox.Read && place.Access != sandbox.Hide {
			continue // what is written there counts nowhere else
		}
		around := m.covering(filepath.Dir(p))
		if isBelow(p, m.at) && !isBelow(around.Path, m.at) {
			around = sandbox.Place{Path: m.at, From: m.View.Home, Access: sandbox.Write}
		}
		if around.Access != sandbox.Write {
			continue
		}
		for at := filepath.Dir(p); isBelow(at, around.Path); at = filepath.Dir(at) {
			between := sandbox.Place{Path: at, Access: sandbox.Write}
			if around.From != "" {
				between.From = filepath.Join(around.From, strings.TrimPrefix(at, around.Path))
			} else if _, err := os.Lstat(at); err != nil {
				between.Make = true
			}
			m.list[at] = between
		}
	}
}

// alias repeats the places below a folder that is known by another path.
func (m *maker) alias() {
	for _, pair := range m.aliases {
		as, real := pair[0], pair[1]
		if m.visible(as) {
			continue // the link itself is there
		}
		if real == m.at {
			m.list[as] = sandbox.Place{Path: as, From: m.View.Home, Access: sandbox.Write}
		}
		for _, p := range slices.Sorted(keys(m.list)) {
			if place := m.list[p]; isWithin(p, real) {
				place.From, place.Path, place.Make = cmp.Or(place.From, place.Path), as+strings.TrimPrefix(p, real), false
				m.list[place.Path] = place
			}
		}
		// What is known by another path is a part of a place, or of the system.
		around := m.covering(real)
		if _, is := m.list[as]; !is && !m.hidden(as) && m.visible(real) && around.Access != sandbox.Write {
			m.list[as] = sandbox.Place{
				Path: as,
				From: filepath.Join(cmp.Or(around.From, around.Path), strings.TrimPrefix(real, around.Path)), Access: sandbox.Read,
			}
		}
	}
}

// Writes reports whether the session can write a file of the machine, by its real path.
func (p *Places) Writes(file string) bool {
	inner := p.inner(file)
	return inner.Access == sandbox.Write && inner.From == ""
}

// Sees reports whether a file of the machine is in the view, by its path.
func (p *Places) Sees(file string) bool {
	inner := p.inner(file)
	return inner.Path == "" && isSystem(file) || inner.Path != "" && inner.From == "" && inner.Access != sandbox.Hide
}

// inner is the innermost place that contains a path; the zero place: none does.
func (p *Places) inner(file string) (inner sandbox.Place) {
	for _, place := range p.View.Places {
		if isWithin(file, place.Path) && len(place.Path) > len(inner.Path) {
			inner = place
		}
	}
	return inner
}
