package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// spelled is a command as text. A space inside a word does not separate words: only a * matches it.
func spelled(words []value) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.Map(func(c rune) rune {
			if unicode.IsSpace(c) {
				return '\x01'
			}
			return c
		}, w.text))
	}
	return b.String()
}

// takesText matches the pattern against one command. A * after a space stands for any words, including none.
func (p Pattern) takesText(text string) bool {
	if head, ok := strings.CutSuffix(p.arg, " *"); ok && wild(head, text) {
		return true
	}
	return wild(p.arg, text)
}

// denied reports whether a command of the line matches the pattern, whatever the path and case of its
// program.
func (s *shell) denied(p Pattern) bool {
	if p.takesText(s.text) {
		return true
	}
	return slices.ContainsFunc(s.commands, func(c command) bool { return p.deniesCommand(c.words) })
}

func (p Pattern) deniesCommand(words []value) bool {
	name := words[0].text
	for _, called := range []string{name, path.Base(name), strings.ToLower(path.Base(name))} {
		if !p.begins(called) {
			continue
		}
		again := slices.Clone(words)
		again[0].text = called
		plain := make([]string, len(again))
		for i, w := range again {
			plain[i] = w.text
		}
		if p.takesText(spelled(again)) || p.takesText(strings.Join(plain, " ")) {
			return true
		}
	}
	return false
}

// begins reports whether a command with that name may match the pattern at all.
func (p Pattern) begins(name string) bool {
	head, _, _ := strings.Cut(p.arg, "*")
	if word, _, more := strings.Cut(head, " "); more {
		return word == name
	}
	return strings.HasPrefix(name, head)
}

// hides reports whether a denied command is among the words of another one, which may run it.
func (p Pattern) hides(words []value) bool {
	if p.kind != shellArg || strings.HasPrefix(p.arg, "*") {
		return false
	}
	if len(words) > wordsLookedAtMax {
		return true
	}
	for i := 1; i < len(words); i++ {
		if p.deniesCommand(words[i:]) {
			return true
		}
		if i > 1 && strings.HasPrefix(words[1].text, "-") && p.deniesCommand(append([]value{words[0]}, words[i:]...)) {
			return true // git -C elsewhere push
		}
	}
	for _, w := range words {
		fields := strings.Fields(w.text)
		if len(fields) > wordsLookedAtMax {
			return true
		}
		for i := range fields {
			if len(fields) > 1 && p.begins(fields[i]) && p.takesText(strings.Join(fields[i:], " ")) {
				return true
			}
		}
		for _, part := range wordPaths(w.text) { // --filter=rm, -xrm
			if called := strings.Fields(part); part != w.text && len(called) > 0 && p.deniesCommand(valuesOf(called)) {
				return true
			}
		}
	}
	return false
}

func valuesOf(words []string) []value {
	all := make([]value, len(words))
	for i, w := range words {
		all[i] = value{text: w}
	}
	return all
}

// writes reports whether a file that the command is known to write matches the pattern.
func (r *reading) writes(p Pattern) bool {
	return slices.ContainsFunc(r.verdict.Writes, func(name string) bool {
		return r.covers(p, place{names: []string{name}}, true)
	})
}

// shellAllowed returns the patterns that cover every simple command of the line.
func (r *reading) shellAllowed(allow, deny []Pattern) []string {
	l := r.shell
	if l == nil || l.closed {
		return nil
	}
	for _, p := range allow {
		if p.kind == shellArg && !l.away && !strings.Contains(p.arg, "*") && p.arg == l.text {
			return []string{p.text} // exactly the text of the pattern
		}
	}
	if r.governs() {
		return nil
	}
	bounds := slices.ContainsFunc(deny, func(p Pattern) bool { return p.kind == shellArg || p.kind == fileArg })
	for _, p := range allow {
		if p.kind == anyCall && p.names("Bash") && (!bounds || l.doubt == "" && !r.hidesDenied(deny)) {
			return []string{p.text}
		}
	}
	if l.doubt != "" || len(l.commands) == 0 || r.hidesDenied(deny) {
		return nil
	}
	var used []string
	for _, c := range l.commands {
		text := spelled(c.words)
		i := slices.IndexFunc(allow, func(p Pattern) bool { return p.kind == shellArg && p.takesText(text) })
		switch {
		case i >= 0 && !slices.Contains(used, allow[i].text):
			used = append(used, allow[i].text)
		case i < 0 && !c.free:
			return nil
		}
	}
	return used
}

// governs reports whether the command writes files that govern the agent, or names them and was not
// understood.
func (r *reading) governs() bool {
	if r.governing(r.verdict.Writes) != "" {
		return true
	}
	if !r.verdict.Unsure && r.shell.doubt == "" {
		return false
	}
	return slices.ContainsFunc(governors, func(g string) bool { return strings.Contains(strings.ToLower(r.shell.text), g) })
}

// hidesDenied reports whether something denied may be in the command: a denied command among the words of
// another one, or a file that the agent's file tools may not touch. What a program does with it is unknown.
func (r *reading) hidesDenied(deny []Pattern) bool {
	denied := func(f place, reads bool) bool {
		return slices.ContainsFunc(deny, func(p Pattern) bool {
			return p.kind == fileArg && !(reads && changesFiles(p.tool)) && r.covers(p, f, true)
		})
	}
	runs := func(words []value) bool {
		return slices.ContainsFunc(deny, func(p Pattern) bool { return p.hides(words) })
	}
	if slices.ContainsFunc(r.paths, func(f place) bool { return denied(f, false) }) || runs(append([]value{{}}, r.shell.assigned...)) {
		return true
	}
	looked := 0
	files := slices.ContainsFunc(deny, func(p Pattern) bool { return p.kind == fileArg })
	for _, c := range r.shell.commands {
		reads := c.reads && r.shell.doubt == ""
		switch {
		case !reads && runs(append(slices.Clone(c.words), valuesOf(strings.Fields(c.input))...)), files && len(c.dirs) == 0:
			return true
		case !files:
			continue
		}
		for _, w := range c.words[1:] {
			for _, text := range wordPaths(w.text) {
				for _, dir := range c.dirs {
					if looked++; looked > wordsLookedAtMax || denied(r.j.place(dir, text), reads) {
						return true
					}
				}
			}
		}
	}
	return false
}

// wordPaths returns the paths that a word may be: all of it, the part after = or : or @, or after a flag's
// letter.
func wordPaths(word string) []string {
	all := []string{word}
	for i, c := range word {
		if (c == '=' || c == ':' || c == '@') && i+1 < len(word) {
			all = append(all, word[i+1:])
		}
	}
	if len(word) > 2 && word[0] == '-' && word[1] != '-' {
		all = append(all, word[2:])
	}
	return slices.DeleteFunc(all, func(p string) bool { return faultOf(p) != "" })
}
