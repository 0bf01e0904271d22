package fairlead_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The rules of this repository are tests. Each one reports what it found, where, and
// how to fix it.

const (
	module            = "github.com/fairlead-dev/fairlead"
	fileLinesMax      = 650 // a longer file is not read to its end
	functionLinesMax  = 120 // two screens; a longer one has two subjects
	columnsMax        = 140 // of a line of Go, with a tab as four; the screen of a laptop
	packageDocLineMin = 4   // a picture in words takes more than a sentence
)

// rooms are the folders of the product, from the bottom to the top. A package may import the rooms below its own. Of its own room it
// may import what inside names; in api, cli and cmd it may import every package.
var rooms = []string{
	"internal", "core", "config", "files", "process", "git", "engine", "work", "hosts", "read", "app", "api", "ui", "cli",
	"cmd",
}

// openRooms are those whose packages may import each other.
var openRooms = []string{"internal", "api", "cli", "cmd"}

// inside lists what a package may import of its own room. A pattern with * stands for one level.
var inside = []importRow{
	{pkg: "core/team", may: []string{"core/*"}},
	{pkg: "core/*", may: []string{"core/change", "core/table"}},
	{pkg: "config/edit", may: []string{"config"}},
	{pkg: "files/agentstate", may: []string{"files/exchange"}},
	{pkg: "files/crewdocs", may: []string{"files/exchange", "files/prompts"}},
	{pkg: "files/runstate", may: []string{"files/exchange"}},
	{pkg: "process/claudehook", may: []string{"process/claudehook/confine", "process/sandbox"}},
	{pkg: "process/claudehook/confine", may: []string{"process/sandbox", "process/sandbox/places"}},
	{pkg: "process/driver", may: []string{"process/spawn"}},
	{pkg: "process/driver/*", may: []string{"process/driver", "process/driver/adapter", "process/driver/speech", "process/spawn"}},
	{pkg: "process/sandbox", may: []string{"process/proxy/wire"}},
	{pkg: "process/sandbox/places", may: []string{"process/sandbox"}},
	{pkg: "process/proxy", may: []string{"process/proxy/wire", "process/shim"}},
	{pkg: "process/proxy/outlet", may: []string{"process/proxy/wire", "process/sandbox", "process/spawn"}},
	{pkg: "process/shim", may: []string{"process/boottime", "process/proxy/outlet", "process/sandbox", "process/spawn"}},
	{pkg: "process/spawn", may: []string{"process/proxy/wire", "process/sandbox"}},
	{pkg: "git/task", may: []string{"git/anchor", "git/forge", "git/worktree", "git/worktree/store"}},
	{pkg: "git/transfer", may: []string{"git/worktree", "git/worktree/store"}},
	{pkg: "git/worktree/store", may: []string{"git/worktree"}},
	{pkg: "engine/journal/jetstream", may: []string{"engine/journal", "engine/journal/sqlite"}},
	{pkg: "engine/journal/*", may: []string{"engine/journal"}},
	{pkg: "engine/loop", may: []string{"engine/journal"}},
	{pkg: "work/outside", may: []string{"work/sessionhost"}},
	{pkg: "work/sessions", may: []string{"work/outside", "work/sessionhost"}},
	{pkg: "work/turns", may: []string{"work/outside", "work/sessionhost", "work/sessions", "work/crew"}},
	{pkg: "work/notices", may: []string{"work/outside", "work/sessionhost", "work/runs"}},
	{pkg: "work/questions", may: []string{"work/outside", "work/sessionhost", "work/sessions", "work/runs"}},
	{pkg: "work/tasks", may: []string{"work/outside", "work/sessionhost", "work/sessions", "work/runs"}},
	{pkg: "work/tools", may: []string{"work/outside", "work/sessionhost", "work/sessions", "work/turns", "work/runs", "work/questions"}},
	{pkg: "work/listen", may: []string{"work/outside", "work/sessionhost", "work/sessions", "work/turns", "work/questions", "work/dispatch"}},
	{pkg: "work/*", may: []string{"work/outside", "work/sessionhost", "work/sessions"}}, // agents, crew, dispatch, runs
	{pkg: "hosts/ca"},
	{pkg: "hosts/engine", may: []string{"hosts/ca", "hosts/lease", "hosts/node"}},
	{pkg: "hosts/link", may: []string{"hosts/ca", "hosts/wire"}},
	{pkg: "hosts/membership", may: []string{"hosts/invite", "hosts/remote", "hosts/wire"}},
	{pkg: "hosts/invite", may: []string{"hosts/ca"}},
	{pkg: "hosts/node", may: []string{"hosts/ca"}},
	{pkg: "hosts/local", may: []string{"hosts/wire"}},
	{pkg: "hosts/remote", may: []string{"hosts/wire"}},
	{pkg: "read/indexer", may: []string{"read/search"}},
	{pkg: "read/status", may: []string{"read/view"}},
	{pkg: "app", may: []string{"app/starts"}},
}

