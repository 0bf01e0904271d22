package policy

import (
	"fmt"
	"path"
	"strings"
)

// effects judges a command that does not only look, for somebody who may run commands: what it
// is known to write, and whether it goes for what X10 protects.
func (s *shell) effects(base string, args []value, p *problem) {
	if d := s.release(base, args[1:]); d != nil {
		s.stopFor(d)
		return
	}
	if list := s.j.rules.CannotExecute; s.forbidden(list, base) {
		s.stopFor(&denial{capability: capabilityOf(base), why: fmt.Sprintf("cannot_execute lists %s", base)})
		return
	}
	switch base {
	case "fairlead":
		return
	case "git":
		s.gitWrites(args[1:])
		return
	case "find":
		s.findActs(args[1:])
		return
	case "dd":
		for _, v := range args[1:] {
			if to, ok := strings.CutPrefix(v.text, "of="); ok {
				v.text = to
				s.writes(v, false)
			}
		}
		return
	case "sed":
		s.sedWrites(args)
		return
	case "export", "unset", "alias", "shopt", "trap", "hash", "wait", "sleep", "kill", "umask", "ulimit", "set", "read", "printf", "test", "[", "jobs", "pushd", "popd":
		s.builtin(base, args, p)
		return
	}
	if w, ok := writerOf(base); ok {
		s.writer(w, args[1:])
		return
	}
	s.unknownCommand(base, args)
}

func (s *shell) forbidden(list []string, base string) bool {
	for _, pattern := range list {
		if ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(base)); ok && err == nil {
			return true
		}
	}
	return false
}

// builtin are commands of the shell itself that write no file.
func (s *shell) builtin(base string, args []value, p *problem) {
	switch base {
	case "pushd", "popd":
		s.dirs = nil
	case "trap":
		if len(args) > 1 && args[1].static() {
			s.within(args[1].text)
		}
	case "alias":
		s.cannot(p.capability, "alias gives a command another name", "")
	}
}

// release denies what would end a session or lift a hold: that is a person's, from outside.
func (s *shell) release(base string, args []value) *denial {
	if !s.j.where.Model {
		return nil
	}
	switch base {
	case "fairlead":
		var words []string
		for _, v := range args {
			if !strings.HasPrefix(v.text, "-") {
				words = append(words, v.text)
			}
		}
		switch {
		case len(words) == 0, has("status ps why watch events docs route version help log doctor runs", words[0]):
			return nil
		case len(words) > 1 && words[0] == "session" && has("status list log", words[1]), len(words) > 1 && words[0] == "policy" && words[1] == "check":
			return nil
		}
		return &denial{row: rowAll, capability: "govern the session", why: "only a person's input or the command line outside ends a session, changes permissions or lifts a hold"}
	case "kill", "pkill", "killall", "systemctl", "launchctl":
		for _, v := range args {
			if strings.Contains(strings.ToLower(v.text), "fairlead") {
				return &denial{row: rowAll, capability: "govern the session", why: base + " " + v.show() + " would end what holds the rules"}
			}
		}
	}
	return nil
}

