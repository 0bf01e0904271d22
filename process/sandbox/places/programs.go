package places

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// program is where a known program keeps its files, according to its own documentation. In a view it has a folder of the agent's
// own there, which stays from session to session, so conversations go on. The person's settings are copied into it at each start,
// or are read-only folders in it; so nothing that the program writes counts outside, but its login.
type program struct {
	names    []string // of the program, in the agent's command or as its driver
	variable string   // that names the folder
	home     string   // the folder in the home folder
	xdg      bool     // home is a name below the three XDG folders
	beside   string   // a file of its state beside the folder, which is in it if the variable is set

	settings []string // files that are the person's at each start
	state    []string // files that are taken from the person's once
	logins   []string // files of which the newest counts, for both
	folders  []string // folders of the person's settings, read-only
}

// programs are data. Adding one is a row here, and a row in doc/agents.
var programs = []program{
	{
		names: []string{"claude", "claude-code-acp", "claude-agent-acp"}, variable: "CLAUDE_CONFIG_DIR", home: ".claude",
		beside:   ".claude.json",
		settings: []string{"settings.json", "settings.local.json", "CLAUDE.md", "keybindings.json"}, state: []string{".claude.json"},
		logins:  []string{".credentials.json"},
		folders: []string{"agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills"},
	},
	{
		names: []string{"codex", "codex-acp"}, variable: "CODEX_HOME", home: ".codex",
		settings: []string{"config.toml", "AGENTS.md", "AGENTS.override.md", "hooks.json"},
		logins:   []string{"auth.json", ".credentials.json"},
		folders:  []string{"hooks", "plugins", "prompts", "rules", "skills"},
	},
	{
		names: []string{"opencode", "opencode-ai"}, home: "opencode", xdg: true,
		settings: []string{"opencode.json", "opencode.jsonc", "config.json", "tui.json", "AGENTS.md"},
		logins:   []string{"auth.json", "mcp-auth.json"},
		folders: []string{
			"agent", "agents", "command", "commands", "mode", "modes", "plugin", "plugins", "skill", "skills", "themes",
			"tool", "tools",
		},
	},
	{
		names: []string{"qwen", "qwen-code"}, home: ".qwen",
		settings: []string{"settings.json", "QWEN.md", ".env", "trustedFolders.json"}, state: []string{"installation_id"},
		logins:  []string{"oauth_creds.json"},
		folders: []string{"agents", "commands", "extensions", "hooks", "skills"},
	},
	{
		names: []string{"gemini", "gemini-cli"}, home: ".gemini",
		settings: []string{"settings.json", "GEMINI.md", ".env", "trustedFolders.json"},
		state:    []string{"installation_id", "user_id", "google_accounts.json"},
		logins:   []string{"oauth_creds.json", "mcp-oauth-tokens.json"},
		folders:  []string{"agents", "commands", "extensions", "hooks", "policies", "skills"},
	},
	{
		names: []string{"goose"}, home: "goose", xdg: true, settings: []string{"config.yaml", ".goosehints", "permission.yaml"},
		logins: []string{"secrets.yaml"}, folders: []string{"recipes", "custom_providers"},
	},
	{
		names: []string{"copilot"}, variable: "COPILOT_HOME", home: ".copilot",
		settings: []string{"mcp-config.json", "copilot-instructions.md"}, logins: []string{"config.json"},
		folders: []string{"agents", "skills"},
	},
	{
		names: []string{"cursor-agent"}, home: ".cursor", settings: []string{"mcp.json"}, logins: []string{"cli-config.json"},
		folders: []string{"rules", "commands", "hooks"},
	},
	{names: []string{"cursor-agent"}, home: "cursor", xdg: true, logins: []string{"auth.json"}},
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
			m.keep(p, filepath.Join(at, p.home), filepath.Join(kept, strings.TrimPrefix(filepath.Base(x.home), ".")))
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
	take := func(names []string, once bool) {
		for _, name := range names {
			m.taken = append(m.taken, takenFile{from: filepath.Join(person, name), to: filepath.Join(own, name), once: once, mayMiss: true})
		}
	}
	take(p.settings, false)
	take(p.state, true)
	for _, name := range p.logins {
		m.logins = append(m.logins, login{Own: filepath.Join(own, name), Person: filepath.Join(person, name)})
	}
	if m.landlock() {
		m.add(sandbox.Place{Path: own, Access: sandbox.Write})
		if isBelow(person, m.real) {
			m.links[filepath.Join(m.View.Home, strings.TrimPrefix(person, m.real))] = own
		}
	} else {
		m.add(sandbox.Place{Path: person, From: own, Access: sandbox.Write})
		m.known(filepath.Clean(at), person)
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
		m.point = append(m.point, filepath.Join(own, name))
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
