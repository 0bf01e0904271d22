package policy

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// lines is a parsed command line in the form for matching patterns.
type lines struct {
	text     string
	commands []command
	dirs     []string // where it may run: the call's folder, and where its cd's lead
	closed   bool     // no pattern allows it: where it runs is not known
	away     bool     // it runs outside the workspace
	doubt    string   // why no pattern with a * can allow it; empty: it was fully understood
	hidden   string   // why it may run a command that is not among commands; empty: it does not
}

// command is one simple command at any position: in a pipe, a substitution, a nested shell.
type command struct {
	words []value
	free  bool // it needs no pattern of its own: it has no effect, or only starts the next command
}

// Shell builtins after which a name may be another command, and those that read a word as a variable or an
// arithmetic expression and run its substitutions even if it was quoted.
const (
	bendingBuiltins  = "hash alias unalias trap enable bind complete compopt fc rehash unhash autoload emulate disable zmodload"
	countingBuiltins = "test [ printf read unset wait let declare typeset local export readonly integer float mapfile readarray getopts print shift"
)

// appended stands for words that a program adds to a command: a * matches it, no letter does.
const appended = "\x01"

const (
	wordsLookedAtMax = 200  // each costs a disk access; a longer command is for a person
	wordsMax         = 2000 // of one command, after brace expansion
)

// readShell parses Bash's command; nil if a shell would not accept the text.
func (r *reading) readShell(in input) *lines {
	text, fault := commandOf(in)
	if fault != "" {
		return nil
	}
	l := &lines{text: strings.TrimSpace(text)}
	l.goes(r, in)
	l.dirs = []string{r.j.dir}
	if _, plain := in.text("command"); !plain && strings.ContainsAny(text, "'\"$\\") && !isShellScript(in.values["command"]) {
		l.hides("its words are a list, and whether a shell reads them is not known")
	}
	if background := string(in.values["run_in_background"]); background != "" && background != "false" && background != "null" {
		l.unsure("it runs in the background")
	}
	l.read(r, text, 0)
	return l
}

// directoryKeys are the arguments with which some programs run a command in another folder.
const directoryKeys = "directory cwd workdir working_directory workingDirectory working_dir workingDir dir"

// goes sets the call's folder to the one that its arguments name, if any.
func (l *lines) goes(r *reading, in input) {
	to, fault := runsIn(in)
	switch {
	case fault != "":
		l.closed, r.known = true, false
		return
	case to == "":
		return
	}
	at := r.place(to)
	if at.fault != "" {
		l.closed = true
		return
	}
	if !r.isOurs(at) {
		l.away = true
		l.unsure("it runs in another folder")
	}
	r.call.Dir, _ = r.j.abs(to)
	r.j = newJudge(r.j.rules, false, r.call, r.j.where, r.j.disk)
}

// isShellScript reports whether a list of words is bash -c TEXT, as some programs send every command.
func isShellScript(raw json.RawMessage) bool {
	var words []string
	return json.Unmarshal(raw, &words) == nil && len(words) == 3 && has("sh bash zsh dash", path.Base(words[0])) && (words[1] == "-c" || words[1] == "-lc")
}

func (l *lines) unsure(why string) {
	if l.doubt == "" {
		l.doubt = why
	}
}

// hides records a doubt about which commands it runs.
func (l *lines) hides(why string) {
	l.unsure(why)
	if l.hidden == "" {
		l.hidden = why
	}
}