// upward lists the imports that go up. They end when a part of work gives its state and read alone makes views of it.
var upward = []importRow{
	{pkg: "work/*", may: []string{"read/view"}},
	{pkg: "hosts/membership", may: []string{"read/view"}},
}

// importRow says what the packages of a pattern may import.
type importRow struct {
	pkg string
	may []string
}

// pure are the packages, and single files, that know no clock, no file and no goroutine.
var pure = []string{"core/*", "engine/journal/jetstream/attempt.go"}

// worldly is what a pure package may not import, with all that is below it, except net/netip: an address is a value.
var worldly = []string{"os", "net", "sync", "context", "log", "syscall", "io/fs", "embed", "runtime", "math/rand", "crypto/rand", "testing"}

// clock is what reads the time or waits for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestTidy(t *testing.T) {
	r := readTree(t)
	t.Run("imports", r.imports)
	t.Run("light to start", r.lightToStart)
	t.Run("package docs", r.packageDocs)
	t.Run("pure packages", r.purePackages)
	t.Run("no sleep in tests", r.noSleepInTests)
	t.Run("length of files", r.fileLength)
	t.Run("length of functions", r.functionLength)
	t.Run("length of lines", r.lineLength)
	t.Run("links", r.links)
	t.Run("file names in documents", r.fileNames)
	t.Run("packages in documents", r.packageNames)
	t.Run("commands in documents", r.commands)
	t.Run("unfinished work", r.unfinished)
	t.Run("names", r.names)
	t.Run("rows have tests", r.rows)
	t.Run("licence", r.licence)
	t.Run("generated files", r.generatedFiles)
}

// tree is the repository, read once.
type tree struct {
	paths []string            // of every file, with slashes
	text  map[string]string   // of those that are text we write
	goes  map[string]*goFile  // by path
	packs map[string][]string // folder → its Go files
}

type goFile struct {
	*ast.File
	set  *token.FileSet
	test bool
}

// at is where something stands: path:line.
func (g *goFile) at(pos token.Pos) string {
	p := g.set.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// written are the endings of files that people write and read.
var written = []string{".go", ".js", ".css", ".html", ".md", ".yml", ".yaml", ".sh", ".json", ".sql", ""}

func readTree(t *testing.T) *tree {
	t.Helper()
	r := &tree{text: map[string]string{}, goes: map[string]*goFile{}, packs: map[string][]string{}}
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		p = filepath.ToSlash(p)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".fairlead", "node_modules", "shots"}, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular():
			return nil
		}
		r.paths = append(r.paths, p)
		if !slices.Contains(written, path.Ext(p)) && d.Name() != ".gitignore" || vendored(p) {
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		r.text[p] = string(b)
		if path.Ext(p) != ".go" || strings.Contains(p, "testdata/") {
			return nil
		}
		f, err := parser.ParseFile(set, p, b, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("a Go file that does not parse: %w", err)
		}
		r.goes[p] = &goFile{File: f, set: set, test: strings.HasSuffix(p, "_test.go")}
		r.packs[path.Dir(p)] = append(r.packs[path.Dir(p)], p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func vendored(p string) bool {
	return strings.Contains(p, "/vendor/") || strings.HasSuffix(p, "package-lock.json")
}

// texts are the paths of texts that a condition holds for, in order.
func (r *tree) texts(is func(p string) bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.text)), func(p string) bool { return !is(p) })
}

