package places_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// machine is a small disk: a home folder, and a team's folder in it.
type machine struct {
	t    *testing.T
	base string
	by   sandbox.Ability
}

func newMachine(t *testing.T, tree string) *machine {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, base: base, by: sandbox.Ability{By: sandbox.ByNamespaces, Users: true, Processes: true}}
	m.make("home/ repo/.fairlead/tmp/ " + tree)
	return m
}

func (m *machine) at(p string) string { return filepath.Join(m.base, p) }

// make makes folders (a/), links (a->b) and files (a, a=text).
func (m *machine) make(tree string) {
	m.t.Helper()
	for _, one := range strings.Fields(tree) {
		link, to, isLink := strings.Cut(one, "->")
		file, text, _ := strings.Cut(link, "=")
		err := os.MkdirAll(filepath.Dir(m.at(file)), 0o755)
		switch {
		case err != nil:
		case isLink && filepath.IsAbs(to):
			err = os.Symlink(to, m.at(link))
		case isLink:
			err = os.Symlink(m.at(to), m.at(link))
		case strings.HasSuffix(one, "/"):
			err = os.MkdirAll(m.at(one), 0o755)
		default:
			err = os.WriteFile(m.at(file), []byte(strings.NewReplacer("BASE", m.base, "~", "\n", "_", " ").Replace(text)), 0o755)
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

// session is one of the agent coder in a workspace.
func (m *machine) session(workspace string) places.Session {
	return places.Session{
		Agent: "coder", Driver: "exec", Argv: []string{"/bin/sh"}, Dir: m.at(workspace), Root: m.at("repo"), State: m.at("repo/.fairlead"),
		Own: m.at("repo/.fairlead/tmp/coder-1"), Env: []string{"HOME=" + m.at("home"), "PATH=/usr/bin:/bin"}, Ability: m.by,
	}
}

// words are the places of a view, but for caches: access, path, and what is there.
func (m *machine) words(p *places.Places) (all []string) {
	for _, one := range p.View.Places {
		if strings.Contains(one.From+one.Upper, "/.fairlead/caches/") || strings.Contains(one.From, "/coder-1/home/") {
			continue
		}
		word := fmt.Sprintf("%s %s", one.Access, one.Path)
		if one.From != "" {
			word += "<" + one.From
		}
		if one.Make {
			word += " make"
		}
		all = append(all, strings.ReplaceAll(word, m.base+"/", ""))
	}
	slices.Sort(all)
	return all
}

func (m *machine) want(p *places.Places, err error, want string) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	if got := m.words(p); !slices.Equal(got, lines) {
		m.t.Errorf("the places are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// workspaceRow is a row of the table of workspaces.
type workspaceRow struct {
	tree, dir string
	change    func(*machine, *places.Session)
	want      string
	patterns  string
}

// folderRows are about folders that an agent sees of its workspace and around it.
var folderRows = map[string]workspaceRow{
	"the whole repository": {
		tree: "repo/.git/ repo/.agents/runs/ repo/.agents/worktrees/ repo/.claude/", dir: "repo",
		want: `write repo
				read repo/.git
				read repo/.claude
				hide repo/.fairlead
				write repo/.agents
				hide repo/.agents/runs
				hide repo/.agents/worktrees`,
	},
	"missing folders": {
		tree: "repo/.git/", dir: "repo",
		want: `write repo
				read repo/.git
				read repo/.claude make
				hide repo/.fairlead
				write repo/.agents make
				hide repo/.agents/runs make
				hide repo/.agents/worktrees make`,
	},
	"a folder in the repository": {
		tree: "repo/.git/ repo/coder/ repo/other/ repo/.agents/runs/", dir: "repo/coder",
		change: func(m *machine, s *places.Session) { s.Others = []string{m.at("repo/other"), m.at("repo")} },
		want: `read repo
				write repo/coder
				read repo/coder/.claude make
				hide repo/.fairlead
				hide repo/.agents/runs
				hide repo/other`,
	},
	"another workspace inside": {
		tree: "repo/w/deep/other/", dir: "repo/w",
		change: func(m *machine, s *places.Session) { s.Others = []string{m.at("repo/w/deep/other")} },
		want: `read repo
				write repo/w
				write repo/w/deep
				read repo/w/deep/other
				read repo/w/.claude make
				hide repo/.fairlead`,
	},
	"can_write": {
		tree: "repo/w/src/ repo/w/.claude/", dir: "repo/w",
		change: func(_ *machine, s *places.Session) { s.CanWrite = []string{"src/**", "docs/a/**", "src/x/*.go"} },
		want: `read repo
				write repo/w/src
				write repo/w/docs/a make
				hide repo/.fairlead`,
		patterns: "src/x/*.go",
	},
	"cannot_write": {
		tree: "repo/w/src/keys/a/ repo/w/.claude/", dir: "repo/w",
		change: func(_ *machine, s *places.Session) {
			s.CannotWrite = []string{"src/keys/**", "*.pem", "new/", "src/**/*.go"}
		},
		want: `read repo
				write repo/w
				write repo/w/src
				read repo/w/src/keys
				read repo/w/new make
				read repo/w/.claude
				hide repo/.fairlead`,
		patterns: "*.pem src/**/*.go",
	},
	"the key": {
		tree: "repo/w/.claude/ data/ out/ repo/w/secret/ repo/w/a/b/c/", dir: "repo/w",
		change: func(m *machine, s *places.Session) {
			s.Read, s.Write, s.Hide = []string{m.at("data")}, []string{m.at("out")},
				[]string{m.at("repo/w/secret"), m.at("repo/w/a/b/c"), m.at("repo/w/later"), m.at("elsewhere")}
		},
		want: `read repo
				write repo/w
				write repo/w/a
				write repo/w/a/b
				read data
				write out
				hide repo/w/secret
				hide repo/w/a/b/c
				hide repo/w/later make
				read repo/w/.claude
				hide repo/.fairlead`,
	},
	"a reader": {
		tree: "repo/w/", dir: "repo/w", change: func(_ *machine, s *places.Session) { s.ReadOnly = true },
		want: `read repo
				hide repo/.fairlead`,
	},
	"outside of the repository": {
		tree: "work/.git/ work/sub/ work/.claude/", dir: "work/sub",
		want: `read work
				write work/sub
				read work/sub/.claude make`,
	},
	"a home that is a repository": {
		tree: "home/.git/ home/p/ home/.ssh/id", dir: "home/p",
		want: `write home/p
				read home/.git
				read home/p/.claude make`,
	},
}

// gitRows are about repositories.
var gitRows = map[string]workspaceRow{
	"the person's git, opened": {
		tree: "repo/.git/ repo/.claude/ repo/.agents/runs/ repo/.agents/worktrees/", dir: "repo",
		change: func(m *machine, s *places.Session) { s.Write = []string{m.at("repo/.git")} },
		want: `write repo
				read repo/.claude
				hide repo/.fairlead
				write repo/.agents
				hide repo/.agents/runs
				hide repo/.agents/worktrees`,
	},
	"a linked worktree": {
		tree: "main/.git/worktrees/x/gitdir=BASE/tree/.git tree/.git=gitdir:_BASE/main/.git/worktrees/x tree/.claude/", dir: "tree",
		want: `write tree
				read tree/.claude
				read main/.git`,
	},
	"a worktree that the repository does not know": {
		tree: "main/.git/worktrees/x/gitdir=BASE/elsewhere/.git tree/.git=gitdir:_BASE/main/.git/worktrees/x tree/.claude/", dir: "tree",
		want: `write tree
				read tree/.claude`,
	},
	"a clone of ours": {
		tree: "repo/.git/objects/ repo/.fairlead/git/r.git/objects/ victim/objects/ repo/.agents/runs/T1/ repo/.agents/worktrees/T2/" +
			" repo/.agents/worktrees/T1/.git/objects/info/alternates=BASE/repo/.fairlead/git/r.git/objects~BASE/victim/objects~BASE/repo/.git/objects",
		dir: "repo/.agents/worktrees/T1", change: func(m *machine, s *places.Session) { s.Clone = s.Dir },
		want: `read repo
				hide repo/.agents/runs
				read repo/.agents/worktrees<repo/.fairlead/tmp/coder-1/hidden/BASE+repo+.agents+worktrees
				write repo/.agents/worktrees/T1
				read repo/.agents/worktrees/T1/.claude make
				read repo/.fairlead<repo/.fairlead/tmp/coder-1/hidden/BASE+repo+.fairlead
				read repo/.fairlead/git/r.git`,
	},
	"a clone of ours elsewhere": {
		tree: "repo/.git/objects/ repo/.fairlead/git/objects/ repo/.fairlead/gits/x/objects/info/alternates=BASE/other/.git/objects other/.git/objects/" +
			" trees/r1/.claude/ trees/r1/.git/objects/info/alternates=BASE/repo/.fairlead/git/objects~BASE/repo/.git/objects~BASE/repo/.fairlead/gits/x/objects",
		dir: "trees/r1", change: func(m *machine, s *places.Session) { s.Clone = s.Dir },
		want: `write trees/r1
				read trees/r1/.claude
				read repo/.fairlead/git
				read repo/.fairlead/gits/x
				read other/.git/objects`,
	},
	"a clone elsewhere of a host, which has no copy": {
		tree: "repo/.git/objects/ trees/r1/.claude/ trees/r1/.git/objects/info/alternates=BASE/repo/.git/objects",
		dir:  "trees/r1", change: func(m *machine, s *places.Session) { s.Clone = s.Dir },
		want: `write trees/r1
				read trees/r1/.claude
				read repo/.git/objects`,
	},
}

// TestWorkspace is the table of what an agent sees of its workspace and of the folders around it.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	rows := maps.Clone(folderRows)
	maps.Copy(rows, gitRows)
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, c.tree)
			s := m.session(c.dir)
			if c.change != nil {
				c.change(m, &s)
			}
			p, err := places.Of(s)
			m.want(p, err, strings.ReplaceAll(c.want, "BASE", strings.ReplaceAll(strings.Trim(m.base, "/"), "/", "+")))
			if got := strings.Join(p.Patterns, " "); c.patterns != "" && got != c.patterns {
				t.Errorf("the patterns that no place holds are %q, want %q", got, c.patterns)
			}
		})
	}
}
