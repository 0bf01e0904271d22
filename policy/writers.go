package policy

import (
	"path"
	"slices"
	"strings"
)

// writer is a program that writes the files that it is given.
type writer struct {
	valued  string // letters whose value is the next word
	first   int    // words before the files (a mode, an owner)
	last    bool   // only the last word is written
	tree    bool   // everything below too
	into    bool   // -t FOLDER, and a last word that is a folder: files are written below it
	moves   bool   // the other words are written too, because they are removed
	folders bool   // -d: all words are folders that are made
	links   bool   // the other words get another name
	whole   bool   // set by -T: the last word is replaced by a folder, even if it is one
}

func writerOf(name string) (writer, bool) {
	switch name {
	case "tee", "mkfifo", "mknod":
		return writer{}, true
	case "rm", "rmdir", "unlink", "shred":
		return writer{valued: "ns", tree: true}, true
	case "touch":
		return writer{valued: "drt"}, true
	case "truncate":
		return writer{valued: "sr"}, true
	case "mkdir":
		return writer{valued: "mZ"}, true
	case "chmod", "chown", "chgrp", "chattr":
		return writer{first: 1, tree: true}, true
	case "cp":
		return writer{valued: "SZ", last: true, into: true}, true
	case "install":
		return writer{valued: "mogSZ", last: true, into: true, folders: true}, true
	case "mv":
		return writer{valued: "SZ", last: true, into: true, moves: true}, true
	case "ln", "link":
		return writer{valued: "S", last: true, into: true, links: true}, true
	}
	return writer{}, false
}

func (s *shell) writer(w writer, args []value) {
	var words []value
	var into *value
	ended := false
	for i := 0; i < len(args); i++ {
		v := args[i]
		if ended || !strings.HasPrefix(v.text, "-") || v.text == "-" {
			words = append(words, v)
			continue
		}
		name, attached, _ := strings.Cut(v.text, "=")
		letters := strings.TrimPrefix(name, "-")
		switch {
		case v.text == "--":
			ended = true
		case w.into && strings.HasPrefix(name, "--t") && strings.HasPrefix("--target-directory", name): // a long flag may be cut short
			if attached == "" && i+1 < len(args) {
				i++
				into = &args[i]
			} else {
				into = &value{text: attached, split: !v.static()}
			}
		case strings.HasPrefix(name, "--"):
			w.flag(name)
			if w.into && (strings.HasPrefix(name, "--b") || strings.HasPrefix(name, "--su")) {
				s.j.doubts("the names of the backups that it makes are not known")
			}
		default:
			for at, letter := range []byte(letters) { // the first that takes a value takes the rest of the word, or the next one
				isInto := w.into && letter == 't'
				switch {
				case w.into && (letter == 'b' || letter == 'S'):
					s.j.doubts("the names of the backups that it makes are not known")
				case letter == 'T':
					w.flag("--no-target-directory")
				case letter == 'd':
					w.flag("--directory")
				}
				if !isInto && strings.IndexByte(w.valued, letter) < 0 {
					continue
				}
				rest := value{text: v.text[at+2:], split: !v.static()}
				if rest.text == "" && i+1 < len(args) {
					i++
					rest = args[i]
				}
				if isInto {
					into = &rest
				}
				break
			}
		}
	}
	words = words[min(w.first, len(words)):]
	if !w.last {
		for _, v := range words {
			s.writes(v, w.tree)
		}
		return
	}
	s.writesLast(w, words, into)
}

// flag takes a flag that changes which words are written.
func (w *writer) flag(name string) {
	switch {
	case w.into && strings.HasPrefix("--no-target-directory", name) && len(name) > len("--no-"):
		w.whole = true
	case w.folders && strings.HasPrefix("--directory", name) && len(name) > len("--"):
		w.last, w.into = false, false
	}
}

// writesLast judges cp and similar programs: the last word is the destination.
func (s *shell) writesLast(w writer, words []value, into *value) {
	if into == nil && len(words) == 1 && w.links {
		into = &value{text: "."}
	}
	if into == nil {
		if len(words) < 2 {
			return
		}
		into, words = &words[len(words)-1], words[:len(words)-1]
	}
	for _, v := range words {
		if into.static() && v.static() && s.isFolder(*into) {
			s.protectedOnly(value{text: join(into.text, path.Base(v.text))})
		}
		switch {
		case w.moves:
			s.writes(v, true)
		case w.links: // another name for it, of either kind
			s.protectedOnly(v)
			s.j.doubts("what is written by the name " + into.show() + " afterwards is " + v.show())
		}
	}
	if w.whole {
		s.writes(*into, true)
		return
	}
	if s.j.bound && into.static() && s.isFolder(*into) {
		s.writesInto(*into, words)
		return
	}
	if s.j.bound && into.static() && slices.ContainsFunc(words, s.isFolder) {
		s.writes(value{text: join(into.text, anyFile)}, false)
		for _, abs := range s.abs(into.text) {
			s.j.doubtsBelow(into.show(), path.Clean(abs))
		}
	}
	s.writes(*into, false)
}

func (s *shell) isFolder(v value) bool {
	for _, abs := range s.abs(v.text) {
		if f, err := s.j.disk.Look(abs); err == nil && f.Kind == Folder {
			return true
		}
	}
	return false
}

// sedWrites judges sed -i: the files after the script.
func (s *shell) sedWrites(args []value) {
	inPlace, given, backup := false, false, ""
	var words []value
	for i := 1; i < len(args); i++ {
		v := args[i]
		switch {
		case strings.HasPrefix(v.text, "--in-place"):
			inPlace = true
			_, backup, _ = strings.Cut(v.text, "=")
		case strings.HasPrefix(v.text, "--"):
			given = given || strings.HasPrefix(v.text, "--expression") || strings.HasPrefix(v.text, "--file")
		case strings.HasPrefix(v.text, "-") && len(v.text) > 1:
			letters, suffix, cutOff := strings.Cut(v.text[1:], "i")
			if inPlace = inPlace || cutOff; cutOff {
				backup = suffix
			}
			if n := len(letters); n > 0 && !cutOff && (letters[n-1] == 'e' || letters[n-1] == 'f') {
				given = true
				i++
			}
		default:
			words = append(words, v)
		}
	}
	if !inPlace {
		s.unknownCommand("sed", args)
		return
	}
	if !given && len(words) > 0 {
		words = words[1:]
	}
	for _, v := range words {
		s.writes(v, false)
		if backup != "" {
			s.writes(value{text: v.text + backup, split: v.split, glob: v.glob || strings.ContainsAny(backup, "*/")}, false)
		}
	}
}
