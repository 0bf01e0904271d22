package places

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// program is where a known program keeps its files, according to its own documentation. In a view it has a folder of the agent's
// own there, which stays from session to session, so conversations go on. The person's settings are copied into it at each start,
// or are read-only folders in it; so nothing that the program writes counts outside, but the tokens of its login.
type program struct {
	names    []string // of the program, in the agent's command or as its driver
	variable string   // that names the folder
	home     string   // the folder in the home folder
	xdg      bool     // home is a name below the three XDG folders
	beside   string   // a file of its state beside the folder, which is in it if the variable is set

	settings []string // files that are the person's at each start
	state    []string // files that are taken from the person's once
	folders  []string // folders of the person's settings, read-only

	login   string   // the word of its login files in package login; empty: it has none that is refreshed
	loginIn string   // of an xdg program: the variable of the folder with the login
	renames bool     // it replaces a login file by rename, which no mount of a single file survives: all sessions share the folder
	private []string // folders in a shared one that are the agent's own
}

// programs are data. Adding one is a row here, one in package login, and one in doc/agents. A file of keys that no provider changes is
// one of the settings.
var programs = []program{
	{
		names: []string{"claude", "claude-code-acp", "claude-agent-acp"}, variable: "CLAUDE_CONFIG_DIR", home: ".claude",
		beside:   ".claude.json",
		settings: []string{"settings.json", "settings.local.json", "CLAUDE.md", "keybindings.json"}, state: []string{".claude.json"},
		login:   "claude",
		folders: []string{"agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills"},
	},
	{
		names: []string{"codex", "codex-acp"}, variable: "CODEX_HOME", home: ".codex",
		settings: []string{"config.toml", "AGENTS.md", "AGENTS.override.md", "hooks.json"},
		login:    "codex",
		folders:  []string{"hooks", "plugins", "prompts", "rules", "skills"},
	},
	{
		names: []string{"opencode", "opencode-ai"}, home: "opencode", xdg: true,
		settings: []string{"opencode.json", "opencode.jsonc", "config.json", "tui.json", "AGENTS.md"},
		login:    "opencode", loginIn: "XDG_DATA_HOME",
		folders: []string{
			"agent", "agents", "command", "commands", "mode", "modes", "plugin", "plugins", "skill", "skills", "themes",
			"tool", "tools",
		},
	},
	{
		names: []string{"qwen", "qwen-code"}, home: ".qwen",
		settings: []string{"settings.json", "QWEN.md", ".env", "trustedFolders.json"}, state: []string{"installation_id"},
		login: "qwen", renames: true, private: []string{"debug", "history", "projects", "tmp", "todos"},
		folders: []string{"agents", "commands", "extensions", "hooks", "skills"},
	},
	{
		names: []string{"gemini", "gemini-cli"}, home: ".gemini",
		settings: []string{"settings.json", "GEMINI.md", ".env", "trustedFolders.json"},
		state:    []string{"installation_id", "user_id", "google_accounts.json"},
		login:    "gemini",
		folders:  []string{"agents", "commands", "extensions", "hooks", "policies", "skills"},
	},
	{
		names: []string{"goose"}, home: "goose", xdg: true,
		settings: []string{"config.yaml", ".goosehints", "permission.yaml", "secrets.yaml"}, folders: []string{"recipes", "custom_providers"},
	},
	{
		names: []string{"copilot"}, variable: "COPILOT_HOME", home: ".copilot",
		settings: []string{"mcp-config.json", "copilot-instructions.md", "config.json"}, folders: []string{"agents", "skills"},
	},
	{
		names: []string{"cursor-agent"}, home: ".cursor", settings: []string{"mcp.json", "cli-config.json"},
		folders: []string{"rules", "commands", "hooks"},
	},
	{names: []string{"cursor-agent"}, home: "cursor", xdg: true, login: "cursor-agent", loginIn: "XDG_CONFIG_HOME", renames: true},
}

// xdgs are the folders in which programs keep configuration, data and state.
var xdgs = []struct{ variable, home string }{
	{"XDG_CONFIG_HOME", ".config"},
	{"XDG_DATA_HOME", ".local/share"},
	{"XDG_STATE_HOME", ".local/state"},
}

