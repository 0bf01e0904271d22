package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// writer is a program that writes the files that it is given. Its other flags may name files or change which
// words are written, so every word of such a command counts as a file.
type writer struct {
	plain  string // letters of flags that do not change which words are written
	valued string // letters whose value is the next word
	first  int    // words before the files (a mode, an owner)
	last   bool   // only the last word is written, or, if it is a folder, the others by their names in it
	tree   bool   // everything below too
	moves  bool   // the other words are written too, because they are removed
	links  bool   // the other words get another name
}

var writers = map[string]writer{
	"tee": {plain: "aip"}, "mkfifo": {valued: "m"}, "mknod": {valued: "m"}, "touch": {plain: "acmh", valued: "drt"},
	"truncate": {plain: "co", valued: "sr"}, "mkdir": {plain: "pv", valued: "m"},
	"rm": {plain: "dfiIrRv", tree: true}, "rmdir": {plain: "pv", tree: true}, "unlink": {tree: true},
	"shred": {plain: "fuvxz", valued: "ns", tree: true},
	"chmod": {plain: "cfvR", first: 1, tree: true}, "chown": {plain: "cfvRhHLP", first: 1, tree: true},
	"chgrp": {plain: "cfvRhHLP", first: 1, tree: true}, "chattr": {plain: "RVf", first: 1, tree: true},
	"cp": {plain: "aAdfiHLnpPrRuvx", last: true}, "install": {plain: "cCDpsv", valued: "mog", last: true},
	"mv": {plain: "finuv", last: true, moves: true},
	"ln": {plain: "fsivnrLP", last: true, links: true}, "link": {last: true, links: true},
	"sed": {plain: "nErszui", valued: "ef", first: 1},
}

// plainFlags are the long flags of those that do not change which words are written.
const plainFlags = "--recursive --force --verbose --parents --append --interactive --no-clobber --preserve --archive --update --symbolic --quiet --silent --no-create --in-place --regexp-extended --null-data"

func (s *shell) writer(base string, w writer, args []value) {
	var words []value
	unread, ended, tree := "", false, w.tree
	for i := 1; i < len(args); i++ {
		v := args[i]
		if ended || !strings.HasPrefix(v.text, "-") || v.text == "-" {
			words = append(words, v)
			continue
		}
		letters := strings.TrimPrefix(v.text, "-")
		name, _, valued := strings.Cut(v.text, "=")
		tree = tree || w.last && (strings.ContainsAny(letters, "rRa") && letters[0] != '-' || name == "--recursive" || name == "--archive")
		switch {
		case v.text == "--":
			ended = true
		case has(plainFlags, name) && !(valued && base == "sed"):
		case v.static() && strings.Trim(letters, w.plain) == "" &&
			(base != "sed" || strings.IndexByte(letters, 'i') == len(letters)-1 ||
				!strings.Contains(letters, "i")): // -iE: what follows ends the backup's name
		case len(letters) == 1 && strings.Contains(w.valued, letters):
			if i++; base == "sed" && i < len(args) {
				w.first = 0
				s.edits(args[i])
			}
		default:
			unread = v.show()
		}
	}
	if unread != "" {
		s.j.doubts("what " + base + " writes with the flag " + unread + " is not known")
		for _, v := range args[1:] {
			for _, part := range wordPaths(v.text) {
				if !strings.HasPrefix(part, "-") {
					s.writes(value{text: part, glob: v.glob, split: v.split}, tree)
				}
			}
		}
		return
	}
	if base == "sed" && w.first > 0 && len(words) > 0 {
		s.edits(words[0])
	}
	words = words[min(w.first, len(words)):]
	if w.last {
		s.writesLast(w, words)
		return
	}
	for _, v := range words {
		s.writes(v, w.tree)
	}
}

// plainEdit is a script of sed that deletes or replaces, and nothing else.
var plainEdit = regexp.MustCompile(`^([0-9]+|\$|/(\\.|[^/\\])*/)?(,([0-9]+|\$))?(d|s/(\\.|[^/\\])*/(\\.|[^/\\])*/[gpI0-9]*|s\|(\\.|[^|\\])*\|(\\.|[^|\\])*\|[gpI0-9]*)$`)

// edits makes sed doubtful whose script may do more.
func (s *shell) edits(script value) {
	if !script.static() || !plainEdit.MatchString(script.text) {
		s.j.doubts("sed's script " + script.show() + " may write other files, or run programs")
	}
}

// writesLast judges cp and similar programs: the last word is the destination.
func (s *shell) writesLast(w writer, words []value) {
	switch {
	case len(words) == 0:
		return
	case len(words) == 1 && w.links:
		words = append(words, value{text: "."})
	}
	into, words := words[len(words)-1], words[:len(words)-1]
	for _, v := range words {
		if w.moves {
			s.writes(v, true)
		}
		if w.links { // another name for it, of either kind
			s.j.doubts("what is written by the name " + into.show() + " afterwards is " + v.show())
		}
		s.puts(v, into)
	}
}

// puts judges what a copy writes: the destination, or, if that is a folder, the file by its name there. Of a folder,
// everything in it.
func (s *shell) puts(v, into value) {
	to := into
	if into.static() && s.isFolder(into) {
		name := path.Base(strings.TrimRight(v.text, "/"))
		if !v.static() || name == "." || name == ".." || name == "/" {
			name = string(hole)
		}
		to = value{text: join(into.text, name), split: v.split}
	}
	tree := v.static() && s.isFolder(v)
	s.writes(to, tree)
	if tree && s.j.bound && to.static() {
		s.writes(value{text: join(to.text, anyFile)}, false)
		for _, abs := range s.abs(to.text) {
			s.j.doubtsBelow(v.show(), path.Clean(abs))
		}
	}
}

// anyFile stands for the files of a folder that is copied to a place where it may not exist yet.
const anyFile = "…/…"

func (s *shell) isFolder(v value) bool {
	return slices.ContainsFunc(s.abs(v.text), func(abs string) bool {
		f, err := s.j.disk.Look(abs)
		return err == nil && f.Kind == Folder
	})
}
