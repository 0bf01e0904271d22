package sessions

import (
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
)

// places are the folders and files in which a program keeps its settings, sessions and caches. Most
// programs do not start without them. A program in the sandbox can therefore change its own
// settings, which apply at its next start.
type places struct {
	variable string   // environment variable that overrides the folder
	home     []string // relative to the home folder
	xdg      string   // its name below the four XDG folders: configuration, data, state and cache
}

// programsAtHome lists the known programs by name, according to their own documentation.
var programsAtHome = []struct {
	names []string
	places
}{
	{[]string{"claude", "claude-code-acp", "claude-agent-acp"}, places{"CLAUDE_CONFIG_DIR", []string{".claude", ".claude.json", ".cache/claude-cli-nodejs"}, ""}},
	{[]string{"codex", "codex-acp"}, places{"CODEX_HOME", []string{".codex"}, ""}},
	{[]string{"opencode", "opencode-ai"}, places{"", nil, "opencode"}},
	{[]string{"qwen", "qwen-code"}, places{"", []string{".qwen"}, ""}},
	{[]string{"gemini", "gemini-cli"}, places{"", []string{".gemini"}, ""}},
	{[]string{"goose"}, places{"", nil, "goose"}},
	{[]string{"copilot"}, places{"", []string{".copilot"}, ""}},
	{[]string{"cursor-agent"}, places{"", []string{".cursor"}, "cursor"}},
}

// wordsLooked is how many leading words of a command are searched for a program's name, as in npx
// -y opencode-ai acp.
const wordsLooked = 3

// ProgramPlaces lists the places of an agent's program under the environment env. They may not
// exist.
func ProgramPlaces(kind string, command, env []string) (found []string) {
	switch kind {
	case config.DriverACP, config.DriverClaude, config.DriverCodex:
	default:
		return nil // the owner names the places
	}
	value := func(name string) string {
		for i := len(env) - 1; i >= 0; i-- {
			if v, ok := strings.CutPrefix(env[i], name+"="); ok {
				return v
			}
		}
		return ""
	}
	home := value("HOME")
	words := append([]string{kind}, command[:min(wordsLooked, len(command))]...)
	for _, program := range programsAtHome {
		if !isCalled(program.names, words) {
			continue
		}
		if at := value(program.variable); program.variable != "" && filepath.IsAbs(at) {
			found = append(found, at)
		}
		if !filepath.IsAbs(home) {
			continue
		}
		for _, rest := range program.home {
			found = append(found, filepath.Join(home, rest))
		}
		if program.xdg == "" {
			continue
		}
		for variable, usual := range map[string]string{
			"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state", "XDG_CACHE_HOME": ".cache",
		} {
			at := value(variable)
			if !filepath.IsAbs(at) {
				at = filepath.Join(home, usual)
			}
			found = append(found, filepath.Join(at, program.xdg))
		}
	}
	return found
}

func isCalled(names, words []string) bool {
	for _, word := range words {
		base := filepath.Base(word)
		if at := strings.LastIndexByte(base, '@'); at > 0 { // for example opencode-ai@1.18
			base = base[:at]
		}
		for _, name := range names {
			if base == name {
				return true
			}
		}
	}
	return false
}
