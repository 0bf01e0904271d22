package diff

import (
	"embed"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
)

//go:embed lexers/*.xml
var embedded embed.FS

const (
	colourBytesMax = 512 << 10              // of one side of a file; more than a person reads
	colourTimeMax  = 250 * time.Millisecond // for one side of a file; a pattern may backtrack
	nameBytesMax   = 4096
)

// registry has the lexers. It reads only their names; a lexer reads its rules when it is used first.
var registry = sync.OnceValue(func() *chroma.LexerRegistry {
	all := chroma.NewLexerRegistry()
	paths, err := fs.Glob(embedded, "lexers/*.xml")
	if err != nil {
		panic(err)
	}
	for _, path := range paths {
		all.Register(chroma.MustNewXMLLexer(embedded, path))
	}
	return all
})

// lexer finds the lexer for a file by its name; nil: none fits.
func lexer(name string) chroma.Lexer {
	if len(name) > nameBytesMax || strings.HasSuffix(name, "/") {
		return nil
	}
	return registry().Match(name)
}

// colour splits lines into tokens. A line whose colours are not known is one token.
func colour(lex chroma.Lexer, lines []string) [][]RowToken {
	all := make([][]RowToken, len(lines))
	for i, line := range lines {
		all[i] = []RowToken{{Text: line}}
	}
	text := strings.Join(lines, "\n") + "\n"
	if lex == nil || len(text) > colourBytesMax {
		return all
	}
	tokens := tokens(lex, text)
	at := 0
	var line []RowToken
	for _, t := range tokens {
		for part := range strings.SplitAfterSeq(t.Text, "\n") {
			word, ends := strings.CutSuffix(part, "\n")
			if word != "" {
				line = add(line, RowToken{Class: t.Class, Text: word})
			}
			if !ends {
				continue
			}
			if at < len(lines) && same(line, lines[at]) {
				all[at] = line
			}
			at, line = at+1, nil
		}
	}
	return all
}

func add(line []RowToken, t RowToken) []RowToken {
	if n := len(line); n > 0 && line[n-1].Class == t.Class {
		line[n-1].Text += t.Text
		return line
	}
	return append(line, t)
}

// same reports whether tokens have exactly the text of a line.
func same(tokens []RowToken, line string) bool {
	for _, t := range tokens {
		rest, ok := strings.CutPrefix(line, t.Text)
		if !ok {
			return false
		}
		line = rest
	}
	return line == "" && len(tokens) > 0
}

// tokens is what a lexer finds before its time is over. A lexer runs patterns of another project on text of an
// agent; if it panics, the rest of the text has no colour.
func tokens(lex chroma.Lexer, text string) (all []RowToken) {
	defer func() { _ = recover() }()
	next, err := lex.Tokenise(&chroma.TokeniseOptions{State: "root"}, text)
	if err != nil {
		return nil
	}
	until := time.Now().Add(colourTimeMax)
	for n := 0; ; n++ {
		t := next()
		if t == chroma.EOF || n%64 == 0 && time.Now().After(until) {
			return all
		}
		all = append(all, RowToken{Class: class(t.Type), Text: t.Value})
	}
}

// class is the name of a colour. The page has a style for each.
func class(t chroma.TokenType) string {
	switch {
	case t == chroma.KeywordType:
		return "type"
	case t == chroma.KeywordConstant, t == chroma.NameBuiltin, t == chroma.NameBuiltinPseudo, t == chroma.NameConstant:
		return "const"
	case t == chroma.NameFunction, t == chroma.NameFunctionMagic:
		return "func"
	case t == chroma.NameClass, t == chroma.NameNamespace:
		return "type"
	case t == chroma.NameTag, t == chroma.GenericHeading, t == chroma.GenericSubheading, t == chroma.GenericStrong,
		t == chroma.OperatorWord:
		return "key"
	case t == chroma.NameAttribute, t == chroma.NameDecorator, t == chroma.NameProperty:
		return "attr"
	case t.InCategory(chroma.Comment):
		return "note"
	case t.InCategory(chroma.Keyword):
		return "key"
	case t.InSubCategory(chroma.LiteralNumber):
		return "num"
	case t.InSubCategory(chroma.LiteralString):
		return "str"
	default:
		return ""
	}
}
