package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FindProgram looks up an agent's program as a shell in its workspace does, with the PATH of the
// given environment. The result is absolute, so it does not depend on where the process is started.
// The error says how to fix it.
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

// CheckScript returns an error if the command names a file that exists only in a folder above the
// workspace, as `python3 agent.py` does if agent.py is beside the workspace. Only the first
// argument that looks like a file counts. A file that exists nowhere may be created by the program;
// if not, the program reports it.
func CheckScript(a Agent) error {
	for _, word := range a.Command[min(1, len(a.Command)):] {
		if strings.HasPrefix(word, "-") || strings.ContainsAny(word, "= \n") || !strings.ContainsAny(word, "./") {
			continue
		}
		if filepath.IsAbs(word) || exists(filepath.Join(a.Workspace, word)) {
			return nil
		}
		for dir := a.Workspace; dir != filepath.Dir(dir); {
			if dir = filepath.Dir(dir); exists(filepath.Join(dir, word)) {
				return fmt.Errorf("agent %s: there is no file %s in its workspace, %s, where it is started, but in %s; give the whole path", a.Name, word, a.Workspace, dir)
			}
		}
		return nil
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
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
