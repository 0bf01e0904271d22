package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
)

// Bound is the result of checking a call against an agent's own bounds. The zero value: nothing against it.
type Bound struct {
	// Denied: the call violates the bounds.
	Denied string
	// Doubt is why it cannot be decided whether the call keeps the bounds, such as a file name that is only
	// known when a command runs: no pattern allows the call, a person may.
	Doubt string
	// Unclear means that a known program runs whose writes the command line does not show: only a pattern
	// that names it, or a person, allows it.
	Unclear bool
}

// Within checks a call against an agent's own bounds: the four lists of `permissions` in fairlead.yaml. A nil
// list sets no bound; an empty list of what it can do permits nothing.
//
// can_write and cannot_write hold globs relative to the workspace (Where.Repo), absolute ones, and those that
// begin with ~/; one without a slash matches names in every folder. A plain folder stands for everything
// below it. The seed's two phrases mean the same as in Rules. Everything that a call is known to write must
// be listed, in the same case, under each of its names: as spelled, and resolved.
//
// can_execute and cannot_execute hold names of programs (go, python*), paths of programs (scripts/**), and
// words with which commands begin (git push). Commands that only gather information need not be listed.
//
// paths are as for Answer. Denials by X10 are not Within's; Answer and Judge add them.
func Within(bounds Rules, call Call, paths []string, where Where, disk Disk) Bound {
	if bounds.silent() {
		return Bound{}
	}
	return newReading(call, paths, where, disk).within(bounds)
}

// silent reports that there is no list.
func (r Rules) silent() bool {
	return r.CanWrite == nil && len(r.CannotWrite) == 0 && r.CanExecute == nil && len(r.CannotExecute) == 0
}

// ofFiles reports that there is a list for writing.
func (r Rules) ofFiles() bool { return r.CanWrite != nil || len(r.CannotWrite) > 0 }

// ParseBound checks one entry of a list; executes says which kind. Its error is phrased to follow the entry's
// name.
func ParseBound(text string, executes bool) error {
	shown := fmt.Sprintf("%q", cut(text))
	if err := checkText(text, "name a file or a program, as src/** or go"); err != nil {
		return err
	}
	switch {
	case executes && strings.Contains(text, "(") && !strings.Contains(text, " ("):
		return fmt.Errorf("%s is written as for allow and deny; write only the program here, such as git or git push", shown)
	case !executes && slices.Contains(strings.Split(text, "/"), ".."):
		return fmt.Errorf("%s leads out by ..; write an absolute path or ~/ for files outside of the workspace", shown)
	case !doublestar.ValidatePattern(boundGlob(text)):
		return fmt.Errorf("%s is not a glob; write a [ or { that is not closed as \\[ or \\{", shown)
	}
	return nil
}

// within is Within for a parsed call. Its texts are one line, whatever the call holds.
func (r *reading) within(bounds Rules) Bound {
	b := r.weighed(bounds)
	b.Denied, b.Doubt = oneLine(b.Denied), oneLine(b.Doubt)
	return b
}

func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

func (r *reading) weighed(bounds Rules) Bound {
	tool := r.call.Tool
	switch {
	case tool == "Bash":
		return r.commandWithin(bounds)
	case readsFiles(tool), has(harmlessTools, tool), !bounds.ofFiles():
		return Bound{}
	case changesFiles(tool):
		return r.filesWithin(bounds, r.files)
	}
	return r.strangerWithin(bounds)
}

// commandWithin checks a command line against the bounds.
func (r *reading) commandWithin(bounds Rules) Bound {
	if r.shell == nil || !r.known {
		return Bound{Doubt: "its command cannot be read"}
	}
	j := r.boundJudge(bounds)
	if d := j.shellTool(); d != nil && d.code != DeniedProtected {
		return Bound{Denied: d.why}
	}
	deny := bounds.denials()
	switch {
	case slices.ContainsFunc(r.shell.commands, func(c command) bool {
		return slices.ContainsFunc(deny, func(p Pattern) bool {
			return strings.Contains(strings.TrimSuffix(p.arg, " *"), " ") && p.mayTake(c.words)
		})
	}):
		j.doubts("a word is only known when it runs, and may make it a command that cannot_execute lists")
	case r.hidesDenied(deny):
		j.doubts("a program or a file that is denied may be among its words")
	}
	if r.shell.closed {
		j.doubts("the folder in which it runs is unknown")
	}
	return Bound{Doubt: j.doubt, Unclear: j.unclear && bounds.ofFiles()}
}