// writer is a program that writes the files it is told.
type writer struct {
	valued string // letters whose value is the next word
	first  int    // so many words before the files (a mode, an owner)
	last   bool   // only the last word is written
	tree   bool   // all that is below, too
	into   bool   // -t FOLDER, and a last word that is a folder: written below it
	moves  bool   // the other words are written, too: they are gone afterwards
	links  bool   // the other words get another name
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
		return writer{valued: "mogSZ", last: true, into: true}, true
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
		case w.into && (name == "--target-directory" || letters == "t" && !strings.HasPrefix(name, "--")):
			if attached == "" && i+1 < len(args) {
				i++
				into = &args[i]
			} else {
				into = &value{text: attached, split: !v.static()}
			}
		case strings.HasPrefix(name, "--"):
		case w.into && strings.HasPrefix(letters, "t"):
			into = &value{text: letters[1:], split: !v.static()}
		default:
			if strings.IndexByte(w.valued, letters[len(letters)-1]) >= 0 {
				i++
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

// writesLast judges cp and its like: the last word is where the others go.
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

// writes judges one word that is a file to be written.
func (s *shell) writes(v value, tree bool) {
	switch {
	case s.stop != nil || v.text == "" || has("/dev/null /dev/stdout /dev/stderr /dev/tty /dev/fd/1 /dev/fd/2", v.text):
	case s.strict:
		s.cannot("write files from the shell", v.show()+" would be written", "write the file with the tool Write")
	case v.glob || !v.static():
		s.writesSomewhere(v)
	case len(s.dirs) == 0 && !strings.HasPrefix(v.text, "/"):
		s.writesSomewhere(value{text: string(hole) + "/" + v.text})
	default:
		for _, abs := range s.abs(v.text) {
			s.stopFor(s.j.mayWrite(target{given: v.text, abs: abs, tree: tree}))
		}
	}
}

// protectedOnly denies a word that leads to what X10 protects, and has no opinion otherwise.
func (s *shell) protectedOnly(v value) {
	if !v.static() {
		s.writesSomewhere(v)
		return
	}
	if name := s.leadsTo(v.text); name != "" {
		s.stopFor(s.j.himself(v.show(), name))
	}
}

// leadsTo says what X10 protects a plain word as, where it is a path; empty: nothing.
func (s *shell) leadsTo(text string) string {
	if !s.j.where.Model || text == "" || len(text) > pathBytesMax {
		return ""
	}
	for _, abs := range s.abs(text) {
		if name := s.j.protects(abs); name != "" {
			return name
		}
		if f, err := s.j.disk.Look(abs); err == nil {
			if name := s.j.protects(f.Path); name != "" {
				return name
			}
		}
	}
	return ""
}

// writesSomewhere judges a file whose name is only known in part.
func (s *shell) writesSomewhere(v value) {
	rest := v.text
	for _, folder := range s.j.outputs {
		if after, ok := strings.CutPrefix(rest, folder+"/"); ok {
			rest = after
		}
	}
	if rest == v.text && !strings.HasPrefix(rest, "/") {
		for _, dir := range s.dirs { // a relative word in a protected folder
			if name := s.j.protects(dir); name != "" && s.j.where.Model {
				s.stopFor(s.j.himself(v.show(), name))
				return
			}
		}
	}
	for component := range strings.SplitSeq(rest, "/") {
		if name := mayBeProtected(component, v.glob); name != "" && s.j.where.Model {
			s.stopFor(s.j.himself(v.show(), name+"/**"))
			return
		}
	}
	s.cannot("write files from the shell", "where "+v.show()+" leads is only known when it runs", "")
}

// mayBeProtected says which protected name a component is, or may be by its glob.
func mayBeProtected(component string, glob bool) string {
	if name := protectedName(component); name != "" {
		return name
	}
	if !glob || !strings.HasPrefix(component, ".") && !strings.HasPrefix(component, "[") {
		return "" // no glob but one that begins with the dot meets a hidden name
	}
	pattern := strings.ReplaceAll(component, string(hole), "*")
	for _, name := range [...]string{".claude", ".fairlead", ".git"} {
		if ok, err := path.Match(pattern, name); ok || err != nil {
			return name
		}
	}
	return ""
}

// unknownCommand notes a command whose effects nobody can tell by its words, unless it is given
// something that X10 protects, or runs there: then it is denied.
func (s *shell) unknownCommand(base string, args []value) {
	if s.strict || s.stop != nil {
		return
	}
	for i, v := range args {
		if i == 0 {
			continue
		}
		if before := args[i-1].text; strings.HasPrefix(before, "-") && (strings.Contains(before, "exclude") || strings.Contains(before, "ignore")) ||
			strings.HasPrefix(v.text, "-") && (strings.Contains(v.text, "exclude") || strings.Contains(v.text, "ignore")) {
			continue
		}
		s.mentions(v.text, base)
		if _, after, ok := strings.Cut(v.text, "="); ok {
			v.text = after
		}
		if s.looks++; s.looks < looksMax && v.static() && !strings.ContainsAny(v.text, " \n;") && !strings.HasPrefix(v.text, "-") {
			s.protectedOnly(v)
		}
	}
	s.mentions(s.stdin, base)
	for _, dir := range s.dirs {
		if name := s.j.protects(dir); name != "" && s.j.where.Model {
			s.stopFor(s.j.himself(base+" in "+dir, name))
		}
	}
	if base != "" {
		s.cannot(capabilityOf(base), "what "+cut(base)+" writes cannot be told from its words", "")
	}
}

// mentions denies a text that names what X10 protects, where something that is not known to only
// read is given it.
func (s *shell) mentions(text, by string) {
	if text == "" || s.stop != nil || !s.j.where.Model {
		return
	}
	plain := strings.ToLower(text)
	for _, folder := range s.j.outputs {
		folder = strings.ToLower(folder)
		plain = strings.ReplaceAll(plain, folder, "")
		for _, dir := range s.dirs {
			if rel, ok := strings.CutPrefix(folder, strings.ToLower(dir)+"/"); ok {
				plain = strings.ReplaceAll(plain, rel, "")
			}
		}
	}
	for _, name := range [...]string{".claude", ".fairlead", ".git"} {
		for rest := plain; ; {
			before, after, ok := strings.Cut(rest, name)
			if !ok {
				break
			}
			if !endsInWord(before) && !beginsInWord(after) {
				s.stopFor(&denial{row: rowAll, capability: "write " + name, why: fmt.Sprintf("%s (%s/**) is protected, and it is not known that %s only reads it", name, name, cut(by))})
				return
			}
			rest = after
		}
	}
}

// endsInWord and beginsInWord say whether a name would be a part of a longer one: .gitignore, a.git.
func endsInWord(text string) bool {
	return text != "" && isWordByte(text[len(text)-1])
}

func beginsInWord(text string) bool {
	return text != "" && (isWordByte(text[0]) || text[0] == '.' && len(text) > 1 && isWordByte(text[1]))
}

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c >= 0x80
}

// gitWrites judges git where it does more than look: it writes its records, which are below
// .git, unless a person allowed agents to commit.
func (s *shell) gitWrites(args []value) {
	name, at, moved := "", 0, false
	for ; at < len(args); at++ {
		v := args[at]
		if v.static() && !strings.HasPrefix(v.text, "-") {
			name = v.text
			break
		}
		switch {
		case v.text == "-C" || v.text == "-c":
			at++
		case strings.HasPrefix(v.text, "--git-dir"), strings.HasPrefix(v.text, "--work-tree"), strings.HasPrefix(v.text, "--config-env"), strings.HasPrefix(v.text, "--exec-path"):
			moved = true
		}
	}
	if name == "" && at >= len(args) && !moved {
		s.unknownCommand("git", append([]value{{text: "git"}}, args...))
		return
	}
	if _, looks := gitFlags(name, args[min(at+1, len(args)):]); looks && !moved && !has("branch tag remote", name) {
		for i, v := range args { // it looks, but may write what it sees
			if strings.HasPrefix(v.text, "-") {
				s.mentions(v.text, "git "+name)
			}
			if to, ok := strings.CutPrefix(v.text, "--output"); ok && to != "" && to[0] == '=' {
				s.writes(value{text: to[1:], split: v.split, glob: v.glob}, false)
			} else if ok && to == "" && i+1 < len(args) {
				s.writes(args[i+1], false)
			}
		}
		return
	}
	if !moved && s.gitReads(name, args[min(at+1, len(args)):]) {
		return
	}
	if s.j.where.Commits && !moved && has("add commit checkout switch restore reset rm mv merge rebase cherry-pick revert stash tag branch fetch pull push clean am apply bisect notes gc", name) {
		return
	}
	if !s.j.where.Model {
		return
	}
	s.stopFor(&denial{row: rowAll, capability: "use git version control", why: fmt.Sprintf("git %s writes below .git (.git/**)", cut(name))})
}

// gitReads knows what else of git does not write its records, for those who may run it.
func (s *shell) gitReads(name string, args []value) bool {
	operands, flagged := 0, false
	for _, v := range args {
		s.mentions(v.text, "git "+name)
		if strings.HasPrefix(v.text, "-") || v.split {
			flagged = true
		} else {
			operands++
		}
	}
	switch name {
	case "config":
		return operands == 1 && !flagged // tells a value
	case "remote":
		return operands > 0 && args[0].static() && args[0].text == "show"
	case "archive", "bundle", "format-patch":
		s.cannot("write files from the shell", "which files git "+name+" writes is not followed", "")
		return true
	}
	return has("help ls-remote verify-commit verify-tag var check-attr check-mailmap merge-tree range-diff patch-id cherry request-pull interpret-trailers stripspace", name)
}

// findActs judges find where it deletes, writes or runs.
func (s *shell) findActs(args []value) {
	var from []value
	for _, v := range args {
		if strings.HasPrefix(v.text, "-") || v.text == "(" || v.text == "!" {
			break
		}
		from = append(from, v)
	}
	if len(from) == 0 {
		from = []value{{text: "."}}
	}
	for i := 0; i < len(args); i++ {
		switch args[i].text {
		case "-delete":
			for _, v := range from {
				s.writes(v, true)
			}
		case "-fprint", "-fprint0", "-fprintf", "-fls":
			if i++; i < len(args) {
				s.writes(args[i], false)
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			var inner []value
			for i++; i < len(args) && args[i].text != ";" && args[i].text != "+"; i++ {
				v := args[i]
				v.text = strings.ReplaceAll(v.text, "{}", string(hole))
				inner = append(inner, v)
			}
			if len(inner) > 0 {
				s.run(inner)
			}
		}
	}
}

// sedWrites judges sed -i: the files behind the script.
func (s *shell) sedWrites(args []value) {
	inPlace, given := false, false
	var words []value
	for i := 1; i < len(args); i++ {
		v := args[i]
		switch {
		case strings.HasPrefix(v.text, "--in-place"):
			inPlace = true
		case strings.HasPrefix(v.text, "--"):
			given = given || strings.HasPrefix(v.text, "--expression") || strings.HasPrefix(v.text, "--file")
		case strings.HasPrefix(v.text, "-") && len(v.text) > 1:
			letters, _, cutOff := strings.Cut(v.text[1:], "i")
			inPlace = inPlace || cutOff
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
	}
}
