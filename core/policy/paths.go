package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const pathBytesMax = 4096 // the kernel's limit

// join appends a name to a folder; the disk resolves "..".
func join(folder, name string) string {
	if folder == "" {
		return name
	}
	return strings.TrimSuffix(folder, "/") + "/" + name
}

// abs makes a path of a tool's input absolute.
func (j *judge) abs(p string) (string, bool) {
	switch {
	case path.IsAbs(p):
		return p, true
	case p == "~" || strings.HasPrefix(p, "~/"):
		return join(j.where.Home, strings.TrimPrefix(p[1:], "/")), j.where.Home != ""
	default:
		return join(j.dir, p), path.IsAbs(j.dir)
	}
}

// below reports whether p is strictly below one of the folders.
func below(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return len(p) > len(folder) && strings.HasPrefix(p, folder) && (folder == "/" || p[len(folder)] == '/')
	})
}

// faultOf returns what is wrong with a path as text; empty: nothing.
func faultOf(p string) string {
	switch {
	case p == "":
		return "the path is no text: it is empty"
	case len(p) > pathBytesMax:
		return fmt.Sprintf("the path is no text that a disk takes: longer than %d bytes", pathBytesMax)
	case !utf8.ValidString(p):
		return "the path is no text"
	case strings.ContainsFunc(p, unicode.IsControl):
		return "the path is no plain text: there are control characters in it"
	}
	return ""
}

