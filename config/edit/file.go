package edit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/lazy"
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
		return &Refused{Why: fmt.Sprintf("fairlead.yaml is read-only (mode %#o); `chmod u+w fairlead.yaml` allows changes", info.Mode().Perm())}
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
	passedOn = lazy.Regexp(`^\s*[A-Za-z_][A-Za-z0-9_]*:\s+"?\$\{[A-Za-z_][A-Za-z0-9_]*\}"?\s*$`)
	keyOnly  = lazy.Regexp(`^\s*(- )?["']?[A-Za-z_][A-Za-z0-9_]*["']?:(\s|$)`)
)

// span is a part of the text.
type span struct{ from, to int }

// shown returns the text of the file with its secrets hidden.
func shown(b []byte) (string, error) {
	s, err := parse(b)
	if err != nil {
		return "", err
	}
	var secret []file.YAMLField // keys of which the values are hidden
	if f := s.root.Field("notify"); f != nil {
		secret = append(secret, *f)
	}
	for _, agent := range fieldsOf(s.root.Get("agents")) {
		if f := agent.Value.Field("env"); f != nil {
			secret = append(secret, *f)
		}
	}
	public := map[int]bool{}
	keysOf(s.root, secret, public)
	var spans []span
	for _, f := range secret {
		spans = append(spans, s.secrets(f, public)...)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var out strings.Builder
	at := 0
	for _, sp := range spans {
		if sp.from >= at && sp.to > sp.from {
			out.WriteString(s.text[at:sp.from] + hidden)
		}
		at = max(at, sp.to)
	}
	out.WriteString(s.text[at:])
	return strings.ReplaceAll(out.String(), "\r\n", "\n"), nil
}

// keysOf collects the lines of all keys that are not below a secret one.
func keysOf(n *file.YAMLNode, secret []file.YAMLField, public map[int]bool) {
	for _, f := range n.Fields {
		public[f.Line] = true
		hide := false
		for _, g := range secret {
			hide = hide || g.Place == f.Place
		}
		if !hide {
			keysOf(f.Value, secret, public)
		}
	}
	for _, item := range n.Items {
		keysOf(item, secret, public)
	}
}

// secrets returns the parts of the text that a key's value hides. All lines up to the next key that is not below it
// are its own.
func (s *source) secrets(f file.YAMLField, public map[int]bool) (spans []span) {
	lineEnd := func(n int) int { return s.start(n) + len(s.line(n)) }
	at := s.offset(f.Place)
	colon := s.behindKey(at)
	if colon < 0 || colon > lineEnd(f.Line) {
		colon = at
	}
	value := strings.TrimSpace(s.text[colon:lineEnd(f.Line)])
	block := value == "" || strings.HasPrefix(value, "#")
	if !block {
		if items, _, end, err := s.itemsOf(f.Value); err == nil && !tied(f.Value) && end < lineEnd(f.Line) {
			for _, it := range items {
				if ref := s.text[it.value:it.end]; reference().FindString(strings.Trim(ref, `"`)) != strings.Trim(ref, `"`) {
					spans = append(spans, span{it.value, it.end})
				}
			}
			return spans
		}
		begin := colon + len(s.text[colon:lineEnd(f.Line)]) - len(strings.TrimLeft(s.text[colon:lineEnd(f.Line)], " \t"))
		spans = append(spans, span{begin, lineEnd(f.Line)})
	}
	for n := f.Line + 1; n < s.end() && !public[n]; n++ {
		line := s.line(n)
		from := s.start(n) + len(line) - len(strings.TrimLeft(line, " \t"))
		switch {
		case strings.TrimSpace(line) == "" || block && passedOn().MatchString(line):
			continue
		case block && isComment(line) && indentOf(line) < f.Column:
			continue // it belongs to what follows
		case block && keyOnly().MatchString(line):
			behind := s.start(n) + strings.IndexByte(line, ':') + 1
			if from = behind + len(line) - (behind - s.start(n)) - len(strings.TrimLeft(line[behind-s.start(n):], " \t")); from >= lineEnd(n) {
				continue
			}
		}
		spans = append(spans, span{from, lineEnd(n)})
	}
	return spans
}
