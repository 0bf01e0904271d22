package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FindProgram looks up an agent's program like a shell in its workspace, with the PATH of the given
// environment. The result is absolute, so it does not depend on where the process is started. The
// error says how to fix it.
func FindProgram(a Agent, env []string) (string, error) {
	if len(a.Command) == 0 || a.Command[0] == "" {
		return "", fmt.Errorf("agent %s has no command; name its program, as in `command: [opencode, acp]`", a.Name)
	}
	for _, word := range a.Command {
		if strings.ContainsRune(word, 0) {
			return "", fmt.Errorf("the command of agent %s contains a NUL byte; remove it", a.Name)
		}
	}
	program := a.Command[0]
	if strings.Contains(program, "/") {
		path := program
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.Workspace, path)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("agent %s: command %s: %w", a.Name, program, err)
		}
		return path, nil
	}
	var path string
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) { // "." in PATH would start the wrong program
			continue
		}
		if full := filepath.Join(dir, program); executable(full) == nil {
			return full, nil
		}
	}
	return "", fmt.Errorf("agent %s: command %s is not in the PATH; install it, or give its whole path", a.Name, program)
}

// interpreters are programs whose first argument is usually the file that they run, with the options before it
// that have no value. Behind another option the file is not looked for.
var interpreters = map[string]string{
	"sh": "aefhkmnptuvx", "bash": "aefhkmnptuvxBCEHPlir", "dash": "aefmnuvxI", "zsh": "aefnuvx", "fish": "liN",
	"python": "bBdEiIOqsSuvx", "python3": "bBdEiIOqsSuvx", "perl": "wWTtX", "ruby": "wWv", "node": "", "deno": "", "bun": "", "php": "nq", "pwsh": "",
}

// findsMore are interpreters that also try other names than the one that they are given.
var findsMore = []string{"node", "deno", "bun", "php", "pwsh", "fish", "zsh"}

// CheckScript returns an error if the command is an interpreter with a script file that does not exist, as
// in `sh agent.sh` where agent.sh lies beside the workspace.
func CheckScript(a Agent) error {
	words := a.Command
	if len(words) > 0 && filepath.Base(words[0]) == "env" {
		words = words[1:]
		for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
			words = words[1:]
		}
	}
	if len(words) < 2 {
		return nil
	}
	name := filepath.Base(words[0])
	plain, known := interpreters[name]
	if !known {
		return nil
	}
	words = words[1:]
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' && strings.Trim(words[0][1:], plain) == "" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "://") {
		return nil
	}
	script := words[0]
	if filepath.Ext(script) == "" && (slices.Contains(findsMore, name) || strings.HasSuffix(name, "sh") && !strings.Contains(script, "/")) {
		return nil // node finds server.js, and a shell looks in PATH
	}
	path := script
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Workspace, path)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("agent %s: %s finds no file %s; a relative path begins in the workspace, %s", a.Name, name, script, a.Workspace)
	}
	return nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("no such file; correct the path (a relative one begins in the workspace)")
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("is a folder; name the program in it")
	case info.Mode()&0o111 == 0:
		return errors.New("is not executable; chmod +x it, or name the program that runs it first")
	}
	return nil
}
