package policy

import "strings"

// flags lists a program's flags that are known to be harmless.
type flags struct {
	short  string // letters without a value
	valued string // letters with a value, attached or as the next word
	long   string // names separated by spaces; a final = means that the flag has a value
	most   int    // greatest number of operands; 0: any number
	none   bool   // no operands
	words  bool   // its long flags have one dash
}

// has reports whether a word is in a space-separated list.
func has(list, word string) bool {
	for list != "" {
		var head string
		head, list, _ = strings.Cut(list, " ")
		if head == word {
			return true
		}
	}
	return false
}

// flag judges one word that begins with a dash, and reports whether the next word is its value.
func (f flags) flag(word string) (known, takesNext bool) {
	dashes := "--"
	if f.words {
		dashes = "-"
	}
	if name, isLong := strings.CutPrefix(word, dashes); isLong {
		name, _, attached := strings.Cut(name, "=")
		if has(f.long, name+"=") {
			return true, !attached
		}
		return has(f.long, name), false
	}
	for i := 1; i < len(word); i++ {
		switch {
		case strings.IndexByte(f.valued, word[i]) >= 0:
			return true, i == len(word)-1
		case strings.IndexByte(f.short, word[i]) < 0:
			return false, false
		}
	}
	return true, false
}

// skip returns where the flags at the beginning end, or the flag that is not known.
func (f flags) skip(args []value) (at int, fault string) {
	for at < len(args) {
		v := args[at]
		switch {
		case v.static() && v.text == "--":
			return at + 1, ""
		case !v.maybeFlag() || v.static() && v.text == "-":
			return at, ""
		case !v.static() && v.text[0] != '-':
			return at, "" // the command word itself, which is judged as such
		case !v.static():
			return at, v.show()
		}
		known, takesNext := f.flag(v.text)
		if !known {
			return at, cut(v.text)
		}
		if at++; !takesNext {
			continue
		}
		if at < len(args) && !args[at].static() {
			return at, v.text + " " + args[at].show() // it may be no word, or several
		}
		at++
	}
	return min(at, len(args)), ""
}

// check judges all words of a program whose other flags may not be harmless. A word that may become a flag
// when the command runs counts as an unknown one.
func (f flags) check(program string, args []value) *denial {
	operands, ended := 0, false
	for i := 0; i < len(args); i++ {
		v := args[i]
		switch {
		case ended || !v.maybeFlag() || v.static() && v.text == "-":
			if v.split {
				return maybeFlag(program, v)
			}
			operands++
			continue
		case v.static() && v.text == "--":
			ended = true
			continue
		case !v.static() && !strings.HasPrefix(v.text, "-") || v.split:
			return maybeFlag(program, v)
		}
		known, takesNext := f.flag(strings.ReplaceAll(v.text, string(hole), "\x01"))
		if !known {
			return unknownFlag(program, v.show())
		}
		if !takesNext {
			continue
		}
		if i++; i < len(args) && args[i].maybeFlag() && !(args[i].static() && isNumber(args[i].text)) {
			return maybeFlag(program, args[i])
		}
	}
	switch {
	case f.none && operands > 0:
		return trouble("run "+program, "with an argument, "+program+" may change something", "leave the argument out")
	case f.most > 0 && operands > f.most:
		return trouble("run "+program, "a further argument of "+program+" names a file that it writes", "leave that argument out")
	}
	return nil
}

// trouble is why a command is not harmless.
func trouble(capability, why, instead string) *denial {
	return &denial{capability: capability, why: why, instead: instead}
}

func unknownFlag(program, flag string) *denial {
	return trouble("run "+program+" with any flag", "the flag "+flag+" of "+program+" is not known to be harmless", "leave it out")
}

func maybeFlag(program string, v value) *denial {
	return trouble("run "+program+" with any flag", "the word "+v.show()+" of "+program+" may turn out to be a flag when it runs",
		"write it out, or begin it with ./")
}

func notGathering(name string) *denial {
	return trouble(capabilityOf(name), cut(name)+" is not an information-gathering command", "")
}

// capabilities are programs by what running them needs, in words that an agent's description may use.
var capabilities = []struct{ what, programs string }{
	{"run Python code", "pip pip3 pytest uv poetry ruff mypy tox"},
	{"run JavaScript or TypeScript code", "node npm npx yarn pnpm bun deno tsc jest vite eslint"},
	{"build and run Go code", "go gofmt golangci-lint"},
	{"build and run Rust code", "cargo rustc rustup"},
	{"compile and build C or C++ code", "gcc cc g++ clang clang++ make cmake ninja ld"},
	{"build and run Java code", "java javac mvn gradle kotlin"},
	{"run Ruby code", "ruby bundle rake gem rails"},
	{"run PHP code", "php composer"},
	{"run containers and deployment", "docker podman kubectl helm terraform ansible docker-compose"},
	{"query a database with SQL", "psql mysql sqlite3 mongosh redis-cli"},
	{"use git version control", "git gh"},
	{"change files", "rm mv cp mkdir touch chmod chown ln install dd tee truncate"},
	{"use the network from the shell", "curl wget ssh scp rsync"},
	{"run an interactive program", "vi vim nano emacs ed less more man"},
}

// capabilityOf names what running a program needs.
func capabilityOf(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, c := range capabilities {
		if has(c.programs, name) || strings.HasPrefix(name, "python") && has(c.programs, "pytest") {
			return c.what + " (" + cut(name) + ")"
		}
	}
	return "run the shell command " + cut(name)
}