func (r *tree) goFiles() []string { return slices.Sorted(maps.Keys(r.goes)) }

func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, pkg)
		return ok && err == nil
	})
}

// imports checks the direction of each import of the product. Tests and their harnesses may import every package.
func (r *tree) imports(t *testing.T) {
	for _, p := range r.goFiles() {
		dir := path.Dir(p)
		if r.goes[p].test || strings.HasPrefix(dir, "internal/test/") || dir == "." || dir == "examples" {
			continue
		}
		if roomOf(dir) < 0 {
			t.Errorf("%s: %s is in no room; the rooms are %v", p, dir, rooms)
			continue
		}
		for _, spec := range r.goes[p].Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			ours, is := strings.CutPrefix(name, module+"/")
			if is && !mayImport(dir, ours) {
				t.Errorf("%s: %s may not import %s; turn the dependency round, or let a room above hand over what is needed",
					r.goes[p].at(spec.Pos()), dir, ours)
			}
		}
	}
}

// roomOf is the place of a package's room in rooms, or -1.
func roomOf(pkg string) int {
	room, _, _ := strings.Cut(pkg, "/")
	return slices.Index(rooms, room)
}

// mayImport reports whether the package from may import the package to.
func mayImport(from, to string) bool {
	listed := func(rows []importRow) bool {
		row := slices.IndexFunc(rows, func(row importRow) bool { return matches([]string{row.pkg}, from) })
		return row >= 0 && matches(rows[row].may, to)
	}
	a, b := roomOf(from), roomOf(to)
	switch {
	case strings.HasPrefix(to, "internal/test/"):
		return false
	case to == "examples":
		return rooms[a] == "cli"
	case b < 0:
		return false
	case a == b:
		return slices.Contains(openRooms, rooms[a]) || listed(inside)
	case a < b:
		return listed(upward)
	}
	return true
}

func (r *tree) packageDocs(t *testing.T) {
	for _, dir := range slices.Sorted(maps.Keys(r.packs)) {
		var docs []string
		var name string
		tested := true
		for _, p := range r.packs[dir] {
			f := r.goes[p]
			if f.test {
				continue
			}
			tested, name = false, f.Name.Name
			if f.Doc != nil {
				docs = append(docs, f.Doc.Text())
			}
		}
		begin := "Package " + name + " "
		if name == "main" {
			begin = "Command " + path.Base(dir) + " "
		}
		switch {
		case tested: // nothing but tests
		case len(docs) == 0:
			t.Errorf("%s: the package has no doc; write doc.go, a picture in words that ends with one promise", dir)
		case len(docs) > 1:
			t.Errorf("%s: %d files carry a package doc; keep one, in doc.go", dir, len(docs))
		case !strings.HasPrefix(docs[0], begin):
			t.Errorf("%s: the package doc begins %q; begin it %q", dir, firstLine(docs[0]), begin)
		case strings.Count(docs[0], "\n") < packageDocLineMin:
			t.Errorf("%s: the package doc is %q; say what the package is in a picture, in %d lines at least", dir, firstLine(docs[0]),
				packageDocLineMin)
		case !promiseLast.MatchString(docs[0]) || strings.Count(docs[0], "romise:") > 1:
			t.Errorf("%s: the package doc has to end with one paragraph `The one promise: …`, in this form and no other", dir)
		}
	}
}

var promiseLast = regexp.MustCompile(`(?s)\n\nThe one promise: (?:[^\n]+\n)+$`)

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

func (r *tree) purePackages(t *testing.T) {
	for _, p := range r.goFiles() {
		f := r.goes[p]
		if f.test || !matches(pure, path.Dir(p)) && !matches(pure, p) {
			continue
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			for _, w := range worldly {
				if name == w || strings.HasPrefix(name, w+"/") && name != "net/netip" {
					t.Errorf("%s: a pure package imports %s; take what it needs as a value, and act in a controller", f.at(spec.Pos()),
						name)
				}
			}
		}
		timeName := importName(f, "time")
		ast.Inspect(f.File, func(n ast.Node) bool {
			if call, ok := selected(n, timeName); ok && slices.Contains(clock, call) {
				t.Errorf("%s: a pure package asks the clock (time.%s); take the time in as data", f.at(n.Pos()), call)
			}
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: a pure package starts a goroutine; give an effect back instead", f.at(n.Pos()))
			}
			return true
		})
	}
}

