package edit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const bytesMax = 1 << 20 // the limit of config.Load

// Changed says that the file is not the one that a change was made for.
type Changed struct{}

func (*Changed) Error() string {
	return "fairlead.yaml was changed meanwhile, so nothing was written; look at the change again as it would be now"
}

// Read returns the text of the file in a folder, and its sum for Write.
func Read(dir string) ([]byte, file.Sum, error) {
	path := filepath.Join(dir, config.FileName)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("there is no %s in %s; `fairlead init` writes one: %w", config.FileName, dir, err)
	case err != nil:
		return nil, "", fmt.Errorf("read %s: %w", config.FileName, err)
	case info.Size() > bytesMax:
		return nil, "", byHand("the file is larger than 1 MiB")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", config.FileName, err)
	}
	return b, file.SumOf(b), nil
}

// MayWrite says why Write would not replace the file; nil: it would.
func MayWrite(dir string) error {
	path := filepath.Join(dir, config.FileName)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at %s: %w", config.FileName, err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path)
		return byHand("fairlead.yaml is a symbolic link to %q, which is not replaced", target)
	case !info.Mode().IsRegular():
		return byHand("fairlead.yaml is not a regular file")
	case info.Mode().Perm()&0o200 == 0:
		return &Refused{Why: fmt.Sprintf("fairlead.yaml is read-only (mode %#o); `chmod u+w fairlead.yaml` allows changes",
			info.Mode().Perm())}
	}
	return nil
}

// Write replaces the file in a folder, if its text still has the sum. The new file has the mode of the old one.
func Write(dir string, b []byte, sum file.Sum) error {
	if err := MayWrite(dir); err != nil {
		return err
	}
	if len(b) > bytesMax {
		return byHand("the file would be larger than 1 MiB")
	}
	path := filepath.Join(dir, config.FileName)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at %s: %w", config.FileName, err)
	}
	part, err := os.CreateTemp(dir, ".fairlead.yaml-")
	if err != nil {
		return fmt.Errorf("make a file beside %s; the folder must be writable: %w", config.FileName, err)
	}
	defer func() { _ = os.Remove(part.Name()) }() // the old text, or a part of the new one
	_, err = part.Write(b)
	err = errors.Join(err, part.Chmod(info.Mode().Perm()))
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return fmt.Errorf("write %s: %w", config.FileName, err)
	}
	if _, now, err := Read(dir); err != nil || now != sum {
		return errors.Join(err, &Changed{})
	}
	return swap(dir, filepath.Base(part.Name()), sum)
}

// swap puts a file in place of fairlead.yaml and looks at what it replaced, because another program may have written
// since the sum was compared. Its text comes back then.
func swap(dir, part string, sum file.Sum) error {
	folder, _, err := file.OpenFolder(dir)
	if err != nil {
		return err
	}
	defer file.CloseFolder(folder)
	switch err := file.Exchange(folder, part, config.FileName); {
	case file.Unsupported(err): // the comparison before has to do
		err = os.Rename(filepath.Join(dir, part), filepath.Join(dir, config.FileName))
		return errors.Join(err, file.SyncFolder(folder))
	case err != nil:
		return fmt.Errorf("replace %s: %w", config.FileName, err)
	}
	replaced, err := os.ReadFile(filepath.Join(dir, part))
	if err == nil && file.SumOf(replaced) != sum {
		err = &Changed{}
	}
	if err != nil {
		return errors.Join(err, file.Exchange(folder, part, config.FileName))
	}
	return file.SyncFolder(folder)
}

const hidden = "[hidden]"

// Diff returns the change of the file as a unified diff, empty if there is none. Values of environments and all that
// notify says are hidden, except references such as ${NAME}. Lines end in LF.
func Diff(before, after []byte) (string, error) {
	old, err := shown(before)
	if err != nil {
		return "", err
	}
	now, err := shown(after)
	if err != nil {
		return "", err
	}
	return string(diff.Diff("a/"+config.FileName, []byte(old), "b/"+config.FileName, []byte(now))), nil
}

var (
	reference = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)
	variable  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// lines are the lines of a part of the file as they are shown.
type lines struct {
	block
	text []string
}

