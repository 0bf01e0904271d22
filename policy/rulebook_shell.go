package policy

import (
	"encoding/json"
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
	closed   bool     // no pattern allows it: where it runs is not known
	away     bool     // it runs elsewhere than in the workspace
	doubt    string   // why no pattern with a * can allow it; empty: it was read to the last word
}

// command is one simple command, wherever it stands: in a pipe, a substitution, a shell within.
type command struct {
	words []value
	free  bool // it needs no pattern of its own: it does nothing, or only begins the next one
}

// Builtins of shells: those after which a name may be another command, and those that read a word as
// a variable or a sum, and run the substitutions in it even where it was quoted.
const (
	bendingBuiltins  = "hash alias unalias trap enable bind complete compopt fc rehash unhash autoload emulate disable zmodload"
	countingBuiltins = "test [ printf read unset wait let declare typeset local export readonly integer float mapfile readarray getopts print shift"
)

// appended stands for words that a program adds to a command: a * takes it, no letter does.
const appended = "\x01"

const (
	wordsLookedAtMax = 200  // each is a question to the disk; a longer command is for a person
	wordsMax         = 2000 // of one command; what braces make of a few letters is more than anybody reads
)

// readShell takes Bash's command apart; nil where it is no text that a shell would read.
func (r *reading) readShell(in input) *lines {
	text, fault := commandOf(in)
	if fault != "" {
		return nil
	}
	l := &lines{text: strings.TrimSpace(text)}
	l.goes(r, in)
	l.dirs = []string{r.j.dir}
	if _, plain := in.text("command"); !plain && strings.ContainsAny(text, "'\"$\\") && !isShellScript(in.values["command"]) {
		l.unsure("its words are a list, and whether a shell reads them is not known")
	}
	if background := string(in.values["run_in_background"]); background != "" && background != "false" && background != "null" {
		l.unsure("it runs in the background")
	}
	l.read(r, text, 0)
	return l
}

// directoryKeys are the arguments by which some programs have a command run in another folder.
const directoryKeys = "directory cwd workdir working_directory workingDirectory working_dir workingDir dir"

// goes takes the call to the folder that it names, if it names one: what is judged is judged there.
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

// isShellScript says whether a list of words is bash -c TEXT, as some programs put every command.
func isShellScript(raw json.RawMessage) bool {
	var words []string
	return json.Unmarshal(raw, &words) == nil && len(words) == 3 && has("sh bash zsh dash", path.Base(words[0])) && (words[1] == "-c" || words[1] == "-lc")
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
			if len(words) < wordsMax {
				words = append(words, s.word(w)...)
			}
		}
		if len(words) == 0 {
			continue
		}
		if len(words) >= wordsMax || len(l.commands) >= commandsMax {
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
	case has(bendingBuiltins, name.text):
		l.unsure(name.text + " changes what later commands are")
	case has(countingBuiltins, name.text) && slices.ContainsFunc(words[1:], func(w value) bool { return strings.ContainsAny(w.text, "$`") }):
		l.unsure(name.text + " runs what stands in the index of a variable")
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
	return r.isOurs(p)
}

// isOurs says whether a place is a folder of the workspace that exists, and in no repository of its own.
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

// isForeign says whether a folder is in a repository of its own below the workspace: git runs programs
// that such a one names, also when it only looks.
func (r *reading) isForeign(folder string, workspace []string) bool {
	const levelsMax = 64 // of a workspace; deeper is made to be deep
	for range levelsMax {
		if slices.Contains(workspace, folder) || !below(folder, workspace) {
			return false
		}
		for _, mark := range []string{".git", "HEAD"} { // the second one of a repository without a name of its own
			if f, err := r.j.disk.Look(join(folder, mark)); err != nil || f.Kind != Missing {
				return true
			}
		}
		folder = path.Dir(folder)
	}
	return true
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
	case "sudo", "doas":
		return behind(flags{short: "AbEHiKknPSsv", valued: "ugphCDRrtTU", long: "user= group= preserve-env login non-interactive set-home stdin"}, 0)
	case "chrt", "taskset", "busybox", "toybox", "su", "watch", "parallel", "script", "flock", "strace", "ltrace", "unshare", "nsenter", "chroot", "entr":
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