// importName is what a file calls a package, or "" where it does not import it.
func importName(f *goFile, pkg string) string {
	for _, spec := range f.Imports {
		if name, _ := strconv.Unquote(spec.Path.Value); name != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(pkg)
	}
	return ""
}

// selected is the name Y in X.Y, where X is the package.
func selected(n ast.Node, pkg string) (string, bool) {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok || pkg == "" {
		return "", false
	}
	x, ok := sel.X.(*ast.Ident)
	return sel.Sel.Name, ok && x.Name == pkg
}

// sleeps are the functions of package time that tests may not call. Package wait calls them instead.
var sleeps = []string{"Sleep", "Tick", "NewTicker", "NewTimer"}

// noSleepInTests allows time.After only as a deadline: in a select, and not shorter than a second.
func (r *tree) noSleepInTests(t *testing.T) {
	for _, p := range r.goFiles() {
		f := r.goes[p]
		if dir := path.Dir(p); !f.test && !strings.HasPrefix(dir, "internal/test/") || dir == "internal/test/wait" {
			continue
		}
		timeName, deadlines := importName(f, "time"), map[ast.Stmt]bool{}
		refuse := func(n ast.Node, what string) {
			t.Errorf("%s: a test %s; wait for a condition with wait.Until, or use wait.Elapse inside testing/synctest", f.at(n.Pos()), what)
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CommClause:
				deadlines[n.Comm] = true
			case *ast.CallExpr:
				if call, ok := selected(n.Fun, timeName); ok && call == "After" && short(n.Args[0], timeName) {
					refuse(n, "waits for less than a second")
				}
			case ast.Expr:
				if call, ok := selected(n, timeName); ok && slices.Contains(sleeps, call) {
					refuse(n, "calls time."+call)
				}
			case *ast.ExprStmt:
				if receive, ok := n.X.(*ast.UnaryExpr); ok && !deadlines[n] && receive.Op == token.ARROW &&
					isCall(receive.X, timeName, "After") {
					refuse(n, "sleeps")
				}
			}
			return true
		})
	}
}

// short reports whether a duration is given in milliseconds or less.
func short(duration ast.Expr, timeName string) (is bool) {
	ast.Inspect(duration, func(n ast.Node) bool {
		unit, ok := selected(n, timeName)
		is = is || ok && slices.Contains([]string{"Millisecond", "Microsecond", "Nanosecond"}, unit)
		return true
	})
	return is
}

func isCall(e ast.Expr, pkg, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	got, ok := selected(call.Fun, pkg)
	return ok && got == name
}

func (r *tree) fileLength(t *testing.T) {
	for _, p := range r.texts(func(p string) bool { return slices.Contains([]string{".go", ".js", ".css"}, path.Ext(p)) }) {
		if lines := strings.Count(r.text[p], "\n"); lines > fileLinesMax {
			t.Errorf("%s: %d lines, %d at most; split it by subject", p, lines, fileLinesMax)
		}
	}
}

// lineLength limits lines of Go. Texts do not count, and neither do comments at the end of a line and comments that are indented,
// such as examples: they may be hard to divide.
func (r *tree) lineLength(t *testing.T) {
	for _, p := range r.goFiles() {
		text := []byte(r.text[p])
		whole := strings.Split(r.text[p], "\n")
		lines := slices.Clone(whole)
		set := token.NewFileSet()
		file := set.AddFile(p, -1, len(text))
		var words scanner.Scanner
		words.Init(file, text, nil, scanner.ScanComments)
		for {
			pos, kind, word := words.Scan()
			if kind == token.EOF {
				break
			}
			at := set.Position(pos)
			prose := kind == token.COMMENT && strings.TrimSpace(whole[at.Line-1][:at.Column-1]) == "" && strings.HasPrefix(word, "// ") &&
				!strings.HasPrefix(word, "//  ")
			if kind != token.STRING && kind != token.COMMENT || prose {
				continue
			}
			for i, part := range strings.Split(word, "\n") {
				n := at.Line - 1 + i
				lines[n] = strings.Replace(lines[n], part, "", 1)
			}
		}
		for i, line := range lines {
			if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > columnsMax {
				t.Errorf("%s:%d: %d columns without its texts, %d at most; break the line after a comma or an operator", p, i+1, n, columnsMax)
			}
		}
	}
}

