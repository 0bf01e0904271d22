package places_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// place finds the place at a path.
func place(p *places.Places, path string) sandbox.Place {
	for _, one := range p.View.Places {
		if one.Path == path {
			return one
		}
	}
	return sandbox.Place{}
}

func value(env []string, name string) (value string) {
	for _, kv := range env {
		if v, is := strings.CutPrefix(kv, name+"="); is {
			value = v
		}
	}
	return value
}

// TestPrograms is the table of programs: where each has a folder of the agent's own, and which variable leads there.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		driver, command, env string
		own                  string // folders of the agent's own
		set                  string
	}{
		{"exec", "claude", "", "", ""},
		{"acp", "own-agent", "", "", ""},
		{"claude", "/opt/claude", "", "home/.claude", "CLAUDE_CONFIG_DIR=home/.claude"},
		{"claude", "sh", "CLAUDE_CONFIG_DIR=cfg", "cfg", "CLAUDE_CONFIG_DIR=cfg"},
		{"codex", "codex", "", "home/.codex", ""},
		{"codex", "codex", "CODEX_HOME=c", "c", "CODEX_HOME=c"},
		{"acp", "npx -y opencode-ai@1.18 acp", "XDG_DATA_HOME=data", "home/.config/opencode data/opencode home/.local/state/opencode", ""},
		{"acp", "qwen --acp", "", "home/.qwen/debug home/.qwen/history home/.qwen/projects home/.qwen/tmp home/.qwen/todos", ""},
		{"acp", "gemini --experimental-acp", "", "home/.gemini", ""},
		{"acp", "copilot --acp", "", "home/.copilot", ""},
		{"acp", "goose acp", "", "home/.config/goose home/.local/share/goose home/.local/state/goose", ""},
		{"acp", "cursor-agent acp", "", "home/.cursor home/.local/share/cursor home/.local/state/cursor", ""},
	} {
		m := newMachine(t, "repo/w/ cfg/ c/ data/")
		s := m.session("repo/w")
		s.Driver, s.Command = c.driver, strings.Fields(c.command)
		if name, at, is := strings.Cut(c.env, "="); is {
			s.Env = append(s.Env, name+"="+m.at(at))
		}
		p, err := places.Of(s)
		if err != nil {
			t.Fatal(err)
		}
		var own []string
		for _, one := range p.View.Places {
			if strings.HasPrefix(one.From, m.at("repo/.fairlead/programs/coder/")) && one.Access == sandbox.Write {
				own = append(own, strings.TrimPrefix(one.Path, m.base+"/"))
			}
		}
		want := strings.Fields(c.own)
		slices.Sort(want)
		slices.Sort(own)
		if !slices.Equal(own, want) {
			t.Errorf("%s %s %s: own folders are at %q, want %q", c.driver, c.command, c.env, own, want)
		}
		if name, at, is := strings.Cut(c.set, "="); is && value(p.Env, name) != m.at(at) {
			t.Errorf("%s %s: %s is %q", c.driver, c.command, name, value(p.Env, name))
		}
	}
}

