package fairlead_test

import (
	"fmt"
	"go/ast"
	"go/parser"
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
)

// The rules of this repository are tests. Each one reports what it found, where, and
// how to fix it.

const (
	module            = "github.com/fairlead-dev/fairlead"
	fileLinesMax      = 600 // a longer file is not read to its end
	functionLinesMax  = 100 // a screen and a bit; a longer one has two subjects
	packageDocLineMin = 4   // a picture in words takes more than a sentence
)

// imports lists which of this module's packages each package may import. The order is
// strict: cmd, then api, then the controllers and listen, then loop, then those that touch the world,
// which do not know each other, then the machines. A pattern with * stands for
// one level. inTests is what its tests may import besides.
var imports = []importRow{
	{pkg: "."},
	{pkg: "machine"},
	{pkg: "machine/host", may: []string{"machine", "machine/deadman"}},
	{pkg: "machine/*", may: []string{"machine"}},
	{pkg: "policy", inTests: []string{"policy/*", "dispatchfolder"}},
	{pkg: "rank"},
	{pkg: "marker"},
	{pkg: "condition"},
	{pkg: "sandbox", inTests: []string{"policy", "policy/*"}},
	{pkg: "policy/*", may: []string{"policy"}},
	{pkg: "team", may: []string{"machine", "machine/*", "policy", "marker", "team/launch", "team/models", "team/usage"}},
	{pkg: "team/launch", may: []string{"machine/root"}},
	{pkg: "team/models"},
	{pkg: "team/usage"},
	{pkg: "team/old", may: []string{"machine", "machine/*", "team"}},
	{pkg: "team/resume", may: []string{"machine", "machine/*", "team"}},
	{pkg: "internal/test/golden"},
	{pkg: "internal/test/machinetest", may: []string{"machine"}},
	{pkg: "internal/test/ports"},
	{pkg: "internal/test/wait"},
	{pkg: "internal/test/leaktest"},
	{pkg: "internal/test/testsize"},
	{pkg: "internal/test/benchall", may: []string{"loop"}},
	{pkg: "internal/test/counts"},

	{pkg: "config", may: []string{"internal/file", "internal/origin", "policy"}, inTests: []string{"driver/script"}}, // what init writes has to play
	{pkg: "config/edit", may: []string{"config", "internal/file"}},
	{pkg: "internal/runtimedir"},
	{pkg: "shim", may: []string{"internal/runtimedir", "internal/boottime", "machine/deadman"}},
	{pkg: "notify", may: []string{"machine", "machine/*", "internal/file"}},
	{pkg: "internal/file"},
	{pkg: "internal/clip"},
	{pkg: "internal/lazy"},
	{pkg: "internal/version"},
	{pkg: "internal/boottime", may: []string{"machine/deadman"}},
	{pkg: "internal/encode"},
	{pkg: "internal/jsontable"},
	{pkg: "internal/origin"},
	{pkg: "prompt", may: []string{"machine", "machine/*"}, inTests: []string{"marker"}},
	{pkg: "agentfile", may: []string{"internal/file"}},
	{pkg: "runfile", may: []string{"machine", "machine/*", "condition", "internal/file"}, inTests: []string{"marker"}},
	{pkg: "crewfile", may: []string{"machine", "machine/*", "internal/file", "prompt"}, inTests: []string{"marker"}},
	{pkg: "dispatchfolder", may: []string{"machine", "machine/*", "policy", "rank", "internal/file"}, inTests: []string{"policy/*"}},
	{pkg: "claudehook", may: []string{"machine", "machine/*", "policy", "rank", "dispatchfolder", "internal/file", "sandbox", "claudehook/confine"}, inTests: []string{"policy/*", "internal/test/livetest", "internal/test/scriptmodel"}},
	{pkg: "claudehook/confine", may: []string{"sandbox"}},
	{pkg: "claudehook/branch", may: []string{"claudehook"}},
	{pkg: "transitionlog"},
	{pkg: "search"},
	{pkg: "journal", inTests: []string{"journal/*"}},
	{pkg: "journal/attempt"},
	{pkg: "journal/jetstream", may: []string{"journal", "journal/attempt", "journal/sqlite"}, inTests: []string{"journal/*"}},
	{pkg: "journal/*", may: []string{"journal"}, inTests: []string{"journal/*"}},
	{pkg: "driver", inTests: []string{"driver/*"}},
	{pkg: "driver/*", may: []string{"driver", "driver/speech", "driver/adapter", "machine/session"}, inTests: []string{"driver/*", "internal/test/*"}},

	{pkg: "cluster"},
	{pkg: "cluster/ca", may: []string{"cluster", "machine/host", "internal/file"}},
	{pkg: "cluster/invite", may: []string{"cluster", "cluster/ca", "machine/host", "internal/file"}},
	{pkg: "cluster/wire", may: []string{"cluster", "controller/seam", "driver", "machine/host", "internal/file"}},
	{pkg: "cluster/link", may: []string{"cluster", "cluster/ca", "cluster/wire"}},
	{pkg: "cluster/remote", may: []string{"cluster/wire", "controller/seam", "driver", "loop", "machine/host", "worktree", "worktree/carry"}, inTests: []string{"cluster/*", "controller/sessions", "driver/*", "internal/test/*", "shim"}},
	{pkg: "cluster/local", may: []string{"cluster/wire", "controller/seam", "controller/sessions", "driver", "machine/host", "sandbox", "shim", "worktree", "worktree/carry", "internal/file", "internal/boottime"}, inTests: []string{"cluster/*", "driver/*", "internal/test/*"}},
	{pkg: "cluster/engine", may: []string{"cluster", "cluster/ca", "cluster/lease", "cluster/node", "journal", "journal/jetstream", "journal/sqlite", "machine/host", "internal/boottime", "internal/file"}, inTests: []string{"internal/test/*"}},
	{pkg: "cluster/worker", may: []string{"cluster", "cluster/*", "api", "api/*", "controller/seam", "controller/sessions", "machine/host", "workspace", "internal/file", "internal/boottime"}, inTests: []string{"*", "*/*"}},
	{pkg: "controller/hosts", may: append([]string{"controller/sessions", "cluster", "cluster/invite", "cluster/remote", "cluster/wire", "worktree", "worktree/carry", "internal/boottime", "internal/version"}, controllers...), inTests: []string{"cluster/local", "journal/memory"}},
	{pkg: "worktree/carry", may: []string{"worktree", "internal/file"}},
	{pkg: "cluster/lease", may: []string{"cluster", "machine/host", "journal/attempt"}},
	{pkg: "cluster/node", may: []string{"cluster", "cluster/ca", "machine/host", "journal/attempt", "internal/file"}, inTests: []string{"cluster/invite", "cluster/lease", "internal/boottime", "journal", "journal/jetstream"}},

	{pkg: "loop", may: append([]string{"journal", "team", "internal/jsontable"}, pure...), inTests: []string{"journal/*"}},
	{pkg: "worktree", may: []string{"internal/file", "loop", "machine", "view"}},
	{pkg: "forge", may: []string{"internal/file"}},
	{pkg: "task", may: []string{"worktree", "sandbox", "forge", "internal/file"}, inTests: []string{"internal/test/testsize"}},
	{pkg: "task/diff", may: []string{"view"}},
	{pkg: "workspace", may: []string{"internal/file"}},
	{pkg: "view", may: append([]string{"cluster", "loop", "team", "internal/file"}, pure...)},
	{pkg: "controller/seam", may: append([]string{"cluster", "view", "loop", "driver", "journal", "team", "config"}, slices.Concat(files, pure)...)},
	{pkg: "controller/sessions", may: append([]string{"controller/seam", "sandbox", "shim"}, controllers...)},
	{pkg: "controller/agents", may: append([]string{"controller/sessions"}, controllers...)},
	{pkg: "controller/channels", may: append([]string{"controller/sessions"}, controllers...)},
	{pkg: "controller/crew", may: append([]string{"controller/sessions", "controller/channels"}, controllers...)},
	{pkg: "controller/runs", may: append([]string{"controller/sessions", "worktree", "task", "forge"}, controllers...)},
	{pkg: "controller/tasks", may: append([]string{"controller/sessions", "controller/runs", "task", "task/diff"}, controllers...)},
	{pkg: "controller/dispatch", may: append([]string{"controller/sessions", "sandbox"}, controllers...)},
	{pkg: "controller/questions", may: append([]string{"controller/sessions", "controller/runs"}, controllers...)},
	{pkg: "controller/tools", may: append([]string{"controller/sessions", "controller/channels", "controller/runs", "controller/questions"}, controllers...)},
	{pkg: "controller/indexer", may: append([]string{"controller/sessions", "search", "task"}, controllers...), inTests: []string{"driver/*", "journal/*"}},
	{pkg: "controller/notices", may: append([]string{"controller/sessions", "controller/runs"}, controllers...)},
	{pkg: "controller/transitions", may: append([]string{"controller/channels"}, controllers...)},
	{pkg: "listen", may: append([]string{"controller/sessions", "controller/channels", "controller/crew", "controller/runs", "controller/dispatch", "controller/questions"}, controllers...)},
	{
		pkg: "controller/status", may: append([]string{
			"controller/sessions", "controller/agents", "controller/channels", "controller/crew", "controller/runs", "controller/dispatch", "controller/questions",
		}, controllers...),
	},
	{
		pkg: "controller", may: append([]string{"controller/*", "listen", "worktree", "sandbox", "shim"}, controllers...),
		inTests: []string{"cluster", "cluster/invite", "cluster/local", "cluster/wire", "driver/*", "journal/*"},
	},

	{pkg: "ui"},
	{
		pkg: "internal/test/uitest", may: []string{"api", "rank"},
		inTests: append([]string{"ui", "config", "api/login", "api/server", "policy", "examples", "controller", "controller/*", "loop", "team", "machine/*", "view", "workspace", "search", "driver", "driver/*", "journal", "journal/*", "internal/test/uitest"}, files...),
	},
	{pkg: "api", may: append([]string{"controller/*", "view", "loop", "driver", "journal", "team", "runfile", "config/edit"}, pure...)},
	{pkg: "api/peer"},
	{pkg: "api/login", may: []string{"internal/file"}},
	{pkg: "api/caller", may: []string{"api", "api/peer", "controller/seam", "shim"}, inTests: []string{"machine"}},
	{pkg: "api/hosts", may: []string{"internal/origin"}},
	{pkg: "api/repos", may: []string{"api", "api/peer", "internal/origin", "internal/runtimedir"}},
	{pkg: "api/client", may: []string{"api", "api/peer", "controller/*", "view", "workspace", "machine", "policy", "rank"}},
	{pkg: "api/mcp", may: []string{"api", "api/client", "controller", "controller/*", "view", "loop"}},
	{
		pkg: "api/server", may: append([]string{"api", "api/peer", "api/caller", "api/login", "api/mcp", "api/hosts", "api/repos", "controller", "controller/*", "view", "workspace", "search", "loop", "ui", "driver", "shim", "journal", "team", "config", "internal/origin", "internal/runtimedir", "cluster/wire"}, slices.Concat(files, pure)...),
		inTests: []string{"task", "api/client", "driver/*", "journal/*"},
	},
	{pkg: "cli", may: []string{"*", "*/*"}, inTests: []string{"internal/test/*"}},
	{pkg: "cli/*", may: []string{"*", "*/*"}, inTests: []string{"internal/test/*"}},
	{pkg: "cmd/*", may: []string{"*", "*/*"}, inTests: []string{"internal/test/*"}},

	{pkg: "internal/test/scriptmodel"},
	{pkg: "internal/test/livetest", may: []string{"driver", "driver/*", "internal/test/scriptmodel"}},
	{pkg: "internal/test/sim", may: append([]string{"controller", "controller/*", "view", "workspace", "loop", "shim", "driver", "driver/*", "journal", "journal/*", "team", "config"}, slices.Concat(files, pure)...)},
	{pkg: "internal/test/walks", may: []string{"api", "api/client", "view"}},
	{pkg: "internal/test/walks/daemon", may: []string{"cli", "cli/daemon", "driver/script", "shim"}},
	{pkg: "internal/test/nemesis", inTests: []string{"cli/offline", "internal/boottime", "journal", "machine/host"}},
	{pkg: "internal/test/sim/cluster", inTests: append([]string{"loop", "journal"}, pure...)},
	{pkg: "internal/test/sim/cmd/sim", may: []string{"internal/test/sim"}},
	{pkg: "examples", inTests: []string{"config", "driver", "driver/*"}},
}

