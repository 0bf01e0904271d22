package dispatchfolder

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Options are Create's parameters besides the setup.
type Options struct {
	Repo  string    // the project's folder, which has the default place and the register
	Home  string    // the user's home; empty: os.UserHomeDir
	At    time.Time // the current time; zero: time.Now
	Actor change.Actor
	Tools []string // names or globs of tools that MAIN may use although they are unknown, such as mcp__docs__*

	NoCommits bool // agents may not run git add and git commit either (policy.Where.Commits)
}

// defaultBelow is the default place in a repository (seed 002, Default Values).
const defaultBelow = ".claude/agent-state-machine"

// Create creates a dispatch folder and starts it (D1). An empty path is the seed's default,
// REPO/.claude/agent-state-machine/YYYYMMDD_HHMMSS (with _2 and so on if that exists). An existing path is
// refused (*table.Refusal). Empty Setup.Agents means Agents(repo, home); empty Setup.ForMain and ForAll
// mean the seed's. The folder is registered, so that List and ByProgram find it.
func Create(path string, start dispatch.Setup, opt Options) (*Folder, dispatch.Dispatch, error) {
	var none dispatch.Dispatch
	opt.At = cmp.Or(opt.At, time.Now()).UTC().Truncate(time.Microsecond)
	if opt.Home == "" {
		opt.Home, _ = os.UserHomeDir() // none: only the project's agents are found
	}
	path = InHome(path, opt.Home)
	start, err := completed(start, opt)
	if err != nil {
		return nil, none, err
	}
	if _, err := (&dispatch.Dispatch{}).Decide(opt.At, dispatch.Start{Setup: start}); err != nil {
		return nil, none, err // before anything is created
	}
	f, err := makeFolder(path, opt)
	if err != nil {
		return nil, none, err
	}
	start.Path = cmp.Or(start.Path, path, f.path)
	if err := f.register(opt.Repo, start.Program); err != nil {
		return nil, none, err
	}
	s, err := f.begin(start, opt)
	if err != nil {
		if start.Program != "" {
			f.forget(start.Program) // otherwise every call of that program would be blocked
		}
		return nil, s, fmt.Errorf("begin a session in %s: %w; the incomplete folder may be removed", f.path, err)
	}
	return f, s, nil
}

// completed fills in defaults.
func completed(start dispatch.Setup, opt Options) (dispatch.Setup, error) {
	start.Mode = cmp.Or(start.Mode, dispatch.Orchestrator)
	if len(start.ForMain) == 0 {
		start.ForMain = rulesText(policy.MainRules())
	}
	if len(start.ForAll) == 0 {
		start.ForAll = rulesText(policy.AgentRules())
	}
	if len(start.Agents) == 0 {
		found, _, err := Agents(opt.Repo, opt.Home)
		if err != nil {
			return start, err
		}
		start.Agents = found
	}
	start.Agents = fitted(start.Agents)
	return start, nil
}

// fitted returns the descriptions by name, shortened so that all of them fit into the first line.
func fitted(agents []dispatch.Description) []dispatch.Description {
	agents = slices.Clone(agents)
	slices.SortStableFunc(agents, func(a, b dispatch.Description) int { return strings.Compare(a.Name, b.Name) })
	agents = slices.CompactFunc(agents, func(a, b dispatch.Description) bool { return a.Name == b.Name })
	if len(agents) == 0 {
		return agents
	}
	most := min(describedOneMax, describedMax/len(agents))
	for i := range agents {
		agents[i].Text = clip.Within(agents[i].Text, most)
	}
	return agents
}

// InHome returns a path as a user meant it: ~ and ~/ stand for the home folder. A shell does not replace them in quotes, or after
// --path=.
func InHome(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && home != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(home, rest)
	}
	return path
}

// Exists returns a function that reports whether a path exists, which a user's text names: relative to dir, or in the home folder. An empty
// home is os.UserHomeDir.
func Exists(dir, home string) func(path string) bool {
	if home == "" {
		home, _ = os.UserHomeDir() // none: nothing in it is found
	}
	return func(path string) bool {
		if path = InHome(path, home); !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		_, err := os.Lstat(path)
		return err == nil
	}
}

