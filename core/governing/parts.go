package governing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Mix is one mixed file: programs execute only parts of it.
type Mix struct {
	Name string
	// Idle is what runs nothing: keys, or attributes of git, where a star stands for any key, or for the rest of a name. All else counts.
	Idle []string
	read func(text []byte, idle []string) (any, error) // what counts of it; nil: nothing does
}

// Mixes are the mixed files, as doc/tasks.md has them. What a package depends on is not among the parts that run: it comes from a
// registry. The other files of the table count as a whole: most of what they hold is executed, or no strict reader tells what is not.
var Mixes = []Mix{
	{".gitattributes", []string{
		"text", "eol", "crlf", "ident", "whitespace", "encoding", "working-tree-encoding", "conflict-marker-size", "delta",
		"export-ignore", "export-subst", "linguist-*", "gitlab-*",
	}, attributes},
	{"Cargo.toml", append(below(
		"package", "name", "version", "authors", "edition", "rust-version", "description", "documentation", "readme", "homepage",
		"repository", "license", "license-file", "keywords", "categories", "exclude", "include", "publish",
	), "dependencies", "dev-dependencies", "target.*.dependencies", "target.*.dev-dependencies", "features", "badges", "lints"), tables},
	{"pyproject.toml", append(append(below(
		"project", "name", "version", "description", "readme", "requires-python", "license", "license-files", "authors", "maintainers",
		"keywords", "classifiers", "urls", "dependencies", "optional-dependencies",
	), below(
		"tool.poetry", "name", "version", "description", "readme", "license", "authors", "maintainers", "keywords", "classifiers",
		"homepage", "repository", "documentation", "urls", "dependencies", "dev-dependencies", "group.*.dependencies", "extras",
	)...), "dependency-groups", "tool.black", "tool.ruff"), tables},
	{"package.json", []string{
		"name", "version", "description", "keywords", "homepage", "bugs", "license", "author", "contributors", "maintainers", "funding",
		"files", "repository", "dependencies", "devDependencies", "peerDependencies", "peerDependenciesMeta", "optionalDependencies",
		"private", "publishConfig", "engines", "os", "cpu", "types", "typings", "sideEffects", "main", "module", "browser", "exports",
		"type",
	}, object},
	{"composer.json", []string{
		"name", "version", "description", "keywords", "homepage", "readme", "time", "license", "authors", "support", "funding", "require",
		"require-dev", "conflict", "replace", "provide", "suggest", "minimum-stability", "prefer-stable", "archive", "abandoned",
	}, object},
	{"deno.json", []string{"name", "version", "license", "imports", "exports", "fmt", "exclude"}, object},
}

func below(table string, keys ...string) []string {
	for i := range keys {
		keys[i] = table + "." + keys[i]
	}
	return keys
}

// MixedBytesMax is the size of a mixed file's two versions from which it counts as a whole: a description of a package is far below it,
// and it is read in some seconds at most.
const MixedBytesMax = 256 << 10

func mixOf(name string) *Mix {
	base := fold(path.Base(name))
	for i := range Mixes {
		if fold(Mixes[i].Name) == base {
			return &Mixes[i]
		}
	}
	return nil
}

// Mixed reports whether only parts of a file run. A file that another pattern names, too, such as one in a folder of the table,
// counts as a whole. more are the patterns of tasks.governing.
func Mixed(name string, more []string) bool {
	mix, parts := mixOf(name), strings.Split(fold(name), "/")
	if mix == nil || matches(parts, more) {
		return false
	}
	for _, row := range Table {
		others := slices.DeleteFunc(slices.Clone(row.Patterns), func(pattern string) bool { return pattern == mix.Name })
		if matches(parts, others) {
			return false
		}
	}
	return true
}

// Differs reports whether the parts of a mixed file that run differ. A side that does not exist is empty. A file that cannot be read
// strictly differs.
func Differs(name string, before, after []byte) bool {
	mix := mixOf(name)
	if mix == nil || len(before)+len(after) > MixedBytesMax {
		return true
	}
	was, err := mix.running(before)
	now, fault := mix.running(after)
	return err != nil || fault != nil || !reflect.DeepEqual(was, now)
}

