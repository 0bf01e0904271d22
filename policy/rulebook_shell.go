package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// lines is a command line that was taken apart to be held against a rulebook.
type lines struct {
	text     string
	commands []command
	dirs     []string // where it may be at work: the call's folder, and where its cd's lead
	doubt    string   // why no pattern with a * can allow it; empty: it was read to the last word
}

// command is one simple command, wherever it stands: in a pipe, a substitution, a shell within.
type command struct {
	words []value
	free  bool // it needs no pattern of its own: it does nothing, or only begins the next one
}

// appended stands for words that a program adds to a command: a * takes it, no letter does.
const appended = "\x01"

const wordsLookedAtMax = 200 // each is a question to the disk; a longer command is for a person

// readShell takes Bash's command apart; nil where it is no text that a shell would read.
func (r *reading) readShell(in input) *lines {
	text, fault := commandOf(in)
	if fault != "" {
		return nil
	}
	l := &lines{text: strings.TrimSpace(text), dirs: []string{r.j.dir}}
	if background := string(in.values["run_in_background"]); background != "" && background != "false" && background != "null" {
		l.unsure("it runs in the background")
	}
	l.read(r, text, 0)
	return l
}

func (l *lines) unsure(why string) {
	if l.doubt == "" {
		l.doubt = why
	}
}

