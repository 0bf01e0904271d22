package claudehook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// OtherHook is a hook of the user that the program calls before each shell command.
type OtherHook struct {
	File string // the settings file that has it, or the argument
	Text string // its command, or its type
}

func (o OtherHook) String() string { return fmt.Sprintf("the hook %q in %s", cut(o.Text, 200), o.File) }

// pluginsMax is how many plugins are looked at.
const pluginsMax = 1000

// hooksText is the part of a settings file, or of a plugin, that names hooks.
type hooksText struct {
	Hooks struct {
		PreToolUse []struct {
			Matcher *string `json:"matcher"`
			Hooks   []struct {
				Type    string `json:"type"`
				Command string `json:"command"`
				URL     string `json:"url"`
			} `json:"hooks"`
		} `json:"PreToolUse"`
	} `json:"hooks"`
	Plugins map[string]any `json:"enabledPlugins"`
}

// OtherHooks finds the user's hooks that are called before a shell command. Each may replace the command, and
// of several answers the program takes the one that arrives last. Therefore MAIN's commands are not sure to run
// in the sandbox beside one. It looks at the settings files of the machine, the user and the project, at enabled
// plugins, and at the program's arguments. Hooks that fairlead.yaml names in dispatch.hooks do not count. What
// cannot be read counts as a hook.
func (h Hook) OtherHooks(dir string) []OtherHook {
	s := &hookSearch{from: h.project(dir), plugins: map[string]bool{}}
	folders := h.arguments(s)
	for _, path := range h.settingsFiles(dir) {
		s.file(path)
	}
	for _, folder := range append(folders, h.pluginFolders(s)...) {
		s.file(filepath.Join(folder, "hooks", "hooks.json"))
		s.file(filepath.Join(folder, ".claude-plugin", "plugin.json"))
	}
	if len(s.found) == 0 {
		return nil
	}
	known, err := configuredIn(s.from)
	if err != nil {
		return append(s.found, OtherHook{"fairlead.yaml", err.Error()})
	}
	return slices.DeleteFunc(s.found, func(o OtherHook) bool { return slices.Contains(known.Hooks, o.Text) })
}

// Beside returns the other hooks that run beside Fairlead's. installed is false if no settings file of the user or the
// project has Fairlead's hooks.
func (h Hook) Beside(dir string) (others []OtherHook, installed bool) {
	for _, path := range h.settingsFiles(dir) {
		text, _, err := readSmall(path)
		if err != nil {
			continue // OtherHooks names a file that cannot be read
		}
		if has, err := HasHooks(text); err == nil && has {
			return h.OtherHooks(dir), true
		}
	}
	return nil, false
}

// hookSearch collects hooks.
type hookSearch struct {
	from    string          // where relative paths begin
	plugins map[string]bool // enabled
	found   []OtherHook
}

// file looks at a file, if it is there.
func (s *hookSearch) file(path string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.from, path)
	}
	text, _, err := readSmall(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.found = append(s.found, OtherHook{path, err.Error()})
	default:
		s.text(path, text)
	}
}

// text looks at the text of a settings file or of a plugin's file.
func (s *hookSearch) text(file string, text []byte) {
	var is hooksText
	if err := json.Unmarshal(text[bom(text):], &is); err != nil { // "hooks" of a plugin may be the name of a file
		s.found = append(s.found, OtherHook{file, err.Error()})
		return
	}
	for name, on := range is.Plugins {
		if on != false && len(s.plugins) < pluginsMax {
			s.plugins[name] = true
		}
	}
	for _, group := range is.Hooks.PreToolUse {
		if group.Matcher != nil && !mayMatchShell(*group.Matcher) {
			continue
		}
		for _, one := range group.Hooks {
			if !isCommandOfOurs(one.Command) {
				s.found = append(s.found, OtherHook{file, cmp.Or(one.Command, one.URL, one.Type)})
			}
		}
	}
}

// settingsFiles are the settings files of the machine, the user and the project.
func (h Hook) settingsFiles(dir string) []string {
	project := filepath.Join(h.project(dir), ".claude")
	managed, _ := filepath.Glob("/etc/claude-code/managed-settings.d/*.json") // the pattern is right
	return append(
		managed, "/etc/claude-code/managed-settings.json", filepath.Join(h.settingsHome(), "settings.json"),
		filepath.Join(project, "settings.json"), filepath.Join(project, "settings.local.json"),
	)
}

func (h Hook) settingsHome() string {
	return cmp.Or(h.Env("CLAUDE_CONFIG_DIR"), filepath.Join(h.Home, ".claude"))
}

var toolNames = regexp.MustCompile(`^\w+(\|\w+)*$`)

// mayMatchShell reports whether a matcher may match the tool for shell commands. A list of names matches these;
// anything else is a pattern that the program reads.
func mayMatchShell(matcher string) bool {
	return !toolNames.MatchString(matcher) || slices.Contains(strings.Split(matcher, "|"), "Bash")
}

// pluginFolders are the folders of plugins that are installed and enabled.
func (h Hook) pluginFolders(s *hookSearch) (folders []string) {
	if len(s.plugins) == 0 {
		return nil
	}
	path := filepath.Join(h.settingsHome(), "plugins", "installed_plugins.json")
	text, _, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var is struct {
		Plugins map[string][]struct {
			Path string `json:"installPath"`
		} `json:"plugins"`
	}
	if err == nil {
		err = json.Unmarshal(text[bom(text):], &is)
	}
	if err != nil {
		s.found = append(s.found, OtherHook{path, err.Error()})
	}
	for name := range s.plugins {
		for _, at := range is.Plugins[name] {
			if at.Path != "" && len(folders) < pluginsMax {
				folders = append(folders, at.Path)
			}
		}
	}
	return folders
}

// arguments looks at what --settings names in the arguments of the program, and returns the folders of --plugin-dir.
func (h Hook) arguments(s *hookSearch) (folders []string) {
	if h.Args == nil {
		return nil
	}
	args := h.Args()
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case name == "--plugin-dir" && len(folders) < pluginsMax:
			folders = append(folders, value)
		case name == "--settings" && strings.HasPrefix(strings.TrimSpace(value), "{"):
			s.text("the program's argument --settings", []byte(value))
		case name == "--settings" && value != "":
			s.file(value)
		}
	}
	return folders
}