func (m *Mix) running(text []byte) (any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	return m.read(text, m.Idle)
}

// object reads a JSON object. Of a key that is given twice the last one counts, as for the programs that read it.
func object(text []byte, idle []string) (any, error) {
	read := json.NewDecoder(bytes.NewReader(text))
	read.UseNumber()
	var all map[string]any
	if err := read.Decode(&all); err != nil {
		return nil, err
	}
	if _, err := read.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it goes on after the object")
	}
	return without(all, idle), nil
}

// Bounds of TOML. The time of its reader grows with the square of the depth, of brackets and of a key with dots: within these bounds
// it is below some seconds for the largest file. A bracket in a text counts, too, so that no text hides one.
const (
	bracketsMax = 2000
	lineDotsMax = 200
)

// tables reads TOML.
func tables(text []byte, idle []string) (any, error) {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) > bracketsMax {
		return nil, errors.New("it has too many brackets")
	}
	for line := range bytes.Lines(text) {
		if bytes.Count(line, []byte(".")) > lineDotsMax {
			return nil, errors.New("a line has too many dots")
		}
	}
	var all map[string]any
	if _, err := toml.Decode(string(text), &all); err != nil {
		return nil, err
	}
	return without(all, idle), nil
}

// without removes keys that run nothing, and tables of which nothing else is left; nil: nothing is left at all.
func without(all map[string]any, idle []string) any {
	for _, key := range idle {
		remove(all, strings.Split(key, "."))
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func remove(from map[string]any, key []string) {
	names := []string{key[0]}
	if key[0] == "*" {
		names = nil
		for name := range from {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if len(key) == 1 {
			delete(from, name)
			continue
		}
		table, is := from[name].(map[string]any)
		if !is || len(table) == 0 {
			continue
		}
		if remove(table, key[1:]); len(table) == 0 {
			delete(from, name)
		}
	}
}

// attributeLineMax is the length from which git ignores a line of .gitattributes.
const attributeLineMax = 2048

// attributes reads .gitattributes. A value of filter, diff or merge names a program; a line without one can only end what another
// line says, so such lines count as soon as a value does. A name that git does not define may be a macro for any of them.
func attributes(text []byte, idle []string) (any, error) {
	var lines [][]string
	runs := false
	for line := range strings.SplitSeq(string(text), "\n") {
		if len(line) >= attributeLineMax || strings.Contains(line, "\x00") {
			return nil, errors.New("git does not read a line as it stands there")
		}
		words, err := attributeWords(line)
		if err != nil {
			return nil, err
		}
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		counts := words[:1:1]
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			if word[0] == '-' || word[0] == '!' {
				name = name[1:]
			}
			if slices.ContainsFunc(idle, func(pattern string) bool { is, _ := path.Match(pattern, name); return is }) {
				continue
			}
			counts = append(counts, word)
			runs = runs || value != "" || !slices.Contains([]string{"filter", "diff", "merge", "binary"}, name)
		}
		if macro := strings.HasPrefix(words[0], "[attr]"); macro || len(counts) > 1 {
			lines, runs = append(lines, counts), runs || macro
		}
	}
	if !runs {
		return nil, nil
	}
	return lines, nil
}

// attributeWords splits a line as git does. A pattern with blanks is in quotes.
func attributeWords(line string) ([]string, error) {
	const blanks = " \t\r"
	line = strings.TrimLeft(line, blanks)
	if !strings.HasPrefix(line, `"`) {
		return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(blanks, r) }), nil
	}
	for end := 1; end < len(line); end++ {
		switch line[end] {
		case '\\':
			end++
		case '"':
			rest, err := attributeWords("x" + line[end+1:])
			if err != nil || rest[0] != "x" {
				return nil, fmt.Errorf("text follows the pattern %s at once", line[:end+1])
			}
			rest[0] = line[:end+1]
			return rest, nil
		}
	}
	return nil, errors.New("a pattern in quotes has no end")
}