// wordsLooked is how many leading words of a command are searched for a program's name, as in npx -y opencode-ai acp.
const wordsLooked = 3

// program gives the agent's program its folders.
func (m *maker) program() {
	if !slices.Contains([]string{"acp", "claude", "codex"}, m.Driver) {
		return // the owner names the folders
	}
	words := append([]string{m.Driver}, m.Command[:min(wordsLooked, len(m.Command))]...)
	for _, p := range programs {
		if !isCalled(p.names, words) {
			continue
		}
		kept := filepath.Join(m.State, "programs", safe(m.Agent), p.names[0])
		if !p.xdg {
			at := m.env.get(p.variable)
			given := p.variable != "" && filepath.IsAbs(at)
			if !given {
				at = filepath.Join(m.real, p.home)
			}
			own := m.keep(p, at, filepath.Join(kept, strings.TrimPrefix(p.home, ".")))
			if p.beside != "" && !given {
				m.taken = append(m.taken,
					takenFile{from: filepath.Join(m.real, p.beside), to: filepath.Join(own, p.beside), once: true, mayMiss: true})
			}
			switch {
			case p.variable != "" && m.landlock():
				m.env.set(p.variable, own)
			case p.variable != "" && p.beside != "":
				m.env.set(p.variable, filepath.Clean(at))
			}
			continue
		}
		for _, x := range xdgs {
			at := m.env.get(x.variable)
			if !filepath.IsAbs(at) {
				at = filepath.Join(m.real, x.home)
			}
			one := p
			if p.loginIn != x.variable {
				one.login, one.renames = "", false
			}
			m.keep(one, filepath.Join(at, p.home), filepath.Join(kept, strings.TrimPrefix(filepath.Base(x.home), ".")))
		}
	}
}

// keep puts the agent's own folder at the place of a program's, with the person's settings.
func (m *maker) keep(p program, at, own string) string {
	person, err := filepath.EvalSymlinks(at)
	if err != nil {
		person = filepath.Clean(at)
	}
	if isWithin(person, m.Dir) || m.planted(at) {
		return own // the agent could have made it
	}
	m.point = append(m.point, own)
	shared := m.login(p, person, own)
	take := func(names []string, once bool) {
		for _, name := range names {
			m.taken = append(m.taken,
				takenFile{from: filepath.Join(person, name), to: filepath.Join(shared, name), once: once, mayMiss: true})
		}
	}
	take(p.state, true)
	if shared != own {
		m.sealed(p, person)
	} else {
		take(p.settings, false)
	}
	if m.landlock() {
		m.add(sandbox.Place{Path: own, Access: sandbox.Write})
		if isBelow(person, m.real) {
			m.links[filepath.Join(m.View.Home, strings.TrimPrefix(person, m.real))] = own
		}
	} else {
		m.add(sandbox.Place{Path: person, From: shared, Access: sandbox.Write})
		m.known(filepath.Clean(at), person)
	}
	for _, name := range p.private {
		if shared != own {
			m.add(sandbox.Place{Path: filepath.Join(person, name), From: filepath.Join(own, name), Access: sandbox.Write})
		}
	}
	for _, name := range p.folders {
		real, err := filepath.EvalSymlinks(filepath.Join(person, name))
		if err != nil || !isFolder(real) || m.wide(real) || m.planted(filepath.Join(person, name)) {
			continue
		}
		if m.landlock() {
			m.read(real)
			m.links[filepath.Join(own, name)] = real
			continue
		}
		m.point = append(m.point, filepath.Join(shared, name))
		m.add(sandbox.Place{Path: filepath.Join(person, name), From: real, Access: sandbox.Read})
	}
	return own
}

func isCalled(names, words []string) bool {
	for _, word := range words {
		base := filepath.Base(word)
		if at := strings.LastIndexByte(base, '@'); at > 0 { // for example opencode-ai@1.18
			base = base[:at]
		}
		if slices.Contains(names, base) {
			return true
		}
	}
	return false
}

// safe is the name of an agent as the name of a folder.
func safe(name string) string {
	return strings.NewReplacer("/", "_", "\x00", "_").Replace(strings.TrimLeft(name, "."))
}