func (r *tree) functionLength(t *testing.T) {
	for _, p := range r.goFiles() {
		f := r.goes[p]
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1; lines > functionLinesMax {
				t.Errorf("%s: %s has %d lines, %d at most; it has two subjects", f.at(fn.Pos()), fn.Name.Name, lines, functionLinesMax)
			}
		}
	}
}

func (r *tree) unfinished(t *testing.T) {
	words := regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "X" + "XX"}, "|") + `)\b`)
	for _, p := range r.texts(func(p string) bool { return !strings.Contains(p, "testdata/") }) {
		eachLine(r.text[p], func(number int, line string, _ bool) {
			if word := words.FindString(line); word != "" {
				t.Errorf("%s:%d: %s; do it, or say in words what is missing and why", p, number, word)
			}
		})
	}
}

// names looks at what is declared, and at files and folders.
func (r *tree) names(t *testing.T) {
	empty := []string{"manager", "helper", "helpers", "util", "utils", "common"}
	check := func(at, name string) {
		for _, word := range words(name) {
			if slices.Contains(empty, word) {
				t.Errorf("%s: the name %s says nothing; name it by what it does or is", at, name)
			}
		}
	}
	for _, p := range r.goFiles() {
		f := r.goes[p]
		check(p, strings.TrimSuffix(path.Base(p), ".go"))
		check(p, path.Base(path.Dir(p)))
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.TypeSpec:
				check(f.at(d.Pos()), d.Name.Name)
			case *ast.FuncDecl:
				check(f.at(d.Pos()), d.Name.Name)
			case *ast.ValueSpec:
				for _, name := range d.Names {
					check(f.at(name.Pos()), name.Name)
				}
			}
			return true
		})
	}
}

// words splits a name in CamelCase or snake_case.
func words(name string) []string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && unicode.IsUpper(c) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return strings.FieldsFunc(b.String(), func(c rune) bool { return c == ' ' || c == '_' || c == '-' || c == '.' })
}

var rowPattern = regexp.MustCompile(`^[CPDTWXJ][0-9]{1,2}$`)

// rows: every row of the specification that the code carries is spoken of in a
// test or in a test's data. A matrix does not count: it lists every row and
// exercises none.
func (r *tree) rows(t *testing.T) {
	var tested strings.Builder
	for _, p := range r.paths {
		data := strings.Contains(p, "testdata/") && !strings.Contains(p, "testdata/fuzz/") && path.Base(p) != "matrix.txt"
		if !data && !strings.HasSuffix(p, "_test.go") || strings.HasPrefix(p, "tidy_") {
			continue
		}
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		tested.Write(b)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`\b[CPDTWXJ][0-9]{1,2}\b`).FindAllString(tested.String(), -1) {
		seen[m] = true
	}
	for _, p := range r.goFiles() {
		f := r.goes[p]
		if f.test {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			row, _ := strconv.Unquote(lit.Value)
			if rowPattern.MatchString(row) && !seen[row] {
				seen[row] = true // said once
				t.Errorf("%s: no test mentions the row %s; write one and name the row in it", f.at(lit.Pos()), row)
			}
			return true
		})
	}
}

func (r *tree) licence(t *testing.T) {
	text := r.text["LICENSE"]
	for _, part := range []string{"Apache License", "Version 2.0, January 2004", "END OF TERMS AND CONDITIONS"} {
		if !strings.Contains(text, part) {
			t.Errorf("LICENSE does not say %q; put the full text of Apache-2.0 there", part)
		}
	}
}