// makeFolder creates the folder; the process that creates it owns the number.
func makeFolder(path string, opt Options) (*Folder, error) {
	fresh := path == ""
	if fresh {
		if opt.Repo == "" {
			return nil, errors.New("begin a session: neither a path nor a repository is known; give --path")
		}
		path = filepath.Join(opt.Repo, filepath.FromSlash(defaultBelow), opt.At.Local().Format("20060102_150405"))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("begin a session: find %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o755); err != nil {
		return nil, fmt.Errorf("begin a session: create the parent folder: %w; give another --path", err)
	}
	for n, name := 2, abs; ; n++ {
		point("mkdir " + name)
		err := os.Mkdir(name, 0o755)
		switch {
		case err == nil:
			return &Folder{path: name}, nil
		case errors.Is(err, fs.ErrExist) && fresh && n < 1000:
			name = fmt.Sprintf("%s_%d", abs, n)
		case errors.Is(err, fs.ErrExist):
			return nil, &table.Refusal{
				Subject: name, Event: string(dispatch.Started), State: "there", Row: "D1",
				Reason: "the path exists already, and a session never uses an existing folder; give another --path",
			}
		default:
			return nil, fmt.Errorf("begin a session: create its folder: %w; give another --path", err)
		}
	}
}

// begin fills the folder. state.jsonl comes last: without it the folder is not a dispatch folder.
func (f *Folder) begin(start dispatch.Setup, opt Options) (dispatch.Dispatch, error) {
	var s dispatch.Dispatch
	d, err := openFolder(f.path)
	if err != nil {
		return s, err
	}
	defer d.close()
	unlock, err := d.lock()
	if err != nil {
		return s, err
	}
	defer unlock()
	changes, err := s.Decide(opt.At, dispatch.Start{Setup: start})
	if err != nil {
		return s, err
	}
	changes[0].Actor = opt.Actor
	s.Apply(changes[0])
	r := f.recordOf(s, changes[0])
	r.Parameters = &parameters{Mode: string(start.Mode), Path: start.Path}
	r.Descriptions, r.List = filepath.Join(f.path, directoryName), filepath.Join(f.path, listName)
	if opt.Repo != "" || len(opt.Tools) > 0 || opt.NoCommits {
		r.Ours.About = &about{Repo: opt.Repo, Tools: opt.Tools, NoCommits: opt.NoCommits}
	}
	line := jsonLine(r)
	if len(line) > lineBytesMax {
		return s, fmt.Errorf("the first line would have %d bytes; the maximum is %d; use fewer agents or shorter descriptions", len(line),
			lineBytesMax)
	}
	folders := []string{conversationsName}
	if start.Mode == dispatch.Response {
		folders = append(folders, inboxName, unmatchedName)
	}
	for _, rel := range folders {
		if _, err := d.mkdir(rel); err != nil {
			return s, err
		}
	}
	for _, file := range []struct {
		rel  string
		text []byte
	}{
		{redoName, nil},
		{messagesName, nil},
		{listName, agentList(start.Agents)},
		{directoryName, agentDirectory(start.Agents)},
		{stateName, line},
	} {
		if err := d.replace(file.rel, file.text); err != nil {
			return s, err
		}
	}
	for _, rel := range []string{conversationsName, ""} {
		if err := d.sync(rel); err != nil {
			return s, fmt.Errorf("sync the folder: %w", err)
		}
	}
	return s, syncPath(filepath.Dir(f.path))
}

// syncPath makes the names in a folder durable.
func syncPath(path string) error {
	fd := -1
	err := again(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d := opened{fd: fd, path: path}
	defer d.close()
	return d.sync("")
}

// agentList is the content of agent-list.txt: one name on each line, sorted, for any program.
func agentList(agents []dispatch.Description) []byte {
	var b []byte
	for _, a := range agents {
		b = append(append(b, a.Name...), '\n')
	}
	return b
}

// agentDirectory is the content of AGENT_DIRECTORY.md: one section for each agent, for people and models.
func agentDirectory(agents []dispatch.Description) []byte {
	b := fmt.Appendf(nil,
		"# Agent directory\n\nEach agent is a state beside MAIN, and its description is the condition for entering it.\nAgents: %d\n",
		len(agents))
	for _, a := range agents {
		b = fmt.Appendf(b, "\n## %s\n\n%s\n", a.Name,
			unheaded(strings.TrimSpace(cmp.Or(a.Text, "(no description: no input selects this agent)"))))
		if a.File != "" {
			b = fmt.Appendf(b, "\nFile: %s\n", a.File)
		}
	}
	return b
}