// shown returns the text of the file with its secrets hidden. The lines of a secret key are written again from its values.
func shown(b []byte) (string, error) {
	s, err := parse(b)
	if err != nil {
		return "", err
	}
	root, err := config.Tree(b)
	if err != nil {
		return "", err
	}
	secret := map[file.Place]bool{} // of keys; an anchor's key may be at several paths
	if f := root.Field("notify"); f != nil {
		secret[f.Place] = true
	}
	if agents := root.Get("agents"); agents != nil {
		for _, agent := range agents.Fields {
			if f := agent.Value.Field("env"); f != nil {
				secret[f.Place] = true
			}
		}
	}
	if !hide(root, secret, false) {
		return strings.ReplaceAll(string(b), "\r\n", "\n"), nil
	}
	all, ok := s.hidden(root, s.end(), secret)
	if !ok || !s.comments(all) {
		all = []lines{{block{first: 1, behind: s.end()}, []string{rendered(root)}}}
	}
	slices.SortFunc(all, func(a, b lines) int { return cmp.Compare(b.first, a.first) })
	text := s.lines
	for _, part := range all {
		text = slices.Concat(text[:part.first-1], []string{strings.Join(part.text, "\n") + "\n"}, text[part.behind-1:])
	}
	return strings.ReplaceAll(strings.Join(text, ""), "\r\n", "\n"), nil
}

// hide replaces the values of secret keys in a tree, and reports whether there are any.
func hide(n *file.YAMLNode, secret map[file.Place]bool, inside bool) (found bool) {
	for i := range n.Fields {
		f := &n.Fields[i]
		if inside && !variable.MatchString(f.Name) {
			f.Name = hidden
		}
		if hide(f.Value, secret, inside || secret[f.Place]) || secret[f.Place] {
			found = true
		}
	}
	for _, item := range n.Items {
		found = hide(item, secret, inside) || found
	}
	if inside && len(n.Fields) == 0 && n.Kind != file.YAMLNull && !(n.Kind == file.YAMLText && reference.MatchString(n.Text)) {
		n.Kind, n.Text = file.YAMLBroken, hidden
	}
	return found
}

// hidden returns the lines to show in place of those with secrets. false: they cannot be found.
func (s *source) hidden(m *file.YAMLNode, limit int, secret map[file.Place]bool) (all []lines, ok bool) {
	if m.Tied || inBraces(m) || m.Kind != file.YAMLObject {
		return nil, false
	}
	for i, f := range m.Fields {
		if !secret[f.Place] && !hide(f.Value, secret, false) {
			continue
		}
		b, err := s.blockOf(m, i, limit)
		if err != nil {
			return nil, false
		}
		inside, ok := s.hidden(f.Value, b.behind, secret)
		switch {
		case secret[f.Place] && ok:
			inside = []lines{{b, []string{b.indent + f.Name + ":"}}}
			deeper := strings.Repeat(" ", f.Value.Column-1)
			for _, g := range f.Value.Fields {
				value := rendered(g.Value)
				if g.Value.Kind == file.YAMLText {
					value = quoted(g.Value.Text, false) // a reference
				}
				inside[0].text = append(inside[0].text, deeper+quoted(g.Name, false)+": "+value)
			}
		case secret[f.Place]:
			inside = []lines{{b, []string{b.indent + f.Name + ": " + rendered(f.Value)}}}
		case !ok:
			inside = []lines{{b, []string{b.indent + quoted(f.Name, false) + ": " + rendered(f.Value) + s.tail(b)}}}
		}
		all = append(all, inside...)
	}
	return all, true
}

// tail returns the comment behind a value of one line.
func (s *source) tail(b block) string {
	own, err := parse([]byte(strings.Join(s.lines[b.first-1:b.behind-1], "")))
	if err != nil || !own.sameWith(2, own.end()) {
		return ""
	}
	_, comment := own.cut(1)
	return comment
}

// comments reports whether the lines below the shown parts that look like comments are comments, and no part of a secret.
func (s *source) comments(all []lines) bool {
	var text []string
	for i, line := range s.lines {
		after := slices.ContainsFunc(all, func(part lines) bool { return i+1 >= part.behind && i+1 < s.key(part.behind) })
		if !after || !isComment(line) {
			text = append(text, line)
		}
	}
	root, err := config.Tree([]byte(strings.Join(text, "")))
	return err == nil && same(root, s.root)
}

// key returns the first line from one on that is neither blank nor like a comment.
func (s *source) key(n int) int {
	for n < s.end() && (blank(s.line(n)) || isComment(s.line(n))) {
		n++
	}
	return n
}
