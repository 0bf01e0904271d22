package policytest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/policy"
)

const linksMax = 40 // symlinks on one path, the kernel's limit

var (
	errLoop     = errors.New("too many links on the way")
	errNoFolder = errors.New("something on the way is no folder")
)

// Fake is the scene in memory.
func Fake(s Scene) policy.Disk {
	f := fake{}
	for _, e := range s.Tree() {
		f[e.Path] = e
	}
	for p := path.Dir(s.Root); ; p = path.Dir(p) {
		f[p] = Entry{Path: p, Mode: fs.ModeDir | 0o755}
		if p == "/" {
			break
		}
	}
	f["/dev"] = Entry{Path: "/dev", Mode: fs.ModeDir | 0o755}
	return f
}

type fake map[string]Entry

func (f fake) Look(p string) (policy.File, error) {
	at, _, err := f.resolve("/", p, 0)
	if err != nil {
		return policy.File{}, err
	}
	e, ok := f[at]
	file := policy.File{Path: at, Kind: policy.Missing}
	switch {
	case !ok:
		return file, nil
	case e.Mode.IsDir():
		file.Kind = policy.Folder
		return file, nil
	case e.Mode&fs.ModeNamedPipe != 0:
		file.Kind = policy.Other
		return file, nil
	}
	file.Kind, file.Links = policy.Regular, 1
	for _, other := range f {
		if e.Same != "" && other.Path == e.Same || other.Same == at {
			file.Links++
		}
	}
	if e.Same != "" {
		e = f[e.Same]
	}
	file.Exec, file.Script = e.Mode&0o111 != 0, strings.HasPrefix(e.Text, "#!")
	return file, nil
}

// resolve walks a path like the kernel. missing means that the rest does not exist.
func (f fake) resolve(from, p string, links int) (at string, missing bool, err error) {
	at = from
	if path.IsAbs(p) {
		at = "/"
	}
	for component := range strings.SplitSeq(p, "/") {
		switch e := f[at]; {
		case component == "" || component == ".":
			continue
		case component == ".." && missing:
			return "", false, fmt.Errorf("%s: %w", at, errNoFolder)
		case component == "..":
			at = path.Dir(at)
			continue
		case !missing && !e.Mode.IsDir() && e.Path != "":
			return "", false, fmt.Errorf("%s: %w", at, errNoFolder)
		}
		next := path.Join(at, component)
		e, ok := f[next]
		if !ok {
			at, missing = next, true
			continue
		}
		if e.Link == "" {
			at, missing = next, false
			continue
		}
		if links++; links > linksMax {
			return "", false, fmt.Errorf("%s: %w", next, errLoop)
		}
		if at, missing, err = f.resolve(at, e.Link, links); err != nil {
			return "", false, err
		}
	}
	return at, missing, nil
}

// RunDisk checks that an implementation of policy.Disk sees a real scene correctly.
func RunDisk(t *testing.T, disk policy.Disk) {
	s := Build(t)
	out, repo := s.Outputs+"/", s.Repo+"/"
	for _, c := range []struct {
		path string
		want policy.File
	}{
		{repo + "README.md", policy.File{Path: repo + "README.md", Kind: policy.Regular, Links: 1}},
		{repo + "run", policy.File{Path: repo + "run", Kind: policy.Regular, Exec: true, Script: true, Links: 1}},
		{out + "bit.md", policy.File{Path: out + "bit.md", Kind: policy.Regular, Exec: true, Links: 1}},
		{out + "shebang.txt", policy.File{Path: out + "shebang.txt", Kind: policy.Regular, Script: true, Links: 1}},
		{out + "hard.md", policy.File{Path: out + "hard.md", Kind: policy.Regular, Links: 2}},
		{s.Outside + "/file.txt", policy.File{Path: s.Outside + "/file.txt", Kind: policy.Regular, Links: 2}},
		{repo, policy.File{Path: s.Repo, Kind: policy.Folder}},
		{repo + "pipe", policy.File{Path: repo + "pipe", Kind: policy.Other}},
		{"/dev/null", policy.File{Path: "/dev/null", Kind: policy.Other}},
		{repo + "nothing", policy.File{Path: repo + "nothing", Kind: policy.Missing}},
		{repo + "no/where/at all", policy.File{Path: repo + "no/where/at all", Kind: policy.Missing}},
		{repo + "docs/./../app.py", policy.File{Path: repo + "app.py", Kind: policy.Regular, Links: 1}},
		{repo + "docs/out", policy.File{Path: s.Outside, Kind: policy.Folder}},
		{repo + "docs/out/../home", policy.File{Path: s.Home, Kind: policy.Folder}}, // not docs/home
		{repo + "docs/out/new.md", policy.File{Path: s.Outside + "/new.md", Kind: policy.Missing}},
		{out + "link.md", policy.File{Path: out + "a.py", Kind: policy.Regular, Links: 1}},
		{out + "dangling.md", policy.File{Path: out + "new.py", Kind: policy.Missing}},
		{out + "esc.md", policy.File{Path: repo + ".claude/settings.json", Kind: policy.Regular, Links: 1}},
		{out + "up/state.jsonl", policy.File{Path: s.Session + "/state.jsonl", Kind: policy.Regular, Links: 1}},
		{repo + "gitlink/config", policy.File{Path: repo + ".git/config", Kind: policy.Regular, Links: 1}},
	} {
		got, err := disk.Look(c.path)
		if err != nil || got != c.want {
			t.Errorf("Look(%s) is\n%+v, %v; it should be\n%+v", c.path, got, err, c.want)
		}
	}
	for _, p := range []string{out + "loop", out + "loop/x", repo + "README.md/x"} {
		if got, err := disk.Look(p); err == nil {
			t.Errorf("Look(%s) is %+v; it cannot be known, and should be an error", p, got)
		}
	}
}