// oauth is a login of Claude Code: a higher number is fresher.
func oauth(n int) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"a%d","expiresAt":%d,"refreshToken":"r%d"}}`, n, n, n)
}

// TestProgramFiles checks what a program finds in its folder, what of it stays, and what comes back to the person.
func TestProgramFiles(t *testing.T) {
	t.Parallel()
	m := newMachine(t,
		"repo/w/ home/.claude/settings.json={} home/.claude/CLAUDE.md=memory home/.claude/.credentials.json="+oauth(1)+" home/.claude/projects/p/old.jsonl=old"+
			" home/.claude/skills/s/SKILL.md=skill home/.claude.json={\"n\":1}")
	s := m.session("repo/w")
	s.Driver = "claude"
	own := "repo/.fairlead/programs/coder/claude/claude/"
	begin := func() *places.Places {
		t.Helper()
		p, err := places.Of(s)
		if err == nil {
			err = p.Make()
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	read := func(rest string) string {
		text, err := os.ReadFile(m.at(rest))
		if err != nil {
			return "none"
		}
		if strings.HasSuffix(rest, ".credentials.json") {
			return strings.Join(strings.Fields(string(text)), "")
		}
		return string(text)
	}
	end := func() {
		t.Helper()
		if err := places.End(s.Own); err != nil {
			t.Error(err)
		}
	}
	p := begin()
	for rest, want := range map[string]string{
		own + "settings.json": "{}", own + "CLAUDE.md": "memory", own + ".credentials.json": "", own + ".claude.json": `{"n":1}`,
		own + "projects/p/old.jsonl": "none",
	} {
		if got := read(rest); got != want {
			t.Errorf("%s is %q, want %q", rest, got, want)
		}
	}
	if skills := place(p, m.at("home/.claude/skills")); skills.Access != sandbox.Read ||
		skills.From != m.at("home/.claude/skills") && skills.From != "" {
		t.Errorf("skills are %+v", skills)
	}

	// the file with which it is signed in is the one of all sessions
	login := place(p, m.at("home/.claude/.credentials.json"))
	store := strings.TrimPrefix(login.From, m.base+"/")
	if login.Access != sandbox.Write || !strings.HasPrefix(store, "repo/.fairlead/logins/claude-") || read(store) != oauth(1) {
		t.Errorf("the login is %+v, with %s", login, read(store))
	}

	// the program writes, and its login is refreshed
	m.make(own + "settings.json={\"hooks\":1} " + own + ".claude.json={\"n\":2} " + own + "projects/p/new.jsonl=new " + store + "=" + oauth(2))
	end()
	for rest, want := range map[string]string{
		"home/.claude/settings.json": "{}", "home/.claude.json": `{"n":1}`,
		"home/.claude/.credentials.json": oauth(2), "home/.claude/projects/p/new.jsonl": "none",
	} {
		if got := read(rest); got != want {
			t.Errorf("after the session, %s is %q, want %q", rest, got, want)
		}
	}

	// a link or something else in the place of a file is not followed
	m.make("home/.ssh/id=key")
	for _, name := range []string{".credentials.json", "settings.json"} {
		if err := os.Remove(m.at(own + name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(m.at("home/.ssh/id"), m.at(own+name)); err != nil {
			t.Fatal(err)
		}
	}
	end()
	begin()
	for rest, want := range map[string]string{
		own + "settings.json": "{}", own + ".claude.json": `{"n":2}`, own + "projects/p/new.jsonl": "new",
		own + ".credentials.json": "", "home/.ssh/id": "key",
		"home/.claude/.credentials.json": oauth(2),
	} {
		if got := read(rest); got != want {
			t.Errorf("in the next session, %s is %q, want %q", rest, got, want)
		}
	}
	if info, err := os.Lstat(m.at(own + "settings.json")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link is %v, %v", info, err)
	}
}

// TestToolchains is the table of programs that lie in a home folder: what of it is visible, and what is not.
func TestToolchains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tree, path, env, seen, unseen, want string }{
		"nvm":           {"home/.nvm/versions/node/v22/bin/node", "home/.nvm/versions/node/v22/bin", "", "home/.nvm", "", ""},
		"nvm elsewhere": {"opt/nvm/versions/node/v22/bin/node", "opt/nvm/versions/node/v22/bin", "NVM_DIR=opt/nvm", "opt/nvm", "", ""},
		"cargo": {
			"home/.cargo/bin/cargo home/.cargo/credentials.toml home/.rustup/toolchains/x/bin/rustc", "home/.cargo/bin",
			"", "home/.cargo/bin home/.rustup", "home/.cargo", "",
		},
		"go":               {"home/go/bin/tool home/go/src/private/x", "home/go/bin", "", "home/go/bin", "home/go home/go/src", ""},
		"a link from PATH": {"home/.local/share/app/v1/bin/app home/.local/bin/app->home/.local/share/app/v1/bin/app home/.local/share/keyrings/k", "home/.local/bin", "", "home/.local/bin home/.local/share/app/v1/bin", "home/.local home/.local/share", ""},
		"links in a row": {
			"home/a/real/prog home/b/prog->home/a/real/prog home/bin/prog->home/b/prog", "home/bin", "",
			"home/bin home/b home/a/real", "home/a", "",
		},
		"a package of npm": {"home/lib/node_modules/@x/y/bin/y.js home/lib/node_modules/dep/i.js home/p/bin/y->home/lib/node_modules/@x/y/bin/y.js", "home/p/bin", "", "home/lib/node_modules home/p/bin", "home/lib", ""},
		"the home folder":  {"home/prog home/.ssh/id", "home", "", "", "home", "drop"},
		"above it":         {"home/prog", ".", "", "", "home", "drop"},
		"missing":          {"home/x", "home/none", "", "", "home/none", "drop"},
		"the workspace":    {"repo/w/bin/prog", "repo/w/bin", "", "", "", "keep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, "repo/w/ "+c.tree)
			s := m.session("repo/w")
			s.Env[1] = "PATH=/usr/bin:" + m.at(c.path) + ":/bin"
			if name, at, is := strings.Cut(c.env, "="); is {
				s.Env = append(s.Env, name+"="+m.at(at))
			}
			p, err := places.Of(s)
			if err != nil {
				t.Fatal(err)
			}
			for seen := range strings.FieldsSeq(c.seen) {
				if got := place(p, m.at(seen)); got.Access != sandbox.Read {
					t.Errorf("%s is %+v", seen, got)
				}
			}
			for unseen := range strings.FieldsSeq(c.unseen) {
				if got := place(p, m.at(unseen)); got.Access != "" && got.From == "" {
					t.Errorf("%s is %+v", unseen, got)
				}
			}
			if kept := strings.Contains(value(p.Env, "PATH"), ":"+m.at(c.path)+":"); kept != (c.want != "drop") {
				t.Errorf("PATH is %s", value(p.Env, "PATH"))
			}
		})
	}
}

// TestCaches checks that the person's caches are below, or are not touched, and that the agent's own stay.
func TestCaches(t *testing.T) {
	t.Parallel()
	tree := "repo/w/ home/.npm/_cacache/x home/go/pkg/mod/m home/.cargo/registry/r home/.cargo/credentials.toml"
	m := newMachine(t, tree)
	for overlays, want := range map[bool]sandbox.Access{true: sandbox.Overlay, false: sandbox.Write} {
		s := m.session("repo/w")
		s.Ability.Overlays = overlays
		p, err := places.Of(s)
		if err != nil {
			t.Fatal(err)
		}
		for at, name := range map[string]string{"home/.npm": "npm", "home/go/pkg/mod": "go-mod", "home/.cargo/registry": "cargo-registry"} {
			got := place(p, m.at(at))
			own := m.at("repo/.fairlead/caches/coder/" + name)
			if got.Access != want || got.From != own && got.Upper != own {
				t.Errorf("overlays %t: %s is %+v", overlays, at, got)
			}
		}
		if got := place(p, m.at("home/.cargo")); got.Access != "" {
			t.Errorf("the folder of a login is %+v", got)
		}
	}
	s := m.session("repo/w")
	s.Env = append(s.Env, "XDG_CACHE_HOME="+m.at("repo/none"), "GOCACHE="+m.at("repo/there"))
	m.make("repo/there/")
	p, err := places.Of(s)
	if err != nil || place(p, m.at("repo/none")).Access != "" || place(p, m.at("repo/there")).Access != sandbox.Write {
		t.Errorf("a cache in the repository: %v, %v", p.View.Places, err)
	}
	m.by = sandbox.Ability{By: sandbox.ByLandlock}
	if p, err = places.Of(m.session("repo/w")); err != nil {
		t.Fatal(err)
	}
	if got := value(p.Env, "npm_config_cache"); got != m.at("repo/.fairlead/caches/coder/npm") || place(p, got).Access != sandbox.Write {
		t.Errorf("without mounts, the cache of npm is %s", got)
	}
	for name, want := range map[string]string{"HOME": "repo/.fairlead/tmp/coder-1/home", "TMPDIR": "repo/.fairlead/tmp/coder-1/tmp"} {
		if got := value(p.Env, name); got != m.at(want) {
			t.Errorf("without mounts, %s is %s", name, got)
		}
	}
}

// TestLinks checks that links of a person are resolved where they are written, and that no place goes through a link that an agent
// could have made.
func TestLinks(t *testing.T) {
	t.Parallel()
	m := newMachine(t,
		"var/home/u/.nvm/bin/node var/home/u/repo/.fairlead/tmp/ var/home/u/repo/w/x var/home/u/dots/ victim/ homes->var/home data/real/ data/link->data/real")
	s := m.session("repo/w")
	s.Root, s.Dir, s.State, s.Own = m.at("homes/u/repo"), m.at("homes/u/repo/w"), m.at("var/home/u/repo/.fairlead"),
		m.at("var/home/u/repo/.fairlead/tmp/coder-1")
	s.Env = []string{"HOME=" + m.at("homes/u"), "PATH=/bin:" + m.at("homes/u/.nvm/bin")}
	s.Write = []string{m.at("data/link")}
	p, err := places.Of(s)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]sandbox.Access{
		"var/home/u/repo/w": sandbox.Write, "homes/u/repo/w": sandbox.Write, "homes/u/repo": sandbox.Read, "homes/u/.nvm": sandbox.Read,
		"var/home/u/.nvm": sandbox.Read,
		"homes/u":         sandbox.Write, "data/real": sandbox.Write, "data/link": sandbox.Write, "homes/u/repo/.fairlead": sandbox.Hide,
		"homes/u/repo/w/.claude": sandbox.Read,
	} {
		if got := place(p, m.at(at)); got.Access != want {
			t.Errorf("%s is %+v, want %s", at, got, want)
		}
	}
	if got := place(p, m.at("homes/u")); got.From != m.at("var/home/u/repo/.fairlead/tmp/coder-1/home") {
		t.Errorf("the home folder is %+v", got)
	}
	if !strings.HasSuffix(value(p.Env, "PATH"), m.at("homes/u/.nvm/bin")) || value(p.Env, "HOME") != m.at("homes/u") {
		t.Errorf("the variables are %q", p.Env)
	}

	if err := os.Symlink(m.at("victim"), m.at("var/home/u/repo/w/out")); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*places.Session){
		"can_write": func(s *places.Session) { s.CanWrite = []string{"out/**"} },
		"write":     func(s *places.Session) { s.Write = []string{m.at("var/home/u/repo/w/out")} },
		"by a link": func(s *places.Session) { s.Write = []string{m.at("homes/u/repo/w/out")} },
	} {
		s := s
		s.Write = nil
		change(&s)
		if p, err := places.Of(s); err == nil {
			t.Errorf("%s: a link of the agent is followed: %+v", name, place(p, m.at("victim")))
		}
	}
	if err := os.Symlink(m.at("victim"), m.at("var/home/u/repo/w/.claude")); err != nil {
		t.Fatal(err)
	}
	s.Write = nil
	if p, err = places.Of(s); err != nil || place(p, m.at("victim")).Access != "" ||
		!strings.Contains(strings.Join(p.Said, " "), filepath.Join("w", ".claude")) {
		t.Errorf("a link at .claude: %v, %q", err, p.Said)
	}
}

// TestRefused is what no view is made of, with a message that says what to do.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*machine, *places.Session)
		want   string
	}{
		"write of a missing folder": {func(m *machine, s *places.Session) { s.Write = []string{m.at("none")} }, "create it first"},
		"read of a missing folder":  {func(m *machine, s *places.Session) { s.Read = []string{m.at("none")} }, "create it first"},
		"can_write of a missing folder": {
			func(m *machine, s *places.Session) { s.CanWrite = []string{m.at("none") + "/**"} },
			"create it first",
		},
		"read of the home folder": {func(m *machine, s *places.Session) { s.Read = []string{m.at("home")} }, "name a folder in it"},
		"write above it":          {func(m *machine, s *places.Session) { s.Write = []string{m.base} }, "name a folder in it"},
		"no workspace":            {func(m *machine, s *places.Session) { s.Dir = m.at("none/x") }, "workspace"},
	} {
		m := newMachine(t, "repo/w/")
		s := m.session("repo/w")
		c.change(m, &s)
		if _, err := places.Of(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVariables checks the environment of a view: what leads to sockets outside goes, unless the socket is opened.
func TestVariables(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "repo/w/ repo/.git/")
	s := m.session("repo/w")
	s.Env = append(s.Env, "SSH_AUTH_SOCK=/run/a", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/b", "DOCKER_HOST=unix:///run/c",
		"TMPDIR=/elsewhere", "OTHER=x")
	for _, open := range []bool{false, true} {
		if open {
			s.Sockets = []string{"/run/a", "/run/b", "/run/c"}
		}
		p, err := places.Of(s)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"HOME": m.at("home"), "TMPDIR": "/tmp", "XDG_RUNTIME_DIR": sandbox.RuntimeDir, "GIT_OPTIONAL_LOCKS": "0", "OTHER": "x",
			"SSH_AUTH_SOCK": "", "DBUS_SESSION_BUS_ADDRESS": "", "DOCKER_HOST": "",
		}
		if open {
			want["SSH_AUTH_SOCK"], want["DBUS_SESSION_BUS_ADDRESS"], want["DOCKER_HOST"] = "/run/a", "unix:path=/run/b", "unix:///run/c"
		}
		for name, want := range want {
			if got := value(p.Env, name); got != want {
				t.Errorf("opened %t: %s is %q, want %q", open, name, got, want)
			}
		}
		if !slices.Equal(p.View.Sockets, s.Sockets) {
			t.Errorf("the sockets are %q", p.View.Sockets)
		}
	}
}
