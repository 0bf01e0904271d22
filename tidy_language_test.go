package fairlead_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTidyLanguage checks that comments and user-facing text are plain technical English: they
// contain none of the words in `banned`. It reads Markdown outside of code, Go comments, Go string
// literals that are sentences (not those of tests, which are often test data), JavaScript comments
// and strings, the comments of YAML and shell files, and the descriptions in JSON schemas.
//
// Run it with -v to see the number of findings for each folder.

type bannedWords struct {
	expr, use string
	pattern   *regexp.Regexp
}

// bannedWord matches whole words in any case, but not in a file name, a path or an identifier
// (errand.go, /errands, x.wish), and not a word in quotes.
func bannedWord(expr, use string) bannedWords {
	return bannedWords{expr, use, regexp.MustCompile(`(?i)(?:^|[^\w.\-/"'])((?:` + expr + `))(?:[^\w\-/(=.]|\.(?:\W|$)|$)`)}
}

var banned = []bannedWords{
	bannedWord(`who(?:m)?(?:so)?ever`, "name the actor: the caller, the program, the agent, the user"),
	bannedWord(`nobody(?:'s)?|somebody(?:'s)?`, "name the actor: no agent, no process, another program, a person"),
	bannedWord(`none of ours|of ours`, "Fairlead's, our own, or the package's name"),
	bannedWord(`takes? no more|took no more|taking no more`, "is rate limited, refuses input, is full"),
	bannedWord(`(?:is|are|was|were|be|been) told of|tells? of|telling of`, "reports, is notified of, receives the event"),
	bannedWord(`(?:may|must|can|could) not be told`, "cannot receive input, must not be sent"),
	bannedWord(`c[ao]mes? of (?:it|that|them|which)`, "the result, the outcome"),
	bannedWord(`what became of|what becomes of`, "the outcome of, the state of"),
	bannedWord(`lies there|lay there|lie there`, "exists, is on disk, is in the queue"),
	bannedWord(`what there is`, "name the thing: the available ones, the current content"),
	bannedWord(`in the midst|midst`, "during, in the middle of"),
	bannedWord(`for ever`, "forever, permanently"),
	bannedWord(`mend(?:s|ed|ing|able)?`, "fix, repair"),
	bannedWord(`in (?:its|his|their) stead`, "instead"),

	// Concept words that the glossary retired.
	bannedWord(`wish|wishes|wished`, "desired state, request"),
	bannedWord(`errands?`, "action"),
	bannedWord(`ears?`, "listener"),
	bannedWord(`pens?`, "session writer"),
	bannedWord(`benches|the bench|a bench`, "worker pool"),
	bannedWord(`onlookers?|glimpses?|rehears(?:e|es|ed|al)`, "dry run"),
	bannedWord(`takeUp|take up the conversation`, "resume"),
	bannedWord(`occupants?`, "process conflict, the process that has the conversation open"),
	bannedWord(`translog`, "transition log"),
	bannedWord(`readied`, "prepared launch"),
	bannedWord(`strangers?`, "orphan session, another program"),
	bannedWord(`(?:package|session|agent|agents|each|the|a|its|every|dead|killed|old|real|and|of|by|where) holders?`,
		"shim; for a turn: the participant that has the turn"),
}

// anyBanned finds quickly whether a text may contain a banned word at all.
var anyBanned = func() *regexp.Regexp {
	var all []string
	for _, b := range banned {
		all = append(all, b.expr)
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(all, "|") + `)\b`)
}()

// passage is a piece of text that people read.
type passage struct {
	file, text string
	line       int
}

// sourceOf is the folder whose code a generated page is made from.
var sourceOf = map[string]string{
	"doc/cli.md": "cmd/fairlead", "doc/api.md": "api/server", "doc/machines.md": "core/table",
	"doc/config.md": "config",
}

