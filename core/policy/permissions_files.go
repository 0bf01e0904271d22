package policy

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// place is one file or folder that a call names, with all its possible meanings.
type place struct {
	given string
	abs   string
	names []string // as spelled, and resolved
	files []File   // what is there
	fault string   // why the path is not known; empty: it is
	tree  bool     // everything below it is searched
	bound bool     // it has other hard links, or is not a regular file or folder
}

// places returns what a file tool's call names, at any depth of its arguments. A file whose name cannot be
// understood is a place with a fault.
func (r *reading) places(in input) []place {
	all := slices.Clone(r.paths)
	if !r.known {
		all = append(all, place{fault: "its arguments cannot be read"})
	}
	named, fault := namedFiles(in, 0)
	if fault != "" {
		all = append(all, place{fault: fault})
	}
	for _, p := range named {
		all = append(all, r.place(p))
	}
	switch {
	case changesFiles(r.call.Tool):
		if len(r.paths) == 0 && slices.ContainsFunc(in.keys, func(key string) bool { return has(patchKeys, key) }) {
			all = append(all, place{fault: "it applies a patch, and the call does not name the files"})
		}
	case has("Glob Grep LS", r.call.Tool):
		if len(all) == 0 && r.known {
			all = append(all, r.place(r.j.dir))
		}
		for i := range all {
			all[i].tree = r.call.Tool != "LS"
		}
		for _, key := range []string{"pattern", "glob", "include"} {
			if p, ok := in.text(key); ok && (key != "pattern" || r.call.Tool == "Glob") && leavesFolder(p) {
				all = append(all, place{given: p, fault: "the pattern leads elsewhere"})
			}
		}
	}
	return all
}

// patchKeys are arguments that hold changes of several files in their own format.
const patchKeys = "patch patchText patch_text diff unified_diff changes operations"

// otherPathKeys are other arguments with which some programs name a file, as text or as a list.
const otherPathKeys = "paths files file filename filepath target_file targetFile target source from to dest destination old_path new_path oldPath newPath uri"

// namedFiles returns the files that arguments name, also in lists and objects within them.
func namedFiles(in input, depth int) (paths []string, fault string) {
	for _, key := range in.keys {
		p, ok := in.text(key)
		switch value := in.values[key]; {
		case ok && (isPathKey(key) || has(otherPathKeys, key)):
			paths = append(paths, p)
		case ok:
		case isPathKey(key) && string(value) != "null":
			return paths, "its " + key + " is no text"
		default:
			more, fault := namedWithin(value, has(otherPathKeys, key), depth+1)
			if paths = append(paths, more...); fault != "" {
				return paths, fault
			}
		}
	}
	return paths, ""
}