// read parses one text. Anything except plain commands joined by the usual operators is a doubt; its commands
// are kept nevertheless, for denials.
func (l *lines) read(r *reading, text string, depth int) {
	switch {
	case depth > scriptDepthMax, len(text) > scriptBytesMax, strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`") > scriptNestMax:
		l.hides("it is too long, or nested too deep")
		return
	case strings.HasSuffix(text, `\`), strings.Contains(text, "#") && strings.Contains(text, "\\\n"),
		strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII && (unicode.IsSpace(c) || unicode.Is(unicode.Cf, c)) }):
		l.hides("shells do not agree how it is read")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		l.hides("it does not parse")
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
	s := &shell{j: newJudge(r.j.rules, false, Call{}, r.j.where, r.j.disk), vars: map[string]string{}, commands: commandsMax + 1} // it only parses words, and runs nothing
	for _, c := range calls {
		var words []value
		for _, w := range c.Args {
			if len(words) < wordsMax {
				words = append(words, s.word(w)...)
			}
		}
		if len(words) == 0 {
			continue
		}
		if len(words) >= wordsMax || len(l.commands) >= commandsMax {
			l.hides("there are more commands in it than are read")
			return
		}
		l.command(r, words, depth)
	}
	if len(s.j.notes) > 0 {
		l.unsure(s.j.notes[0])
	}
}

// notPlain returns what makes a command line too complex to match; empty: nothing.
func notPlain(n syntax.Node) string {
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			return "a part of it runs in the background"
		}
	case *syntax.Redirect:
		if !goesNowhere(n) {
			return redirectDoubt
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

const redirectDoubt = "a redirect reads or writes a file"

// goesNowhere reports whether a redirect neither reads nor writes a file: 2>&1, >/dev/null.
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

// command records one simple command, and those that it runs.
func (l *lines) command(r *reading, words []value, depth int) {
	c := command{words: words}
	name := words[0]
	if !name.static() || name.text == "" || strings.ContainsFunc(name.text, unicode.IsSpace) {
		l.hides("which command it runs is only known when it runs")
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
	case has(bendingBuiltins, name.text):
		l.hides(name.text + " changes what later commands are")
	case has(countingBuiltins, name.text) && slices.ContainsFunc(words[1:], func(w value) bool { return strings.ContainsAny(w.text, "$`") }):
		l.hides(name.text + " runs the code in the index of a variable")
	case name.text == "cd":
		c.free = l.staysInside(r, words[1:])
	default:
		inner, free, doubt := l.inner(r, base, words[1:], depth)
		if c.free = free && base == name.text; doubt != "" {
			l.hides(doubt)
		}
		l.within(r, inner, depth)
	}
	l.commands = append(l.commands, c)
}

// within records the command that another one runs.
func (l *lines) within(r *reading, words []value, depth int) {
	switch {
	case depth >= scriptDepthMax || len(l.commands) >= commandsMax:
		l.hides("there are more commands in it than are read")
	case len(words) > 0:
		l.command(r, words, depth+1)
	}
}

// staysInside reports whether a cd leads to an existing folder of the workspace. After a first cd only an
// absolute path is certain.
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
	return r.isOurs(p)
}

// isOurs reports whether a place is an existing folder of the workspace, and not in a nested repository.
func (r *reading) isOurs(p place) bool {
	f, err := r.j.disk.Look(p.abs)
	if err != nil || f.Kind != Folder {
		return false
	}
	workspace := r.j.both(r.j.where.Repo)
	return !slices.ContainsFunc(p.names, func(name string) bool {
		return !slices.Contains(workspace, name) && !below(name, workspace) || r.isForeign(name, workspace)
	})
}

// isForeign reports whether a folder is in a nested repository of the workspace: git runs programs that such
// a repository names, even when it only reads.
func (r *reading) isForeign(folder string, workspace []string) bool {
	const levelsMax = 64 // of a workspace; deeper nesting is made on purpose
	for range levelsMax {
		if slices.Contains(workspace, folder) || !below(folder, workspace) {
			return false
		}
		for _, mark := range []string{".git", "HEAD"} { // HEAD marks a bare repository
			if f, err := r.j.disk.Look(join(folder, mark)); err != nil || f.Kind != Missing {
				return true
			}
		}
		folder = path.Dir(folder)
	}
	return true
}

// inner returns the command among the words of another one. free means that the outer one changes nothing
// about it.
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
	case "sudo", "doas":
		return behind(flags{short: "AbEHiKknPSsv", valued: "ugphCDRrtTU", long: "user= group= preserve-env login non-interactive set-home stdin"}, 0)
	case "chrt", "taskset", "busybox", "toybox", "su", "watch", "parallel", "script", "flock", "strace", "ltrace", "unshare", "nsenter", "chroot", "entr":
		return l.somewhere(args), false, "what " + base + " runs is not analyzed"
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
		return nil, len(args) == 2 && (args[0].text == "-c" || args[0].text == "-lc"), l.script(r, base, args, depth)
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

// somewhere returns the rest of a wrapper's words from the first that looks like a command, for denials.
func (l *lines) somewhere(args []value) []value {
	for i, v := range args {
		if !strings.HasPrefix(v.text, "-") && !isNumber(v.text) && !strings.Contains(v.text, "=") {
			return args[i:]
		}
	}
	return nil
}

// script parses the text after a shell's -c.
func (l *lines) script(r *reading, base string, args []value, depth int) (doubt string) {
	for i, v := range args {
		switch {
		case !v.static():
			return "what " + base + " runs is only known when it runs"
		case !strings.HasPrefix(v.text, "-"):
			return "" // a script file: the words are not commands
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

// found parses find's actions: what it runs for each file, and whether it writes itself.
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
