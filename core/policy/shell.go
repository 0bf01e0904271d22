package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

const (
	scriptBytesMax   = 32 << 10 // a longer command belongs into a file
	scriptDepthMax   = 8        // nested shells
	scriptNestMax    = 500      // brackets, which bound the parser's recursion
	expansionsMax    = 256      // words that braces may make of one
	commandsMax      = 2000     // bounds unrolled loops
	looksMax         = 2000     // each costs a disk access
	directoriesMax   = 8        // folders that a command may be in after its cd's
	wordsMax         = 2000     // of one command, after brace expansion
	wordsLookedAtMax = 200      // of a command that may run another one; a longer one is for a person
	tooMuch          = "it is too long, nested too deep, or has more commands than are read"
)

// shell reads one command line: it lists the simple commands, judges what they would write, and records what it did
// not understand.
type shell struct {
	j       *judge
	dirs    []string          // where the next command may run; empty: unknown
	arrived []string          // where what follows a statement runs at least, if all of it fails but its first cd
	vars    map[string]string // assigned values, as far as they are plain text
	stdin   string            // a here-document's text for the current command
	depth   int
	looks   int // number of disk accesses
	stop    *denial
	minor   *denial // a denial that a more serious one may replace

	// What patterns are compared with:
	text     string
	commands []command
	assigned []value // the values of variables
	closed   bool    // no pattern allows it: where it runs is not known
	away     bool    // it runs outside the workspace
	// the first part that is not plain, or was not understood: no pattern with a * can allow it; of MAIN, the kernel decides
	doubt  string
	hidden string // why it may run a command that is not among commands; empty: it does not
	opaque string // the first part that was not understood, other than what a program does: a person is asked about it

	// What is denied whichever of its commands gets the name:
	acts   bool       // a command does more than read, or a redirect writes
	hooks  string     // the first word that names the folder with the hooks
	pushed [][]string // dirs before each pushd

	// What decides about MAIN's commands:
	unread    string // the first part that was not understood
	functions string // the names of functions, each with a space after it
	mixed     string // what may change what later commands do
}

// command is one simple command at any position: in a pipe, a substitution, a nested shell.
type command struct {
	words []value
	dirs  []string // where it may run; empty: unknown
	input string   // a here-document's text for it
	reads bool     // it only reads, or its words are messages: none of them runs or is written
	free  bool     // it needs no pattern of its own: it has no effect, or only starts the next command
}

// shellTool judges Bash.
func (j *judge) shellTool() *denial {
	if !j.bound && !slices.Contains(j.rules.CanExecute, "*") {
		return j.mainCommand()
	}
	s := &shell{j: j, vars: map[string]string{}}
	if path.IsAbs(j.dir) {
		s.dirs = []string{j.dir}
	}
	in, fault := readInput(j.call.Input)
	if fault != "" {
		return j.unseen("by a shell command", fault)
	}
	command, fault := commandOf(in)
	if fault != "" {
		return j.unseen("by a shell command", fault)
	}
	to, fault := runsIn(in)
	if fault != "" {
		return j.unseen("by a shell command", fault)
	}
	if to != "" {
		dir, known := j.abs(to)
		if !known {
			return j.unseen("by a shell command", "where it runs is not known")
		}
		j.dir, s.dirs = dir, []string{dir}
		if f, err := j.disk.Look(dir); err != nil {
			s.closed = true
		} else if !j.isOurs(f) {
			s.away = true
			s.unplain("it runs in another folder")
		}
	}
	j.shell, s.text = s, strings.TrimSpace(command)
	if _, plain := in.text("command"); !plain && strings.ContainsAny(command, "'\"$\\") && !isShellScript(in.values["command"]) {
		s.hides("its words are a list, and whether a shell reads them is not known")
	}
	if background := string(in.values["run_in_background"]); background != "" && background != "false" && background != "null" {
		s.unplain("it runs in the background")
	}
	s.script(command)
	if s.hooks != "" && s.acts {
		s.stopFor(j.himself(s.hooks, ".claude/**; a command that names it may only read"))
	}
	if s.stop == nil {
		return s.minor
	}
	return s.stop
}

// runsIn returns the folder that a call's arguments set for its command; empty: none. Two different ones are
// a fault, because it is unknown which one counts.
func runsIn(in input) (to, fault string) {
	for _, key := range in.keys {
		if !has(directoryKeys, key) || string(in.values[key]) == "null" {
			continue
		}
		p, ok := in.text(key)
		if !ok || to != "" && p != "" && p != to {
			return "", "where it runs cannot be read"
		}
		if p != "" {
			to = p
		}
	}
	return to, ""
}