func TestTidyLanguage(t *testing.T) {
	r := readTree(t)
	found := map[string]int{}
	for _, p := range r.passages() {
		if !anyBanned.MatchString(p.text) {
			continue
		}
		folder := path.Dir(p.file)
		if source, ok := sourceOf[p.file]; ok {
			folder = source
		}
		for number, line := range strings.Split(p.text, "\n") {
			for _, b := range banned {
				m := b.pattern.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				found[folder]++
				t.Errorf("%s:%d: %q is not plain technical English here; use: %s\n\t%s", p.file, p.line+number, m[1], b.use,
					strings.TrimSpace(line))
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		t.Logf("%5d  %s", found[folder], folder)
	}
}

// passages returns all text that TestTidyLanguage checks, in order of file.
func (r *tree) passages() []passage {
	var all []passage
	for _, p := range r.texts(func(p string) bool {
		return !strings.Contains(p, "testdata/") && p != "LICENSE" && p != "tidy_language_test.go"
	}) {
		text := r.text[p]
		switch {
		case path.Ext(p) == ".go":
			all = append(all, goPassages(r.goes[p], p)...)
		case path.Ext(p) == ".md":
			all = append(all, markdownPassages(p, text)...)
		case path.Ext(p) == ".js":
			all = append(all, scriptPassages(p, text)...)
		case path.Ext(p) == ".css":
			all = append(all, styleComments(p, text)...)
		case strings.HasSuffix(p, ".schema.json"):
			all = append(all, passage{file: p, text: text, line: 1})
		case slices.Contains([]string{".yaml", ".yml", ".sh", ""}, path.Ext(p)):
			all = append(all, hashComments(p, text)...)
		}
	}
	return all
}

// markdownPassages is a document without its code: neither blocks nor `words`.
func markdownPassages(p, text string) []passage {
	var all []passage
	eachLine(text, func(number int, line string, code bool) {
		if !code {
			all = append(all, passage{p, codePattern.ReplaceAllString(line, "``"), number})
		}
	})
	return all
}

// goPassages are the comments of a Go file and, unless it is a test, its sentences: string
// literals with a space between two words.
func goPassages(f *goFile, p string) []passage {
	if f == nil {
		return nil
	}
	var all []passage
	for _, group := range f.Comments {
		for _, c := range group.List {
			all = append(all, passage{p, c.Text, f.set.Position(c.Pos()).Line})
		}
	}
	if f.test {
		return all
	}
	sentence := regexp.MustCompile(`[[:alpha:]],? [[:alpha:]]`)
	ast.Inspect(f.File, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && sentence.MatchString(text) {
				all = append(all, passage{p, text, f.set.Position(lit.Pos()).Line})
			}
		}
		return true
	})
	return all
}

// jsPattern finds the comments and strings of JavaScript; a regular expression literal is matched,
// too, so that a quote in it opens no string.
var jsPattern = regexp.MustCompile("(?s)//[^\n]*|/\\*.*?\\*/|'(?:[^'\\\\\n]|\\\\.)*'|\"(?:[^\"\\\\\n]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`|[=(,:?&|!]\\s*/(?:[^/\\\\\n\\[]|\\\\.|\\[(?:[^\\]\\\\\n]|\\\\.)*\\])+/")

func scriptPassages(p, text string) []passage {
	var all []passage
	for _, at := range jsPattern.FindAllStringIndex(text, -1) {
		if m := text[at[0]:at[1]]; strings.Contains(m, " ") && !strings.ContainsAny(m[:1], "=(,:?&|!") {
			all = append(all, passage{p, strings.Trim(m, "'\"`"), 1 + strings.Count(text[:at[0]], "\n")})
		}
	}
	return all
}

func styleComments(p, text string) []passage {
	var all []passage
	for _, at := range regexp.MustCompile(`(?s)/\*.*?\*/`).FindAllStringIndex(text, -1) {
		all = append(all, passage{p, text[at[0]:at[1]], 1 + strings.Count(text[:at[0]], "\n")})
	}
	return all
}

