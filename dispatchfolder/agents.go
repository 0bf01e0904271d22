package dispatchfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

// Fault is an agent's file that cannot be used, with the reason.
type Fault struct {
	File string
	Why  string // with advice
}

// Agents returns the agent descriptions in .claude/agents of the project and of the user, by name. If both
// have a name, the project's is used. Each is a Markdown file with name and description in its front matter,
// also in subfolders. A file that cannot be used is left out and returned as a fault. The error means that a
// folder cannot be listed.
func Agents(repo, home string) ([]dispatch.Description, []Fault, error) {
	var all []dispatch.Description
	var faults []Fault
	for _, base := range []string{repo, home} {
		if base == "" {
			continue
		}
		dir := filepath.Join(base, ".claude", "agents")
		files, err := agentFiles(dir)
		if err != nil {
			return nil, nil, err
		}
		for _, file := range files {
			if len(all) >= agentsMax {
				faults = append(faults, Fault{file, fmt.Sprintf("there are already %d agents, which is the maximum; this one is left out", agentsMax)})
				break
			}
			a, why := readAgent(file)
			switch {
			case why != "":
				faults = append(faults, Fault{file, why})
			case slices.ContainsFunc(all, func(is dispatch.Description) bool { return is.Name == a.Name }):
				if base == repo || repo == "" {
					faults = append(faults, Fault{file, fmt.Sprintf("another agent has the name %q; rename one of them", a.Name)})
				}
			default:
				all = append(all, a)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b dispatch.Description) int { return strings.Compare(a.Name, b.Name) })
	return all, faults, nil
}

// agentFiles returns the *.md files in a folder and its subfolders, in order. Links to files are followed, as
// agent programs do; links to folders are not, because they may form a loop.
func agentFiles(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil && path == dir:
			return fmt.Errorf("look for agents: %w; make the folder readable", err)
		case err != nil:
			return fs.SkipDir
		case len(files) > agentsMax:
			return fs.SkipAll
		case !e.IsDir() && filepath.Ext(path) == ".md":
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// readAgent reads a description; why says what is wrong with it.
func readAgent(file string) (a dispatch.Description, why string) {
	// O_NONBLOCK: opening a pipe must not block
	in, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) //nolint:gosec // .claude/agents belongs to the user
	if err != nil {
		return a, fmt.Sprintf("cannot be read: %v", err)
	}
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil:
		return a, fmt.Sprintf("cannot be read: %v", err)
	case !info.Mode().IsRegular():
		return a, "is not a regular file; replace it by one"
	case info.Size() > agentBytesMax:
		return a, fmt.Sprintf("is longer than %d KiB; shorten it", agentBytesMax>>10)
	}
	text := make([]byte, info.Size())
	n, err := in.ReadAt(text, 0)
	if err != nil && n < len(text) {
		return a, fmt.Sprintf("cannot be read: %v", err)
	}
	return describe(text[:n], file)
}

// describe parses a file's text.
func describe(text []byte, file string) (a dispatch.Description, why string) {
	fields, why := frontMatter(text)
	if why != "" {
		return a, why
	}
	a = dispatch.Description{Name: strings.TrimSpace(fields["name"]), Text: strings.TrimSpace(fields["description"]), File: file}
	if a.Name == "" {
		a.Name = strings.TrimSuffix(filepath.Base(file), ".md")
	}
	switch {
	case !goodName(a.Name):
		return a, fmt.Sprintf("its name %q cannot be a state; use letters, digits, - and _", clip.Within(a.Name, 60))
	case a.Text == "":
		return a, "has no description in its front matter; describe there when to use the agent"
	}
	return a, ""
}

// goodName reports whether a name can be a state: it appears in lines, on screens and in file names.
func goodName(name string) bool {
	if len(name) > nameBytesMax || name == dispatch.Main || name == dispatch.Desk {
		return false
	}
	for _, c := range name {
		if c <= ' ' || c == 0x7f || strings.ContainsRune("/\\\"'`<>|*?$&;", c) || c == '\uFFFD' {
			return false
		}
	}
	return name != "" && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "-")
}
