package fairlead_test

import (
	"bufio"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The half of TestTidy that reads documents.

// generated are documents that the code writes. They say so in their first line.
var generated = []string{"doc/config.md", "doc/cli.md", "doc/api.md", "doc/machines.md"}

// named are files that documents mention and that are not in this repository:
// people, agents and Fairlead create them elsewhere.
var named = []string{
	"agent_state.json", "agent.json", "turns.jsonl", ".agent_state.json.lock", "fairlead.yaml", "state.jsonl", "messages.jsonl",
	"dialogue.md",
	"task.json", "task.md", "pr.json", "intake.json", "workflow.yaml", "request-N.md", "request-1.md", "failed.json", "comments.json",
	"package-lock.json",
	"pnpm-lock.yaml",
	"run_state.json", "agent.py", "loop.py", "PLAN.md", "gh_issue_88.md", "notes.md", "starter.script.yaml", "reviewer.script.yaml",
	"node_modules/", "reports/RUN__STEP.json", "manual_inputs/RUN__STEP.json", "artifacts/",
	"conversations/", "conversations/conv_002/outputs/", "outputs/", "inbox/", "inbox/unmatched/", "NAME.result.md", "NAME.ranking.json",
	"conversations/conv_NNN/outputs/",
	".credentials.json", "auth.json", "mcp-auth.json", "oauth_creds.json", "secrets.yaml", "config.json", "cli-config.json",
}

var (
	linkPattern    = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)[^)]*\)`)
	headingPattern = regexp.MustCompile(`^#{1,6} +(.+)$`)
	codePattern    = regexp.MustCompile("`([^`\n]+)`")
	filePattern    = regexp.MustCompile(`^[A-Za-z0-9_.-]*[A-Za-z0-9_-]+(/[A-Za-z0-9_.-]+)*(\.(go|md|ya?ml|js|css|json|sh|sql|py|jsonl)|/)$`)
	verbPattern    = regexp.MustCompile(`(?:^|[^./\w-])(?:\./)?fairlead ([a-z]+)`)
)

func (r *tree) links(t *testing.T) {
	for _, p := range r.texts(isDocument) {
		eachLine(r.text[p], func(number int, line string, code bool) {
			if code {
				return
			}
			for _, m := range linkPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(line, ""), -1) {
				if strings.Contains(m[1], ":") {
					continue // elsewhere: not ours to keep
				}
				target, anchor, anchored := strings.Cut(m[1], "#")
				file := path.Join(path.Dir(p), target)
				if target == "" {
					file = p
				}
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s:%d: the link leads to %s, which does not exist; correct it", p, number, file)
				} else if anchored && path.Ext(file) == ".md" && !slices.Contains(anchors(r.text[file]), anchor) {
					t.Errorf("%s:%d: %s has no heading for #%s; correct the link", p, number, file, anchor)
				}
			}
		})
	}
}

// anchors are the names that a document's headings are linked by.
func anchors(document string) []string {
	var names []string
	eachLine(document, func(_ int, line string, code bool) {
		if m := headingPattern.FindStringSubmatch(line); m != nil && !code {
			names = append(names, strings.Map(func(c rune) rune {
				switch {
				case c == ' ':
					return '-'
				case c == '-' || c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c):
					return unicode.ToLower(c)
				}
				return -1
			}, m[1]))
		}
	})
	return names
}

// eachLine goes through a document and tells which lines are code.
func eachLine(document string, do func(number int, line string, code bool)) {
	code := false
	lines := bufio.NewScanner(strings.NewReader(document))
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		fence := strings.HasPrefix(strings.TrimSpace(lines.Text()), "```")
		if fence {
			code = !code
		}
		do(number, lines.Text(), code || fence)
	}
}

func (r *tree) fileNames(t *testing.T) {
	for _, p := range r.texts(isDocument) {
		eachLine(r.text[p], func(number int, line string, code bool) {
			if code {
				return
			}
			for _, m := range codePattern.FindAllStringSubmatch(line, -1) {
				if name := m[1]; filePattern.MatchString(name) && !r.exists(name, path.Dir(p)) && !r.wordOfOurs(name) {
					t.Errorf("%s:%d: %s does not exist; correct the name, or add it to `named` in tidy_test.go if people or agents make it",
						p, number, name)
				}
			}
		})
	}
}

