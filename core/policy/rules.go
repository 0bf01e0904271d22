package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// byRules checks a file against the role's globs. A denial wins.
func (j *judge) byRules(t target, places []string, f File) *denial {
	names := make([]string, 0, 2*len(places))
	for _, p := range places {
		names = append(names, p)
		if trimmed := strings.TrimRight(p, " ."); trimmed != p {
			names = append(names, trimmed) // some file systems treat "x.py." as x.py
		}
	}
	deny := func(why string) *denial {
		d := &denial{
			capability: "write " + kindOf(path.Base(f.Path)), why: fmt.Sprintf("%s: %s", cut(t.given), why),
			instead: "write a note (*.md, *.txt, *.json) instead",
		}
		if j.bound {
			d.instead = ""
		}
		return d
	}
	executable := executableBecause(names, t, f)
	for _, pattern := range j.rules.CannotWrite {
		if isPhrase(pattern, anyExecutable) {
			if executable != "" {
				return deny("it is an executable file: " + executable)
			}
			continue
		}
		for _, name := range names {
			ok, err := j.forbids(pattern, name)
			if err != nil {
				return deny(fmt.Sprintf("the rule %q in cannot_write is not a glob; fix it in the configuration", pattern))
			}
			if ok {
				return deny(fmt.Sprintf("cannot_write lists %s", pattern))
			}
		}
	}
	if f.Kind == Regular && f.Links > 1 && j.main {
		return deny("it has other names on the disk (hard links), so it is not known what else would change")
	}
	if j.bound {
		j.doubtful(t, f)
		if j.rules.CanWrite == nil {
			return nil
		}
	}
	for _, p := range places {
		if why := j.covered(p, executable, t.tree && f.Kind == Folder); why != "" {
			return deny(why)
		}
	}
	return nil
}

// covered returns why can_write does not cover a path, and everything below it with tree; empty: it does.
func (j *judge) covered(p, executable string, tree bool) string {
	why := "can_write does not list it"
	if j.main && j.isForTools(p) {
		return "it is configuration that a program may read"
	}
	for _, pattern := range j.rules.CanWrite {
		switch {
		case pattern == "*" || pattern == "**":
			return ""
		case isPhrase(pattern, nonExecutable):
			switch {
			case executable != "":
				why = "it is an executable file: " + executable
			case isConfiguration(path.Base(p)):
				why = "it is configuration"
			case j.main && !isNote(path.Base(p)):
				why = "its name is not known as that of a note"
			default:
				return ""
			}
		default:
			if j.lists(pattern, p, tree) {
				return ""
			}
		}
	}
	if j.bound && (below(p, j.outputs) || j.where.Dialogue != "" && slices.Contains(j.both(j.where.Dialogue), p)) {
		return "" // the place for an agent's files
	}
	return why
}

func isPhrase(pattern, phrase string) bool {
	return strings.EqualFold(strings.TrimSpace(pattern), phrase)
}

// executableBecause returns why a file is executable: its name, its mode or its first line; empty: it is not.
func executableBecause(names []string, t target, f File) string {
	switch {
	case t.script:
		return "the new text begins with #!"
	case f.Exec:
		return "its execute bit is set"
	case f.Script:
		return "it begins with #!"
	}
	for _, name := range names {
		if programKind(path.Base(name)) != "" {
			return "its name says so"
		}
	}
	return ""
}

