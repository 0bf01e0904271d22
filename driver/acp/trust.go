package acp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// trustBytesMax limits a settings file that is read; a person's has a few kB.
const trustBytesMax = 1 << 20

// geminiTrusts reports whether Gemini CLI trusts a folder. Where it does not, it connects to no MCP
// server, and says so nowhere. The rules are those of its version 0.61.0: its variables, its flag, the
// setting that turns them off, and the longest of its rules for folders. A file that cannot be read
// trusts nothing. argv is its command.
func geminiTrusts(dir string, argv, env []string) bool {
	value := func(name string) (last string) {
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				last = v
			}
		}
		return last
	}
	own := value("GEMINI_CLI_TRUST_WORKSPACE")
	home := filepath.Join("/", value("HOME"), ".gemini")
	switch {
	case slices.Contains(argv, "--skip-trust"):
		return true
	case value("GEMINI_RESTRICTED_MODE") == "true", own == "false":
		return false
	case own == "true":
		return true
	}
	for _, file := range []string{"/etc/gemini-cli/settings.json", filepath.Join(home, "settings.json")} {
		if trust := readSettings(file).object("security").object("folderTrust"); string(trust["enabled"]) == "false" {
			return true
		}
	}
	file := value("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
	if file == "" {
		file = filepath.Join(home, "trustedFolders.json")
	}
	longest, trusted := -1, false
	for folder, raw := range readSettings(file) {
		var level string
		_ = json.Unmarshal(raw, &level) // other types are no level
		from := folder
		if level == "TRUST_PARENT" {
			from = filepath.Dir(folder)
		}
		if rel, err := filepath.Rel(resolved(from), resolved(dir)); err == nil && filepath.IsLocal(rel) && len(folder) > longest {
			longest, trusted = len(folder), strings.HasPrefix(level, "TRUST_")
		}
	}
	return trusted
}

// readSettings reads a JSON file; nil if it is not one.
func readSettings(file string) fields {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > trustBytesMax {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return objectOf(text)
}

// toolsIgnored returns why the program does not connect to the team's tools in a folder, and what to
// do; empty: it connects, or nothing is known.
func (p program) toolsIgnored(dir string, argv, env []string) string {
	if p.trusts == nil || p.trusts(dir, argv, env) {
		return ""
	}
	return p.name + " does not trust the folder " + dir + ", and does not connect to the team's tools there; start it there once by hand and trust the folder, " +
		`or put GEMINI_CLI_TRUST_WORKSPACE: "true" into the agent's env: it then also loads settings, hooks and servers of the folder`
}