// roomPattern matches a path into one of the rooms that names no file, also with /… for all below it. goPattern matches a command of go
// in a document, and pathPattern its packages.
var (
	roomPattern = regexp.MustCompile(`^(?:` + strings.Join(rooms, "|") + `)(?:/[a-z0-9_]+)*(?:/…|/\.\.\.)?$`)
	goPattern   = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*go (?:test|run|doc|vet|build) `)
	pathPattern = regexp.MustCompile(` \./([a-z0-9_/]+)`)
)

// packageNames finds packages that do not exist: paths into the rooms, arguments of go, and all names in a column `packages` of a
// table but those of tests. A superseded decision keeps the names of its day.
func (r *tree) packageNames(t *testing.T) {
	for _, p := range r.texts(isDocument) {
		if strings.Contains(r.text[p], "**Superseded by") {
			continue
		}
		column := -1 // of the packages in the present table
		eachLine(r.text[p], func(number int, line string, code bool) {
			wrong := func(name string) {
				t.Errorf("%s:%d: there is no package %s; correct the name", p, number, name)
			}
			if code {
				r.goArguments(line, wrong)
				return
			}
			cells := strings.Split(line, "|")
			switch head := slices.IndexFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) == "packages" }); {
			case head >= 0:
				column = head
			case !strings.HasPrefix(line, "|"):
				column = -1
			}
			for i, cell := range cells {
				for _, m := range codePattern.FindAllStringSubmatch(cell, -1) {
					name := m[1]
					of := strings.TrimSuffix(strings.TrimSuffix(name, "/…"), "/...")
					isName := roomPattern.MatchString(name) && strings.Contains(name, "/") ||
						i == column && !strings.HasPrefix(name, "Test") && path.Ext(name) == ""
					if isName && !r.hasFolder(of) && !strings.Contains(name, "/testdata/") {
						wrong(name)
					}
					r.goArguments(name, wrong)
				}
			}
		})
	}
}

// goArguments checks the packages of a command of go.
func (r *tree) goArguments(line string, wrong func(name string)) {
	if !goPattern.MatchString(line) {
		return
	}
	for _, m := range pathPattern.FindAllStringSubmatch(line, -1) {
		if name := strings.TrimSuffix(m[1], "/"); !r.hasFolder(name) {
			wrong(name)
		}
	}
}

// hasFolder tells whether a folder, or one below it, holds Go files.
func (r *tree) hasFolder(name string) bool {
	for folder := range r.packs {
		if folder == name || strings.HasPrefix(folder, name+"/") {
			return true
		}
	}
	return false
}

// exists tells whether a name is a file or folder from the root, from a
// document's own folder, or, for a bare name, anywhere.
func (r *tree) exists(name, from string) bool {
	name = strings.TrimPrefix(name, "./")
	for _, candidate := range []string{name, path.Join(from, name)} {
		if _, err := os.Stat(candidate); err == nil {
			return true
		}
	}
	return !strings.Contains(name, "/") && slices.ContainsFunc(r.paths, func(p string) bool { return path.Base(p) == name })
}

// wordOfOurs tells whether a name is one that programs make, by its last part.
func (r *tree) wordOfOurs(name string) bool {
	// a file of other repositories, in the table of governing files
	if strings.Contains(r.text["core/governing/governing.go"], `"`+name+`"`) {
		return true
	}
	return slices.Contains(named, name) || slices.Contains(named, path.Base(name)) || strings.HasPrefix(name, ".fairlead/") ||
		strings.HasPrefix(name, ".claude/") || strings.HasPrefix(name, ".git/")
}

// commands compares what documents tell people to type with doc/cli.md, which the
// command line writes of itself: a heading `fairlead VERB` for every verb.
func (r *tree) commands(t *testing.T) {
	reference, ok := r.text["doc/cli.md"]
	if !ok {
		t.Fatal("doc/cli.md is missing; UPDATE=1 go test ./cmd/fairlead writes it")
	}
	var verbs []string
	eachLine(reference, func(_ int, line string, _ bool) {
		if m := headingPattern.FindStringSubmatch(line); m != nil {
			if v := verbPattern.FindStringSubmatch(strings.Trim(m[1], "` ")); v != nil {
				verbs = append(verbs, v[1])
			}
		}
	})
	if len(verbs) == 0 {
		t.Fatal("doc/cli.md has no heading `fairlead VERB`; UPDATE=1 go test ./cmd/fairlead writes it anew")
	}
	for _, p := range r.texts(isDocument) {
		eachLine(r.text[p], func(number int, line string, code bool) {
			pieces := []string{line}
			if !code {
				pieces = nil
				for _, m := range codePattern.FindAllStringSubmatch(line, -1) {
					pieces = append(pieces, m[1])
				}
			}
			for _, piece := range pieces {
				for _, m := range verbPattern.FindAllStringSubmatch(piece, -1) {
					if !slices.Contains(verbs, m[1]) {
						t.Errorf("%s:%d: there is no command `fairlead %s`; doc/cli.md has those there are", p, number, m[1])
					}
				}
			}
		})
	}
}

func isDocument(p string) bool { return path.Ext(p) == ".md" && !strings.Contains(p, "testdata/") }

func (r *tree) generatedFiles(t *testing.T) {
	mark := regexp.MustCompile(`Code generated .* DO NOT EDIT\.`)
	for _, p := range generated {
		if text, ok := r.text[p]; ok && !mark.MatchString(firstLine(text)) {
			t.Errorf("%s: its first line does not say that it is generated; let its test write `<!-- Code generated from …; DO NOT EDIT. -->`", p)
		}
	}
	for _, p := range r.goFiles() {
		for _, group := range r.goes[p].Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "// Code generated") && !strings.HasSuffix(c.Text, "DO NOT EDIT.") {
					t.Errorf("%s: a generated file is marked `// Code generated … DO NOT EDIT.`, to the letter", r.goes[p].at(c.Pos()))
				}
			}
		}
	}
}