// commandOf returns the text that a shell would get. A list of words, which some agent programs send, is
// joined to a command.
func commandOf(in input) (command, fault string) {
	command, ok := in.text("command")
	if !ok {
		var words []string
		if json.Unmarshal(in.values["command"], &words) != nil || len(words) == 0 {
			return "", "its command is no text"
		}
		quoted := make([]string, len(words))
		for i, word := range words {
			q, err := syntax.Quote(word, syntax.LangBash)
			if err != nil {
				return "", "its command is no text"
			}
			quoted[i] = q
		}
		command = strings.Join(quoted, " ")
	}
	switch {
	case !utf8.ValidString(command) ||
		strings.ContainsFunc(command, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
		return "", "its command is no plain text: there are control characters in it"
	case strings.TrimSpace(command) == "":
		return "", "its command is empty"
	}
	return command, ""
}

// unplain records the first part that no pattern with a * can allow.
func (s *shell) unplain(why string) {
	if s.doubt == "" && s.stop == nil {
		s.doubt = why
	}
}

// cannot records what was not understood, or is not harmless.
func (s *shell) cannot(why string) {
	if s.stop == nil {
		s.opaque = cmp.Or(s.opaque, why)
	}
	s.misses(why)
}

// misses records that more runs or is written than the words say, though the words are understood.
func (s *shell) misses(why string) {
	s.unplain(why)
	if s.stop == nil {
		s.unread = cmp.Or(s.unread, why)
		s.j.note("not understood: " + why)
		s.j.doubts(why)
	}
}

// hides records that a command may run which is not among those that were read.
func (s *shell) hides(why string) {
	s.cannot(why)
	s.hidden = cmp.Or(s.hidden, why)
}

// starts records that a command that was understood runs others, such as those of a file.
func (s *shell) starts(why string) {
	s.misses(why)
	s.hidden = cmp.Or(s.hidden, why)
}

// unclear records an agent's program whose writes the command line does not show. It is allowed, and is not a
// doubt about any single file.
func (s *shell) unclear(why string) {
	if s.stop == nil {
		s.j.note("not understood: " + why)
		s.j.unclear = true
	}
}

// stopFor ends the reading with a denial, if there is one. A denial by the outputs rule does not hide a later
// one by X10.
func (s *shell) stopFor(d *denial) {
	switch {
	case d == nil || s.stop != nil:
	case d.code == DeniedProtected:
		s.stop = d
	case s.minor == nil:
		s.minor = d
	}
}

func (s *shell) script(text string) {
	if s.depth > scriptDepthMax || len(text) > scriptBytesMax ||
		strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`") > scriptNestMax {
		s.hides(tooMuch)
		return
	}
	if strings.HasSuffix(text, `\`) ||
		strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII && (unicode.IsSpace(c) || unicode.Is(unicode.Cf, c)) }) {
		s.hides("shells do not agree how it is read")
	}
	if strings.Contains(text, "#") && strings.Contains(text, "\\\n") {
		// The parser takes a comment's last backslash for a line continuation, and reads on in the comment; a
		// shell does not, and runs the next line.
		s.hides("it has a # and a backslash at a line's end, and a comment may end where it does not seem to")
		s.parse(strings.ReplaceAll(text, "\\\n", "\n"))
	}
	s.parse(text)
}

// parse parses a text and judges its commands.
func (s *shell) parse(text string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		s.mentions(text, "a command that does not parse")
		s.hides(fmt.Sprintf("it does not parse (%s)", cut(err.Error())))
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if why := notPlain(n); why != "" {
			s.unplain(why)
		}
		return true
	})
	s.list(file.Stmts)
}

func (s *shell) list(stmts []*syntax.Stmt) {
	outer := s.arrived
	for _, st := range stmts {
		s.arrived = s.dirs
		s.stmt(st)
		if _, joined := st.Cmd.(*syntax.BinaryCmd); joined { // a cd in it may not have run
			s.dirs = union(s.arrived, s.dirs)
		}
	}
	s.arrived = outer
}

func (s *shell) stmt(st *syntax.Stmt) {
	if len(s.commands) >= commandsMax {
		s.hides(tooMuch)
	}
	if s.stop != nil || len(s.commands) >= commandsMax {
		return
	}
	if st.Background || st.Coprocess || st.Disown {
		s.unclear("what runs in the background (&) is not watched")
	}
	outer := s.stdin
	if len(st.Redirs) > 0 {
		s.stdin = ""
	}
	for _, r := range st.Redirs {
		s.redirect(r)
	}
	if st.Cmd != nil && s.stop == nil {
		s.command(st.Cmd)
	}
	s.stdin = outer
}

func (s *shell) command(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		s.call(c)
	case *syntax.BinaryCmd:
		s.binary(c)
	case *syntax.Subshell:
		s.apart(c.Stmts)
	case *syntax.Block:
		s.list(c.Stmts)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			s.stmt(c.Stmt)
		}
	case *syntax.ForClause:
		s.forClause(c)
	case *syntax.FuncDecl:
		s.cannot("a function can take any command's name")
		if c.Name != nil {
			s.functions += c.Name.Value + " "
		}
		s.compound(c)
	case *syntax.DeclClause:
		s.mixed = c.Variant.Value
		for _, a := range c.Args {
			s.assign(a, false)
			if a.Name == nil && a.Value != nil &&
				slices.ContainsFunc(s.word(a.Value), func(v value) bool { return runsInIndex(v) || calculates(v) }) {
				s.cannot(c.Variant.Value + " may run the code in the index of a variable")
			}
		}
	case *syntax.ArithmCmd:
		s.arithmetic(c.X)
	case *syntax.LetClause, *syntax.CoprocClause:
		s.cannot("arithmetic can assign, and run the code in a variable; a coproc is not watched")
		s.compound(c)
	default:
		s.compound(c)
	}
}

// compound reads commands of which it is not known which run, and how often: each may begin where one before it
// ended.
func (s *shell) compound(n syntax.Node) {
	before, all := s.dirs, s.dirs
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			s.dirs = all
			s.stmt(n)
			all = union(all, s.dirs)
			return false
		case *syntax.CmdSubst:
			s.apart(n.Stmts)
			return false
		case *syntax.Word:
			s.word(n)
			return false
		case *syntax.BinaryTest:
			number := func(x syntax.TestExpr) bool { w, ok := x.(*syntax.Word); return ok && isNumber(w.Lit()) }
			if has("-eq -ne -le -ge -lt -gt", n.Op.String()) && !(number(n.X) && number(n.Y)) {
				s.cannot("a test between [[ and ]] calculates, and runs the code in a variable")
			}
		case *syntax.UnaryTest:
			if has("-v -R -o", n.Op.String()) {
				s.cannot("a test between [[ and ]] looks into variables, and runs the code in their index")
			}
		}
		return true
	})
	s.dirs = all
	switch n.(type) {
	case *syntax.IfClause, *syntax.CaseClause:
	default: // it may run again where it ended
		if !slices.Equal(before, s.dirs) {
			s.dirs = nil
			s.cannot("it is not known where it leads")
		}
	}
}

// binary handles && and ||: the command after it runs where the cd before it led, and what follows may run in
// either folder.
func (s *shell) binary(c *syntax.BinaryCmd) {
	before := s.dirs
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		s.apart([]*syntax.Stmt{c.X})
		s.apart([]*syntax.Stmt{c.Y})
	case syntax.AndStmt:
		s.stmt(c.X)
		s.arrives(c.X)
		s.stmt(c.Y)
	default:
		s.stmt(c.X)
		after := s.dirs
		s.dirs = union(before, after)
		s.stmt(c.Y)
		if s.dirs = union(after, s.dirs); s.arrives(c.X) {
			s.dirs, s.arrived = after, after
		}
	}
}

// arrives reports whether a statement is a cd by itself, which succeeds if its folder is known, and if so keeps where
// it led.
func (s *shell) arrives(st *syntax.Stmt) bool {
	c, ok := st.Cmd.(*syntax.CallExpr)
	if ok = ok && len(c.Args) == 2 && c.Args[0].Lit() == "cd" && len(c.Assigns)+len(st.Redirs) == 0 && !st.Negated; ok {
		s.arrived = s.dirs
	}
	return ok
}

// apart reads commands whose cd has no effect outside.
func (s *shell) apart(stmts []*syntax.Stmt) {
	before := s.dirs
	s.list(stmts)
	s.dirs = before
}

// forClause reads a loop. Over a few plain words it is read once for each word, so that file names are known.
func (s *shell) forClause(c *syntax.ForClause) {
	const unrollMax = 16
	words, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select || steers(words.Name.Value, "x") {
		s.cannot("this kind of loop calculates, asks a person, or changes what later commands do")
		s.compound(c)
		return
	}
	var items []value
	for _, w := range words.Items {
		items = append(items, s.word(w)...)
	}
	for _, v := range items {
		s.spot(v)
	}
	if len(items) == 0 || len(items) > unrollMax || slices.ContainsFunc(items, func(v value) bool { return !v.static() }) {
		items = []value{unknownValue()}
	}
	for _, v := range items {
		s.vars[words.Name.Value] = v.text
		for _, st := range c.Do {
			s.compound(st)
		}
	}
	s.vars[words.Name.Value] = string(hole)
}

// union returns the folders of both branches.
func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	all := slices.Clone(a)
	for _, dir := range b {
		if !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	if len(all) > directoriesMax {
		return nil
	}
	return all
}
