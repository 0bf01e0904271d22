// Package diff turns what git prints about a change into rows of coloured text for the page.
//
// A diff is written by an agent, so nothing in it is trusted. The package returns text and the names of
// classes, never markup. Every size has a limit, and a result says when a limit was reached. Input that
// cannot be understood is an error or plain text.
//
// The lexers are definitions of github.com/alecthomas/chroma (lexers/COPYING), read when the first file is
// coloured. The module's own package of lexers reads all of them at every start of the program, which takes
// 7 to 24 ms. Its definition of Go is code, so lexers/go.xml and lexers/markdown.xml are shorter ones of our own.
//
// The one promise: the words of a row are those of the file, whatever the colours are. If a lexer drops,
// changes or takes too long over a line, the line has no colour.
package diff