// namedWithin searches a value that is not text. listed means that text in a list is a path.
func namedWithin(value json.RawMessage, listed bool, depth int) (paths []string, fault string) {
	const depthMax = 8 // no tool's arguments are deeper
	switch {
	case len(value) == 0 || value[0] != '{' && value[0] != '[':
		return nil, ""
	case depth > depthMax:
		return nil, "its arguments are nested too deep"
	case value[0] == '{':
		inner, fault := readInput(value)
		if fault != "" {
			return nil, fault
		}
		return namedFiles(inner, depth)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(value, &items); err != nil {
		return nil, "its arguments cannot be read"
	}
	for _, item := range items {
		var text string
		if listed && len(item) > 0 && item[0] == '"' && json.Unmarshal(item, &text) == nil {
			paths = append(paths, text)
			continue
		}
		more, fault := namedWithin(item, listed, depth+1)
		if paths = append(paths, more...); fault != "" {
			return paths, fault
		}
	}
	return paths, ""
}

// plainBraces are alternatives that cannot put together an absolute path, or the name of the folder above.
var plainBraces = regexp.MustCompile(`\{[\w*?][\w*?.-]*(,[\w*?][\w*?.-]*)*\}`)

// leavesFolder reports whether a glob may match outside the folder that it is relative to.
func leavesFolder(pattern string) bool {
	rest := plainBraces.ReplaceAllLiteralString(pattern, "x")
	return path.IsAbs(rest) || strings.HasPrefix(rest, "~") || strings.ContainsAny(rest, "{}()\\$") ||
		slices.Contains(strings.Split(rest, "/"), "..")
}

func (r *reading) place(given string) place { return r.j.place(r.j.dir, given) }

// place resolves a name under its possible meanings: as the kernel does, and as a program that cleans paths as text.
func (j *judge) place(dir, given string) place {
	p := place{given: given, fault: faultOf(given)}
	if p.fault != "" {
		return p
	}
	abs, ok := j.abs(given)
	if !path.IsAbs(given) && !strings.HasPrefix(given, "~") {
		abs, ok = join(dir, given), path.IsAbs(dir)
	}
	if !ok {
		p.fault = "it is not known where ~ or the working folder is"
		return p
	}
	p.abs, p.names = abs, []string{path.Clean(abs)}
	for _, spelled := range []string{abs, path.Clean(abs)} {
		f, err := j.disk.Look(spelled)
		if err != nil {
			p.fault = fmt.Sprintf("where %s leads cannot be known: %v", cut(given), err)
			return p
		}
		if !slices.Contains(p.names, f.Path) {
			p.names = append(p.names, f.Path)
		}
		if !slices.ContainsFunc(p.files, func(known File) bool { return known.Path == f.Path }) {
			p.files = append(p.files, f)
		}
		p.bound = p.bound || f.Kind == Other || f.Kind == Regular && f.Links > 1
	}
	return p
}

// covers reports whether a pattern's glob matches a place: all of its names, or, for a denial, any.
func (r *reading) covers(p Pattern, f place, any bool) bool {
	for _, name := range f.names {
		if r.glob(p.arg, name, f.tree && !any, any) == any {
			return any
		}
	}
	return !any && len(f.names) > 0
}

// glob matches a pattern against one absolute path. A pattern without a slash matches names: anywhere to
// deny, and below the workspace to allow. A denial ignores case, because many file systems do.
func (r *reading) glob(pattern, name string, whole, deny bool) bool {
	fold := func(text string) string {
		if deny {
			return strings.ToLower(text)
		}
		return text
	}
	if whole {
		const anything = "\x01/\x01" // stands for any file below a folder
		name += "/" + anything
	}
	name = fold(name)
	pattern, ofHome := strings.CutPrefix(fold(pattern), "~/")
	folders := r.j.both(r.j.where.Repo)
	switch {
	case ofHome:
		folders = r.j.both(r.j.where.Home)
	case path.IsAbs(pattern):
		return isMatch(pattern, name)
	}
	inside := deny
	for _, folder := range folders {
		folder = fold(folder)
		if takes(pattern, folder, name) {
			return true
		}
		inside = inside || name == folder || below(name, []string{folder})
	}
	return inside && !ofHome && !strings.Contains(pattern, "/") && pattern != "**" && isMatch(pattern, path.Base(name))
}

func isMatch(pattern, name string) bool {
	ok, err := doublestar.Match(pattern, name)
	return ok && err == nil
}

// takes matches a glob against a path relative to a folder.
func takes(pattern, folder, name string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(folder, "/")+"/")
	if !ok {
		return name == folder && (pattern == "**" || isMatch(pattern, "."))
	}
	return isMatch(pattern, rest)
}

// filesAllowed returns the patterns that cover every file that the call names.
func (r *reading) filesAllowed(allow, deny []Pattern) []string {
	changes := changesFiles(r.call.Tool)
	if changes && len(r.files) == 0 {
		return nil // what it would change is unknown
	}
	if slices.ContainsFunc(r.files, func(f place) bool { return r.doubtful(f, deny) }) {
		return nil
	}
	var used []string
	covered := func(f place) bool {
		governs := ""
		if changes {
			governs = r.governing(f.names)
		}
		for _, p := range allow {
			if !p.names(r.call.Tool) || p.kind == fileArg && !r.covers(p, f, false) || governs != "" && !strings.Contains(p.arg, governs) {
				continue
			}
			if !slices.Contains(used, p.text) {
				used = append(used, p.text)
			}
			return true
		}
		return false
	}
	for _, f := range r.files {
		if !covered(f) {
			return nil
		}
	}
	if len(r.files) == 0 && !covered(place{}) {
		return nil
	}
	return used
}

// governors are files and folders of a workspace that govern an agent, besides those that X10 protects: an
// agent that may write there without a question could change its own permissions for the next session. A
// pattern allows it only if it names them.
var governors = []string{
	"fairlead.yaml", "agent_state.json", "opencode.json", "opencode.jsonc", ".opencode", ".qwen", ".gemini", ".codex", ".cursor",
	".copilot", ".goose",
	".mcp.json", ".vscode", ".envrc",
}

// governing returns what among a file's names governs an agent; empty: nothing.
func (r *reading) governing(names []string) string {
	for _, name := range names {
		for _, workspace := range r.j.both(r.j.where.Repo) { // names above the workspace do not count
			if below(name, []string{workspace}) {
				name = name[len(workspace):]
				break
			}
		}
		for component := range strings.SplitSeq(name, "/") {
			if i := slices.IndexFunc(governors,
				func(g string) bool { return strings.EqualFold(g, strings.TrimRight(component, " .")) }); i >= 0 {
				return governors[i]
			}
		}
	}
	return ""
}

// doubtful reports whether no pattern may allow a file: its target is not known, it has another hard link,
// reading it may never end, or a part of what is below it is denied.
func (r *reading) doubtful(f place, deny []Pattern) bool {
	switch {
	case f.fault != "", f.bound && changesFiles(r.call.Tool), f.abs != "" && r.j.isDevice(f.abs):
		return true
	case r.call.Tool != "Grep":
		return false
	}
	return slices.ContainsFunc(deny, func(p Pattern) bool { return p.kind == fileArg && p.names("Grep") })
}