type importRow struct {
	pkg     string
	may     []string
	inTests []string
}

// files are the packages for files of other programs, and for the texts that agents are told.
var files = []string{"internal/file", "prompt", "agentfile", "runfile", "crewfile", "dispatchfolder", "claudehook", "transitionlog"}

// controllers is what every controller stands on.
var controllers = append([]string{"controller/seam", "view", "loop", "workspace", "driver", "journal", "team", "config"}, slices.Concat(files, pure)...)

// pure are the packages that know no clock, no file and no goroutine.
var pure = []string{"machine", "machine/*", "team", "team/launch", "team/models", "team/usage", "team/old", "team/resume", "policy", "rank", "marker", "condition", "journal/attempt"}

// worldly is what a pure package may not import, with all that is below it.
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
	t.Run("links", r.links)
	t.Run("file names in documents", r.fileNames)
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

func (r *tree) imports(t *testing.T) {
	for _, p := range r.goFiles() {
		dir := path.Dir(p)
		row := slices.IndexFunc(imports, func(row importRow) bool { return matches([]string{row.pkg}, dir) })
		if row < 0 {
			t.Errorf("%s: the package %s is not in the table of imports; add it to `imports` in tidy_test.go, at its place in the order", p, dir)
			continue
		}
		may := slices.Concat(imports[row].may, []string{dir, "internal/clip", "internal/lazy", "internal/encode"}) // every package cuts, matches and encodes texts
		if r.goes[p].test || strings.HasPrefix(dir, "internal/test/") {
			may = append(append(may, "internal/test/counts", "internal/test/golden", "internal/test/leaktest", "internal/test/machinetest", "internal/test/ports", "internal/test/testsize", "internal/test/wait"), imports[row].inTests...) // pages are everybody's tests', and so is their end
		}
		for _, spec := range r.goes[p].Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if name == module {
				name += "/."
			}
			ours, is := strings.CutPrefix(name, module+"/")
			if is && !matches(may, ours) {
				t.Errorf("%s: %s may not import %s; turn the dependency round, or let cmd/fairlead hand over what is needed",
					r.goes[p].at(spec.Pos()), dir, ours)
			}
		}
	}
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
			t.Errorf("%s: the package doc is %q; say what the package is in a picture, in %d lines at least", dir, firstLine(docs[0]), packageDocLineMin)
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
		if f.test || !matches(pure, path.Dir(p)) {
			continue
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			for _, w := range worldly {
				if name == w || strings.HasPrefix(name, w+"/") {
					t.Errorf("%s: a pure package imports %s; take what it needs as a value, and act in a controller", f.at(spec.Pos()), name)
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
				if receive, ok := n.X.(*ast.UnaryExpr); ok && !deadlines[n] && receive.Op == token.ARROW && isCall(receive.X, timeName, "After") {
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