// filesWithin checks what a file tool changes against the bounds.
func (r *reading) filesWithin(bounds Rules, files []place) (b Bound) {
	j := r.boundJudge(bounds)
	if len(files) == 0 {
		j.doubts("it does not say which file it changes")
	}
	for _, f := range files {
		if f.fault != "" {
			j.doubts(f.fault)
			continue
		}
		if d := j.mayWrite(target{given: f.given, abs: f.abs, script: beginsScript(r.call.Input)}); d != nil && d.code != DeniedProtected {
			return Bound{Denied: d.why}
		}
	}
	return Bound{Doubt: j.doubt}
}

// strangerWithin checks an unknown tool: whether it writes the files that it is given is not known, so what
// would be a denial is a doubt.
func (r *reading) strangerWithin(bounds Rules) Bound {
	files := slices.Clone(r.paths)
	if in, fault := readInput(r.call.Input); fault == "" {
		named, _ := namedFiles(in, 0)
		for _, p := range named {
			files = append(files, r.place(p))
		}
	}
	if len(files) == 0 {
		return Bound{}
	}
	b := r.filesWithin(bounds, files)
	if b.Denied != "" {
		b = Bound{Doubt: "the tool " + cut(r.call.Tool) + " may write: " + b.Denied}
	}
	return b
}

// boundJudge returns a judge that uses the bounds as rules.
func (r *reading) boundJudge(bounds Rules) *judge {
	where := r.j.where
	where.Model = true
	j := newJudge(bounds, false, r.call, where, r.j.disk)
	j.bound = true
	return j
}

// doubts keeps the first reason why it cannot be decided whether a call keeps the bounds.
func (j *judge) doubts(why string) {
	if j.bound && j.doubt == "" {
		j.doubt = why
	}
}

// doubtful records a property of a file that the command line does not show: it is another name of a file, or
// a folder that holds files which must not be written.
func (j *judge) doubtful(t target, f File) {
	if f.Kind == Regular && f.Links > 1 {
		j.doubts(cut(t.given) + " has other names on the disk (hard links), so other files may change too")
	}
	if t.tree && f.Kind == Folder {
		j.doubtsBelow(t.given, f.Path)
	}
}

// doubtsBelow records that a folder which changes completely may hold files of cannot_write.
func (j *judge) doubtsBelow(given, folder string) {
	for _, pattern := range j.rules.CannotWrite {
		if isPhrase(pattern, anyExecutable) || j.reaches(boundGlob(pattern), folder) {
			j.doubts(cut(given) + " may contain files that cannot_write lists (" + pattern + ")")
			return
		}
	}
}

// reaches reports whether a glob may match something below a folder.
func (j *judge) reaches(glob, folder string) bool {
	rest, ofHome := strings.CutPrefix(glob, "~/")
	base, _ := doublestar.SplitPattern(rest)
	roots := j.both(j.where.Repo)
	switch {
	case !strings.Contains(glob, "/"):
		return true
	case ofHome:
		roots = j.both(j.where.Home)
	case path.IsAbs(glob):
		roots = []string{"/"}
	}
	folder = strings.ToLower(folder)
	return slices.ContainsFunc(roots, func(root string) bool {
		root = strings.ToLower(path.Join(root, base))
		return root == folder || below(root, []string{folder}) || below(folder, []string{root})
	})
}

// boundGlob is an entry in the form for matching.
func boundGlob(entry string) string {
	entry = strings.TrimPrefix(entry, "./")
	if strings.HasSuffix(entry, "/") {
		entry += "**"
	}
	return entry
}

// forbids reports whether an entry of cannot_write matches a path in any case, or a folder above it.
func (j *judge) forbids(entry, p string) (bool, error) {
	glob := boundGlob(entry)
	if !doublestar.ValidatePattern(glob) {
		return false, doublestar.ErrBadPattern
	}
	r := reading{j: j}
	for ; ; p = path.Dir(p) {
		if r.glob(glob, p, false, true) {
			return true, nil
		}
		if !j.bound || p == "/" || p == "." || slices.Contains(j.both(j.where.Repo), p) {
			return false, nil
		}
	}
}

// lists reports whether an entry of can_write matches a path, and with tree everything that may be below it. Bounds
// are compared with exact letters.
func (j *judge) lists(entry, p string, tree bool) bool {
	glob, r := boundGlob(entry), reading{j: j}
	switch {
	case !j.bound:
		return r.glob(glob, p, false, true)
	case r.glob(glob, p, tree, false):
		return true
	case strings.ContainsAny(glob, `*?[{\`):
		return false
	}
	return r.glob(glob+"/**", p, tree, false)
}
