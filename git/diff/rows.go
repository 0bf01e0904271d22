package diff

import (
	"fmt"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Limits of one file. The page says when one is reached.
const (
	FileBytesMax = 8 << 20 // of both contents together; more is not compared for the page
	rowsMax      = 20_000
	lineBytesMax = 2000 // of one line that are shown
)

// Rows reads the text that `git diff` prints for one file. name decides the colours.
func Rows(name, text string) (shown ChangedRows, err error) {
	defer func() { // the parser is another project's, and reads what an agent wrote
		if fault := recover(); fault != nil {
			shown, err = ChangedRows{}, fmt.Errorf("the changes cannot be understood: %v", fault)
		}
	}()
	files, _, err := gitdiff.Parse(strings.NewReader(text))
	if err != nil {
		return shown, fmt.Errorf("the changes cannot be understood: %w", err)
	}
	lex := lexer(name)
	for _, f := range files { // two, if a file became a link
		shown.Binary = shown.Binary || f.IsBinary
		for _, part := range f.TextFragments {
			if len(shown.Rows) >= rowsMax {
				shown.MoreRows += 1 + len(part.Lines)
				continue
			}
			shown.Rows = append(shown.Rows, hunk(part)...)
		}
	}
	if len(shown.Rows) > rowsMax {
		shown.MoreRows += len(shown.Rows) - rowsMax
		shown.Rows = shown.Rows[:rowsMax]
	}
	shown.CRLF = endings(shown.Rows)
	for i := range shown.Rows {
		cut(&shown.Rows[i])
	}
	paint(lex, shown.Rows)
	mark(shown.Rows)
	return shown, nil
}

// hunk is the rows of one fragment: a heading, and its lines.
func hunk(part *gitdiff.TextFragment) []ChangedRow {
	heading := fmt.Sprintf("@@ -%d,%d +%d,%d @@", part.OldPosition, part.OldLines, part.NewPosition, part.NewLines)
	if part.Comment != "" {
		heading += " " + part.Comment
	}
	rows := []ChangedRow{{Kind: HunkRow, Tokens: []RowToken{{Text: heading}}}}
	was, is := part.OldPosition, part.NewPosition
	for _, l := range part.Lines {
		row := ChangedRow{Kind: SameRow, Tokens: []RowToken{{Text: strings.TrimSuffix(l.Line, "\n")}}}
		switch l.Op {
		case gitdiff.OpAdd:
			row.Kind, row.New = AddRow, is
			is++
		case gitdiff.OpDelete:
			row.Kind, row.Old = DelRow, was
			was++
		default:
			row.Old, row.New = was, is
			was, is = was+1, is+1
		}
		rows = append(rows, row)
		if l.NoEOL() {
			rows = append(rows, ChangedRow{Kind: NoteRow, Tokens: []RowToken{{Text: "no newline at the end of the file"}}})
		}
	}
	return rows
}

// endings takes the carriage returns off the lines if all of them have one, and reports whether they had.
func endings(rows []ChangedRow) bool {
	lines := 0
	for _, r := range rows {
		if code(r) {
			if lines++; !strings.HasSuffix(r.Tokens[0].Text, "\r") {
				return false
			}
		}
	}
	for i := range rows {
		if code(rows[i]) {
			rows[i].Tokens[0].Text = strings.TrimSuffix(rows[i].Tokens[0].Text, "\r")
		}
	}
	return lines > 0
}

// code reports whether a row is a line of the file.
func code(r ChangedRow) bool { return r.Kind != HunkRow && r.Kind != NoteRow }

// cut makes a row's text valid, and no longer than is shown.
func cut(r *ChangedRow) {
	whole := r.Tokens[0].Text
	text := clip.To(whole, lineBytesMax)
	r.MoreBytes = len(whole) - len(text)
	r.Tokens[0].Text = strings.ToValidUTF8(text, "\uFFFD")
}

// paint colours the rows: the new side of a fragment, and of its old side the lines that are gone.
func paint(lex chroma.Lexer, rows []ChangedRow) {
	if lex == nil {
		return
	}
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].Kind != HunkRow {
			to++
		}
		side(lex, rows[from:to], AddRow)
		side(lex, rows[from:to], DelRow)
		from = to
	}
}

// side colours the lines of one side of a fragment, of which those of a kind are only there.
func side(lex chroma.Lexer, rows []ChangedRow, kind string) {
	var lines []string
	var at []int
	own := false
	for i, r := range rows {
		if r.Kind == kind || r.Kind == SameRow {
			own = own || r.Kind == kind
			lines, at = append(lines, whole(r.Tokens)), append(at, i)
		}
	}
	if !own && kind == DelRow {
		return
	}
	for i, tokens := range colour(lex, lines) {
		if r := &rows[at[i]]; r.Kind == kind || kind == AddRow {
			r.Tokens = tokens
		}
	}
}

// whole is the text of a row.
func whole(tokens []RowToken) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(t.Text)
	}
	return b.String()
}