// read takes one text apart. What is not a plain command, or a few of them joined by the usual
// signs, is a doubt; its commands are kept all the same, to be denied.
func (l *lines) read(r *reading, text string, depth int) {
	switch {
	case depth > scriptDepthMax, len(text) > scriptBytesMax, strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`") > scriptNestMax:
		l.unsure("it is too long, or nested too deep")
		return
	case strings.HasSuffix(text, `\`), strings.Contains(text, "#") && strings.Contains(text, "\\\n"),
		strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII && (unicode.IsSpace(c) || unicode.Is(unicode.Cf, c)) }):
		l.unsure("shells do not agree how it is read")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		l.unsure("it does not parse")
		return
	}
	var calls []*syntax.CallExpr
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok {
			calls = append(calls, c)
		}
		if why := notPlain(n); why != "" {
			l.unsure(why)
		}
		return true
	})
	s := &shell{j: newJudge(r.j.rules, false, Call{}, r.j.where, r.j.disk), vars: map[string]string{}, commands: commandsMax + 1} // it reads words, and runs nothing
	for _, c := range calls {
		var words []value
		for _, w := range c.Args {
			words = append(words, s.word(w)...)
		}
		if len(words) == 0 {
			continue
		}
		if len(l.commands) >= commandsMax {
			l.unsure("there are more commands in it than are read")
			return
		}
		l.command(r, words, depth)
	}
	if len(s.j.notes) > 0 {
		l.unsure(s.j.notes[0])
	}
}

// notPlain says what makes a command line one that only its own shell understands; empty: nothing.
func notPlain(n syntax.Node) string {
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			return "a part of it runs in the background"
		}
	case *syntax.Redirect:
		if !goesNowhere(n) {
			return "a redirect reads or writes a file"
		}
	case *syntax.CallExpr:
		if len(n.Assigns) > 0 {
			return "it sets variables"
		}
	case *syntax.ParamExp:
		if n.Param == nil || n.Param.Value != "HOME" {
			return "it holds a variable"
		}
	case *syntax.SglQuoted:
		if n.Dollar {
			return "it holds quotes that shells read in different ways"
		}
	case *syntax.DblQuoted:
		if n.Dollar {
			return "it holds quotes that shells read in different ways"
		}
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob:
		return "it holds a substitution"
	case *syntax.FuncDecl, *syntax.DeclClause, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CoprocClause, *syntax.TestClause, *syntax.TestDecl,
		*syntax.CaseClause, *syntax.ForClause:
		return "it is a program, and no command"
	}
	return ""
}

// goesNowhere says whether a redirect neither reads nor writes a file: 2>&1, >/dev/null.
func goesNowhere(r *syntax.Redirect) bool {
	if r.Word == nil || r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		return false
	}
	word := r.Word.Lit()
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		return isDescriptor(word)
	case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		return word == "/dev/null"
	}
	return false
}

// command keeps one simple command, and those that it is told to run.
func (l *lines) command(r *reading, words []value, depth int) {
	c := command{words: words}
	name := words[0]
	if !name.static() || name.text == "" || strings.ContainsFunc(name.text, unicode.IsSpace) {
		l.unsure("which command it runs is only known when it runs")
		l.commands = append(l.commands, c)
		return
	}
	for _, w := range words {
		if !w.static() || strings.HasPrefix(w.text, "=") {
			l.unsure("a word of it is only known when it runs")
		}
	}
	switch base := path.Base(name.text); {
	case has("true false :", name.text):
		c.free = true
	case name.text == "cd":
		c.free = l.staysInside(r, words[1:])
	default:
		inner, free, doubt := l.inner(r, base, words[1:], depth)
		if c.free = free && base == name.text; doubt != "" {
			l.unsure(doubt)
		}
		l.within(r, inner, depth)
	}
	l.commands = append(l.commands, c)
}

// within keeps the command that another one runs.
func (l *lines) within(r *reading, words []value, depth int) {
	switch {
	case depth >= scriptDepthMax || len(l.commands) >= commandsMax:
		l.unsure("there are more commands in it than are read")
	case len(words) > 0:
		l.command(r, words, depth+1)
	}
}

// staysInside says whether a cd leads to a folder of the workspace that exists. Behind a first one
// only a whole path says where that is.
func (l *lines) staysInside(r *reading, args []value) bool {
	const unknown = "it is not known in which folder it runs"
	if len(args) != 1 || !args[0].static() || strings.HasPrefix(args[0].text, "-") || len(l.dirs) != 1 && !path.IsAbs(args[0].text) {
		l.unsure(unknown)
		return false
	}
	p := r.place(args[0].text)
	if p.fault != "" {
		l.unsure(unknown)
		return false
	}
	l.dirs = append(l.dirs, p.names...)
	f, err := r.j.disk.Look(p.abs)
	if err != nil || f.Kind != Folder {
		return false
	}
	workspace := r.j.both(r.j.where.Repo)
	return !slices.ContainsFunc(p.names, func(name string) bool {
		return !slices.Contains(workspace, name) && !below(name, workspace)
	})
}

// inner is the command that stands among the words of another one. free says that the outer one
// changes nothing about it.
func (l *lines) inner(r *reading, base string, args []value, depth int) (words []value, free bool, doubt string) {
	behind := func(f flags, operands int) ([]value, bool, string) {
		at, fault := f.skip(args)
		if fault != "" {
			return l.somewhere(args), false, "the flag " + fault + " of " + base + " is not known"
		}
		for at < len(args) && args[at].static() && base == "env" && strings.Contains(args[at].text, "=") {
			at, doubt = at+1, "it sets variables"
		}
		return args[min(at+operands, len(args)):], base == "time" || base == "timeout" || base == "nice", doubt
	}
	switch base {
	case "command", "builtin", "exec", "nohup", "setsid", "unbuffer", "caffeinate", "noglob", "nocorrect":
		if base == "command" && len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V") {
			return nil, false, ""
		}
		return behind(flags{short: "clfw", valued: "a"}, 0)
	case "time":
		return behind(flags{short: "p"}, 0)
	case "timeout":
		return behind(flags{short: "v", valued: "sk", long: "foreground preserve-status verbose signal= kill-after="}, 1)
	case "nice":
		return behind(flags{short: "0123456789", valued: "n", long: "adjustment="}, 0)
	case "stdbuf", "ionice":
		return behind(flags{valued: "ioecn", short: "t", long: "input= output= error= class= classdata= ignore"}, 0)
	case "chrt", "taskset", "busybox", "toybox", "sudo", "doas", "su", "watch", "parallel", "script", "flock", "strace", "ltrace", "unshare", "nsenter", "chroot", "entr":
		return l.somewhere(args), false, "what " + base + " runs is not followed"
	case "env":
		return behind(flags{short: "i0v", valued: "uC", long: "ignore-environment null unset= chdir= debug"}, 0)
	case "xargs":
		words, _, doubt = behind(flags{short: "0rt", valued: "nPLIdEsa", long: "null no-run-if-empty verbose max-args= max-procs= max-lines= delimiter= replace= arg-file="}, 0)
		if len(words) == 0 {
			return nil, false, doubt // echo
		}
		return append(slices.Clone(words), value{text: appended}), false, doubt
	case "find":
		return l.found(r, args, depth)
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash":
		return nil, false, l.script(r, base, args, depth)
	case "eval":
		texts := make([]string, 0, len(args))
		for _, v := range args {
			if !v.static() {
				return nil, false, "what eval runs is only known when it runs"
			}
			texts = append(texts, v.text)
		}
		l.read(r, strings.Join(texts, " "), depth+1)
	}
	return nil, false, ""
}

// somewhere is the rest of a wrapper's words from the first that looks like a command, to be denied.
func (l *lines) somewhere(args []value) []value {
	for i, v := range args {
		if !strings.HasPrefix(v.text, "-") && !isNumber(v.text) && !strings.Contains(v.text, "=") {
			return args[i:]
		}
	}
	return nil
}

// script reads what stands behind a shell's -c.
func (l *lines) script(r *reading, base string, args []value, depth int) (doubt string) {
	for i, v := range args {
		switch {
		case !v.static():
			return "what " + base + " runs is only known when it runs"
		case !strings.HasPrefix(v.text, "-"):
			return "" // a file: the words are what they are
		case !strings.HasPrefix(v.text, "--") && strings.Contains(v.text, "c"):
			if i+1 >= len(args) || !args[i+1].static() {
				return "what " + base + " runs is only known when it runs"
			}
			l.read(r, args[i+1].text, depth+1)
			return ""
		}
	}
	return base + " runs what it is given on standard input"
}

// found reads find's actions: what it runs for each file, and whether it writes itself.
func (l *lines) found(r *reading, args []value, depth int) (words []value, free bool, doubt string) {
	for i := 0; i < len(args); i++ {
		switch args[i].text {
		case "-delete", "-fprint", "-fprint0", "-fprintf", "-fls":
			doubt = "find writes or removes by " + args[i].text
		case "-exec", "-execdir", "-ok", "-okdir":
			var inner []value
			for i++; i < len(args) && args[i].text != ";" && args[i].text != "+"; i++ {
				w := args[i]
				w.text = strings.ReplaceAll(w.text, "{}", appended)
				inner = append(inner, w)
			}
			l.within(r, inner, depth)
		}
	}
	return nil, false, doubt
}

// spelled is a command as text. A space within a word is none that separates words: only a * takes it.
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

// takesText holds the pattern against one command. A * behind a space stands for any words, also
// for none.
func (p Pattern) takesText(text string) bool {
	if head, ok := strings.CutSuffix(p.arg, " *"); ok && wild(head, text) {
		return true
	}
	return wild(p.arg, text)
}

// denied says whether a command of the line is one that the pattern names, by whatever path and
// in whatever letters its program is called.
func (l *lines) denied(p Pattern) bool {
	if p.takesText(l.text) {
		return true
	}
	return slices.ContainsFunc(l.commands, func(c command) bool { return p.deniesCommand(c.words) })
}

func (p Pattern) deniesCommand(words []value) bool {
	name := words[0].text
	for _, called := range []string{name, path.Base(name), strings.ToLower(path.Base(name))} {
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

// hides says whether a denied command stands among the words of another one: perhaps that one
// runs it.
func (p Pattern) hides(words []value) bool {
	if p.kind != shellArg || strings.HasPrefix(p.arg, "*") {
		return false
	}
	for i := 1; i < len(words); i++ {
		if p.deniesCommand(words[i:]) {
			return true
		}
	}
	for _, w := range words {
		fields := strings.Fields(w.text)
		for i := range fields {
			if len(fields) > 1 && p.takesText(strings.Join(fields[i:], " ")) {
				return true
			}
		}
	}
	return false
}

// writes says whether a file that the command is known to write is the pattern's.
func (l *lines) writes(r *reading, p Pattern) bool {
	return slices.ContainsFunc(r.verdict.Writes, func(name string) bool {
		return r.covers(p, place{names: []string{name}}, true)
	})
}

// shellAllowed is which patterns cover every simple command of the line together.
func (r *reading) shellAllowed(allow, deny []Pattern) []string {
	l := r.shell
	if l == nil {
		return nil
	}
	for _, p := range allow {
		if p.kind == shellArg && !strings.Contains(p.arg, "*") && p.arg == l.text {
			return []string{p.text} // letter by letter what somebody wrote down
		}
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

// hidesDenied says whether something denied may be in the command: a denied command among the
// words of another one, or a file that the agent's file tools may not touch. What a program does
// with it, nobody knows.
func (r *reading) hidesDenied(deny []Pattern) bool {
	files := slices.DeleteFunc(slices.Clone(deny), func(p Pattern) bool { return p.kind != fileArg })
	denied := func(f place) bool {
		return slices.ContainsFunc(files, func(p Pattern) bool { return r.covers(p, f, true) })
	}
	if slices.ContainsFunc(r.paths, denied) {
		return true
	}
	looked := 0
	for _, c := range r.shell.commands {
		if slices.ContainsFunc(deny, func(p Pattern) bool { return p.hides(c.words) }) {
			return true
		}
		for _, w := range c.words[1:] {
			for _, text := range wordPaths(w.text) {
				for _, dir := range r.shell.dirs {
					if looked++; len(files) > 0 && (looked > wordsLookedAtMax || denied(r.placeFrom(dir, text))) {
						return true
					}
				}
			}
		}
	}
	return false
}

// wordPaths are the paths that a word may be: all of it, and what stands behind its = or : or
// @, or behind a flag's letter.
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