// hashComments are the comments of YAML and shell files.
func hashComments(p, text string) []passage {
	var all []passage
	for number, line := range strings.Split(text, "\n") {
		if _, comment, ok := strings.Cut(" "+line, " #"); ok {
			all = append(all, passage{p, comment, number + 1})
		}
	}
	return all
}

// Each banned pattern matches its own example and leaves plain sentences alone.
func TestTidyLanguagePatterns(t *testing.T) {
	for _, dialect := range []string{
		"Whoever has the turn speaks.", "nobody asked", "one of ours", "a provider that takes no more", "is told of by the loop",
		"what came of it",
		"what lies there is read", "reads what there is", "in the midst of a message", "kept for ever", "it is mended",
		"the wish is numbered",
		"an errand, once", "the ear hears", "the pen writes", "the bench is full", "a stranger's session", "the holder died",
	} {
		if !slices.ContainsFunc(banned, func(b bannedWords) bool { return b.pattern.MatchString(dialect) }) {
			t.Errorf("%q passes; a pattern no longer matches", dialect)
		}
	}
	for _, plain := range []string{
		"go test -bench Append ./engine/journal", "The benchmark runs for 1 s.", "the year", "open the file", "amend the commit",
		"/agents/guest/errands",
		"the copyright holders", "a placeholder", "see errand.go", "recommended", "the word \"nobody\"",
	} {
		for _, b := range banned {
			if m := b.pattern.FindString(plain); m != "" {
				t.Errorf("%q is plain and is matched by %q", plain, b.pattern)
			}
		}
	}
}

// retired are the glossary's old words, as parts of names in snake case that reach the disk, the API or a process's
// environment: keys of JSON, constants for events and other codes, variables of the environment, and names of Go files.
var retired = regexp.MustCompile(`^(?:wish(?:es)?|errands?|todo|seats?|bench(?:es)?|claims?|circles?|floors?|holders?|strangers?|shel(?:f|ves)|books?|` +
	`standing|elsewhere|occupants?|rehearse|glimpses?|ears?|pens?|dues|translog|readied|sheets?|knocks?|talk|talks)$`)

// retiredKept are names with such a word that stay, by file: words of the seeds and of other programs' files.
var retiredKept = map[string][]string{
	"core/channel/channel.go":    {"holder"}, // seed 003: the holder of the turn
	"read/view/channelview.go":   {"holder"},
	"work/tools/agentactstep.go": {"holder"},
	"core/crew/crew.go":          {"seat", "seats"}, // seed 001: the nine seats
	"read/view/presenceview.go":  {"seat"},
}

// jsonName, codeName and envName find these names in Go source.
var (
	jsonName = regexp.MustCompile("json:\"([a-z0-9_]+)[,\"]")
	codeName = regexp.MustCompile(`^\s+\w+(?: +(?:Event|Action|Reason|Code|\w+Reason|Row))? += "([a-z][a-z0-9]*(?:_[a-z0-9]+)+)"`)
	envName  = regexp.MustCompile(`"(FAIRLEAD_[A-Z0-9_]+)=?"`)
)

// TestTidyRetiredNames checks that no retired word of the glossary is in a name that outlives the process.
func TestTidyRetiredNames(t *testing.T) {
	r := readTree(t)
	for _, p := range r.texts(func(p string) bool { return path.Ext(p) == ".go" && !strings.HasSuffix(p, "_test.go") }) {
		names := []string{strings.TrimSuffix(path.Base(p), ".go")}
		for line := range strings.Lines(r.text[p]) {
			for _, pattern := range []*regexp.Regexp{jsonName, codeName, envName} {
				for _, m := range pattern.FindAllStringSubmatch(line, -1) {
					names = append(names, m[1])
				}
			}
		}
		for _, name := range names {
			words := strings.Split(strings.ToLower(name), "_")
			if slices.ContainsFunc(words, retired.MatchString) && !slices.Contains(retiredKept[p], name) {
				t.Errorf("%s: %q has a retired word; use the word of the glossary, or add it to retiredKept if a seed or another program has it", p, name)
			}
		}
	}
}