// protectedName reports whether a component of a path is one that X10 protects, on any file system: some
// ignore case, some drop invisible characters, some drop trailing ones.
func protectedName(component string) string {
	component = strings.Map(func(r rune) rune {
		if r != utf8.RuneError && unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, component)
	component = strings.TrimRight(component, " .")
	for _, name := range [...]string{".claude", ".fairlead", ".git"} {
		if strings.EqualFold(component, name) {
			return name
		}
	}
	return ""
}

// protects returns as what X10 protects an absolute path; empty: not protected.
func (j *judge) protects(p string) string {
	p = path.Clean(p)
	if slices.Contains(j.outputs, p) || j.where.Dialogue != "" && p == path.Clean(j.where.Dialogue) {
		return ""
	}
	rest := p
	for _, folder := range j.outputs {
		if below(p, []string{folder}) {
			rest = p[len(folder):]
		}
	}
	for _, folder := range j.session { // an earlier conversation's outputs hold work, not rules
		if after, ok := strings.CutPrefix(rest, folder+"/conversations/"); ok {
			conv, after, _ := strings.Cut(after, "/")
			if after, ok = strings.CutPrefix(after, "outputs/"); ok && strings.HasPrefix(conv, "conv_") {
				rest = "/" + after
			}
		}
	}
	for component := range strings.SplitSeq(rest, "/") {
		if name := protectedName(component); name != "" {
			return name + "/**"
		}
	}
	switch {
	case rest == p && (slices.Contains(j.session, p) || below(p, j.session)):
		return "the session's own files"
	case slices.Contains(j.guarded, p) || below(p, j.guarded):
		return "what says which session is whose"
	}
	return ""
}

// target is a place that a call would write to.
type target struct {
	given  string // as the call names it, for messages
	abs    string
	tree   bool // everything below it too: removed, moved, changed
	script bool // the new content begins with #!
	file   bool // of a file tool: a folder is refused
}

// mayWrite judges one place under three names: as given, as the kernel resolves it, and as a program that
// cleans paths as text sees it.
func (j *judge) mayWrite(t target) *denial {
	given := cut(t.given)
	p := j.place(j.dir, t.abs)
	if p.fault != "" {
		if name := j.protects(t.abs); name != "" && j.where.Model {
			return j.himself(given, name)
		}
		return j.unseen(given, p.fault)
	}
	places, files := p.names, p.files
	for _, p := range places {
		if name := j.protects(p); name != "" && j.where.Model {
			return j.himself(given, name)
		}
		if t.tree && j.where.Model && j.holds(p) {
			return j.himself(given, "what is below "+given)
		}
	}
	for _, f := range files {
		if !slices.Contains(j.writes, f.Path) {
			j.writes = append(j.writes, f.Path)
		}
		if d := j.byRules(t, places, f); d != nil {
			return d
		}
	}
	for _, f := range files {
		if j.bound {
			break
		}
		if d := j.byPlace(t, f); d != nil {
			return d
		}
	}
	return nil
}

// holds reports whether a folder contains protected files: changing all of it changes them.
func (j *judge) holds(p string) bool {
	inside := slices.Concat(j.session, j.guarded, []string{path.Clean(j.where.Repo), path.Clean(j.where.Home)})
	return slices.ContainsFunc(inside, func(folder string) bool {
		return folder != "." && (p == folder || below(folder, []string{p}))
	})
}

func (j *judge) himself(given, name string) *denial {
	return &denial{code: DeniedProtected, capability: "write " + given, why: fmt.Sprintf("%s is protected (%s)", given, name)}
}

// unseen judges a place that cannot be resolved: it might be one that X10 protects.
func (j *judge) unseen(given, why string) *denial {
	d := &denial{capability: "write " + given, why: why, instead: "name a plain path"}
	if !j.main && j.where.Model {
		d.code = DeniedProtected
	}
	return d
}

// byPlace applies the outputs rule: files belong into the conversation's outputs, and elsewhere only if the
// user named the path.
func (j *judge) byPlace(t target, f File) *denial {
	given := cut(t.given)
	switch {
	case t.file && f.Kind == Folder:
		return &denial{capability: "write " + given, why: given + " is a folder", instead: "name a file below " + j.outputsName()}
	case below(f.Path, j.outputs), slices.Contains(j.outputs, f.Path) && !t.tree:
		return nil
	case j.where.Dialogue != "" && !t.tree && slices.Contains(j.both(j.where.Dialogue), f.Path):
		return nil
	case j.named(f.Path):
		return nil
	}
	return &denial{
		capability: "write files outside the outputs",
		why:        fmt.Sprintf("%s is outside the conversation's outputs, and the user's input does not name it", given),
		instead:    "write below " + j.outputsName(),
	}
}

func (j *judge) outputsName() string {
	if len(j.outputs) == 0 {
		return "the outputs, once a conversation is open"
	}
	return j.outputs[0]
}

// named reports whether the user's input named a resolved path, or a folder above it. A bare name that is not
// at the repository's top matches that name anywhere in it: people write "fix parser.py".
func (j *judge) named(p string) bool {
	repo := j.both(j.where.Repo)
	for _, name := range j.where.Named {
		abs := name
		switch {
		case strings.HasPrefix(name, "~/"):
			abs = join(j.where.Home, name[2:])
		case !path.IsAbs(name):
			abs = join(j.where.Repo, name)
		}
		if faultOf(abs) != "" || !path.IsAbs(abs) {
			continue
		}
		f, err := j.disk.Look(abs)
		if err != nil || f.Path == "/" || f.Path == path.Clean(j.where.Home) {
			continue // the whole root is not meant
		}
		if p == f.Path || f.Kind != Regular && below(p, []string{f.Path}) {
			return true
		}
		bare, top := strings.CutPrefix(path.Clean(abs), path.Clean(j.where.Repo)+"/")
		if f.Kind == Missing && top && !strings.Contains(bare, "/") && path.Base(p) == bare && below(p, repo) {
			return true
		}
	}
	return false
}

// fileTool judges Write and similar tools.
func (j *judge) fileTool() *denial {
	in, fault := readInput(j.call.Input)
	if fault != "" {
		return j.unseen("a file", fault)
	}
	paths, fault := in.paths()
	if fault != "" {
		return j.unseen("a file", fault)
	}
	for _, p := range paths {
		at := j.place(j.dir, p)
		if at.abs == "" {
			return j.unseen("a file", at.fault)
		}
		if d := j.mayWrite(target{given: p, abs: at.abs, script: beginsScript(j.call.Input), file: true}); d != nil {
			return d
		}
	}
	return nil
}

// readTool allows reading everything except what never ends.
func (j *judge) readTool() *denial {
	in, fault := readInput(j.call.Input)
	if !j.main {
		return nil
	}
	if fault != "" {
		return j.unseen("a file", fault)
	}
	for _, key := range in.keys {
		p, ok := in.text(key)
		if isPathKey(key) && ok && j.isDevice(p) {
			return &denial{
				capability: "read a device",
				why: fmt.Sprintf("%s is a device or a pipe: reading it may never end, or may consume another program's data",
					cut(p)),
				instead: "read a file",
			}
		}
	}
	return nil
}

// isDevice reports whether reading a path could block, never end, or have an effect.
func (j *judge) isDevice(p string) bool {
	return slices.ContainsFunc(j.place(j.dir, p).files, func(f File) bool {
		return f.Path != "/dev/null" && (f.Kind == Other || below(f.Path, []string{"/dev"}) ||
			has("kmsg kcore trace_pipe mem pagemap", path.Base(f.Path)) && below(f.Path, []string{"/proc", "/sys"}))
	})
}