// programs are names and endings of programs and build files, besides the seed's, in words that an agent's
// description may use.
var programs = []struct{ kind, names string }{
	{"a Python script", ".py .pyw .pyx .pyi"},
	{"a Jupyter notebook in Python", ".ipynb"},
	{"JavaScript code", ".js .jsx .mjs .cjs .vue .svelte"},
	{"TypeScript code", ".ts .tsx .mts .cts"},
	{"a shell script", ".sh .bash .zsh .fish .ksh .csh"},
	{"Go code", ".go go.mod go.sum"},
	{"Rust code", ".rs"},
	{"C code", ".c .h"},
	{"C++ code", ".cc .cxx .cpp .hh .hpp .hxx"},
	{"Java code", ".java .kt .kts .scala .groovy .gradle"},
	{"Ruby code", ".rb rakefile gemfile"},
	{"PHP code", ".php"},
	{"a database query in SQL", ".sql"},
	{"a Docker image's build file", "dockerfile containerfile"},
	{
		"a build file",
		"makefile gnumakefile bsdmakefile justfile jenkinsfile vagrantfile procfile cmakelists.txt meson.build build.bazel .mk .cmake .bzl",
	},
	{"code", ".bat .cmd .ps1 .psm1 .m .mm .clj .cs .fs .vb .swift .pl .pm .lua .r .jl .dart .ex .exs .erl .hs .ml .zig .nim .tcl .awk " +
		".exe .dll .so .dylib .jar .class .wasm .o .a .pyc .desktop .service .command .app .deb .rpm .msi"},
}

// programKind says what kind of program a name is; empty: none.
func programKind(name string) string {
	name = plainName(name)
	for _, p := range programs {
		if has(p.names, name) || path.Ext(name) != "" && has(p.names, path.Ext(name)) {
			return p.kind
		}
	}
	return ""
}

// plainName is a name as file systems and programs may read it: in one form of Unicode, without characters that
// show nothing, in lower case.
func plainName(name string) string {
	name = norm.NFKC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) && r >= 0xfe00 && r <= 0xfe0f {
			return -1
		}
		return r
	}, name))
	return strings.TrimRight(strings.ToLower(name), " .")
}

// isNote lists names of files that are only read: no program runs them, or takes them for its settings.
func isNote(name string) bool {
	name = plainName(name)
	stem, ending, found := strings.Cut(name, ".")
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		ending = name[i+1:]
	}
	if !found {
		return has("readme license licence copying notice changelog changes authors contributing todo notes summary plan report", stem)
	}
	return stem != "" &&
		has("md markdown txt text rst adoc asciidoc org log json jsonl ndjson csv tsv html htm tex bib diff dot mmd puml srt vtt ics eml",
			ending)
}

// isForTools reports whether a place is one where programs look for their settings: below a hidden folder, or
// one of the names that editors and builders know.
func (j *judge) isForTools(p string) bool {
	rest := p
	for _, out := range j.outputs {
		if below(p, []string{out}) {
			rest = p[len(out):]
		}
	}
	if rest == p {
		return false // a place that the user named
	}
	for component := range strings.SplitSeq(rest, "/") {
		if strings.HasPrefix(plainName(component), ".") {
			return true
		}
	}
	return has("composer.json deno.json tsconfig.json jsconfig.json tasks.json launch.json settings.json devcontainer.json angular.json turbo.json nx.json lerna.json "+
		"biome.json vercel.json now.json firebase.json manifest.json cmakepresets.json cmakelists.txt requirements-dev.txt",
		plainName(path.Base(p)))
}

// isConfiguration lists configuration files of programs, except JSON.
func isConfiguration(name string) bool {
	name = plainName(name)
	ext := path.Ext(name)
	switch {
	case ext != "" &&
		has(".yaml .yml .toml .ini .cfg .conf .config .cnf .env .properties .plist .xml .lock .tf .tfvars .hcl .nix .csproj .vcxproj .sln .reg .jsonc .json5 .rules .policy", ext):
		return true
	case has(".md .txt .log .json .csv", ext):
		return strings.HasPrefix(name, ".env.") // .env.txt is not read as configuration, .env.json may be
	}
	return strings.HasPrefix(name, ".") // .bashrc, .gitattributes, .npmrc
}

// kindOf says what a file's name is about, in words that an agent's description may use.
func kindOf(name string) string {
	what := programKind(name)
	switch {
	case what != "":
	case isConfiguration(name):
		what = "configuration"
	default:
		what = "files"
	}
	return what + " (" + cut(name) + ")"
}
