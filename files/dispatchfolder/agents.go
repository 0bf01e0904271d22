package dispatchfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// Fault is an agent's file that cannot be used, with the reason.
type Fault struct {
	File string
	Why  string // with advice
}

// Agents returns the agent descriptions in .claude/agents of the project and of the user (or agents in CLAUDE_CONFIG_DIR), by name. If both
// have a name, the project's is used. Each is a Markdown file with name and description in its front matter,
// also in subfolders. A file that cannot be used is left out and returned as a fault. The error means that a
// folder cannot be listed.
func Agents(repo, home string) ([]dispatch.Description, []Fault, error) {
	var all []dispatch.Description
	var faults []Fault
	ofUser := os.Getenv("CLAUDE_CONFIG_DIR") // Claude Code reads the user's files there, if it is set
	if ofUser == "" && home != "" {
		ofUser = filepath.Join(home, ".claude")
	}
	ofProject := filepath.Join(repo, ".claude")
	for _, base := range []string{ofProject, ofUser} {
		if base == "" || base == ofProject && repo == "" {
			continue
		}
		dir := filepath.Join(base, "agents")
		files, err := agentFiles(dir)
		if err != nil {
			return nil, nil, err
		}
		for _, file := range files {
			if len(all) >= agentsMax {
				faults = append(faults,
					Fault{file, fmt.Sprintf("there are already %d agents, which is the maximum; this one is left out", agentsMax)})
				break
			}
			a, why := readAgent(file)
			switch {
			case why != "":
				faults = append(faults, Fault{file, why})
			case slices.ContainsFunc(all, func(is dispatch.Description) bool { return is.Name == a.Name }):
				if base == ofProject || repo == "" {
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

// frontMatter reads the fields at the top of a Markdown file: the part between two lines ---. It reads the
// subset of YAML that is used there and is as lenient as the programs that own these files: a text with a
// colon needs no quotes. Lists and mappings are left out. why says what is wrong.
//
// It does not use a YAML library, because it runs in a hook that must start within a millisecond, and because
// most descriptions in use are not valid YAML.
func frontMatter(text []byte) (fields map[string]string, why string) {
	if !utf8.Valid(text) {
		return nil, "is not UTF-8; save it as UTF-8"
	}
	rest, ok := strings.CutPrefix(string(file.Unmarked(text)), "---")
	first, rest, more := strings.Cut(rest, "\n")
	if !ok || !more || strings.TrimSpace(first) != "" {
		return nil, "has no front matter; begin it with a line ---, then name: and description:, then a line ---"
	}
	var lines []string
	ended := false
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "---" || line == "..." {
			ended = true
			break
		}
		lines = append(lines, line)
	}
	if !ended {
		return nil, "has front matter that does not end; add a line --- after it"
	}
	fields = map[string]string{}
	for i := 0; i < len(lines); {
		key, value, ok := strings.Cut(lines[i], ":")
		if !ok || key == "" || strings.ContainsAny(key[:1], " \t#-") || value != "" && value[0] != ' ' && value[0] != '\t' {
			i++
			continue
		}
		end := i + 1
		unsaid := strings.TrimSpace(value) == "" || strings.TrimSpace(value)[0] == '#' // a comment may precede the text
		for end < len(lines) && (lines[end] == "" || lines[end][0] == ' ' || lines[end][0] == '\t' || unsaid && lines[end][0] == '#') {
			end++
		}
		end = quoteEnds(strings.TrimSpace(value), lines, i+1, end)
		if _, twice := fields[strings.TrimSpace(key)]; !twice {
			fields[strings.TrimSpace(key)] = scalar(strings.TrimSpace(value), lines[i+1:end])
		}
		i = end
	}
	return fields, ""
}

// quotedLinesMax bounds the search for the end of a quoted text.
const quotedLinesMax = 100

// quoteEnds returns where a quoted text ends that began on the line before first. YAML lets it continue on
// lines without indentation. Without an end it is not a quoted text.
func quoteEnds(value string, lines []string, first, end int) int {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return end
	}
	for n := end; n <= min(len(lines), first+quotedLinesMax); n++ {
		if _, ok := quoted(folded(append([]string{value}, lines[first:n]...))); ok {
			return n
		}
	}
	return end
}

// scalar reads a text: the part after the colon, and the indented lines below.
func scalar(value string, below []string) string {
	switch mark, _, _ := strings.Cut(value, " #"); {
	case value != "" && (value[0] == '|' || value[0] == '>') && strings.Trim(mark[1:], "+-0123456789 ") == "":
		return block(value[0] == '>', below)
	case value != "" && (value[0] == '"' || value[0] == '\''):
		if text, ok := quoted(folded(append([]string{value}, below...))); ok {
			return text
		}
	case value == "" && len(below) > 0 && strings.HasPrefix(strings.TrimSpace(below[0]), "- "):
		return ""
	}
	var lines []string
	for _, line := range append([]string{value}, below...) {
		i := strings.Index(" "+line, " #")
		if i < 0 {
			lines = append(lines, line)
			continue
		}
		if line = strings.TrimSpace(line[:max(0, i-1)]); line != "" || strings.TrimSpace(strings.Join(lines, "")) != "" {
			return folded(append(lines, line)) // a comment ends the text
		}
	}
	return folded(lines)
}

// folded joins lines like YAML: one line break is a space, an empty line is a line break.
func folded(lines []string) string {
	var b strings.Builder
	breaks := 0
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" {
			breaks++
			continue
		}
		switch {
		case b.Len() == 0:
		case breaks > 0:
			b.WriteString(strings.Repeat("\n", breaks))
		default:
			b.WriteByte(' ')
		}
		breaks = 0
		b.WriteString(line)
	}
	return b.String()
}

// block returns lines as they are, without their indentation.
func block(fold bool, lines []string) string {
	indent := -1
	for _, line := range lines {
		if line != "" {
			indent = len(line) - len(strings.TrimLeft(line, " \t"))
			break
		}
	}
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		cut := min(max(indent, 0), len(line)-len(strings.TrimLeft(line, " \t")))
		out = append(out, line[cut:])
	}
	if fold {
		return folded(out)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// quoted reads a quoted text; ok is false if the quotes do not close at its end.
func quoted(text string) (string, bool) {
	mark, body := text[0], text[1:]
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case c == mark && mark == '\'' && i+1 < len(body) && body[i+1] == '\'':
			b.WriteByte(c)
			i++
		case c == mark:
			rest := strings.TrimSpace(body[i+1:])
			return b.String(), rest == "" || rest[0] == '#'
		case c == '\\' && mark == '"' && i+1 < len(body):
			i++
			switch body[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(body[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}
