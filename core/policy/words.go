package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// hole marks the place in a value of text that only the running shell knows. A command never holds this byte itself.
const hole = '\x00'

// value is one word of a command, as far as it is known before the command runs.
type value struct {
	text  string
	glob  bool // it holds an unquoted * ? or [
	split bool // it may become several words, or none
	opens bool // it begins with a glob character
	added bool // a program adds it, or a part of it, to a command that it runs
}

func unknownValue() value { return value{text: string(hole), split: true} }

// static reports that the word is exactly this text.
func (v value) static() bool { return !v.glob && !v.split && strings.IndexByte(v.text, hole) < 0 }

// maybeFlag reports that the word might begin with a dash when the command runs.
func (v value) maybeFlag() bool {
	return v.split || v.opens || strings.HasPrefix(v.text, "-") || strings.HasPrefix(v.text, string(hole))
}

// show formats the word for people.
func (v value) show() string {
	return cut(strings.ReplaceAll(v.text, string(hole), "$…"))
}

// word reads a word and everything within it, and returns what the shell makes of it.
func (s *shell) word(w *syntax.Word) []value {
	if w == nil || s.stop != nil {
		return nil
	}
	if !hasBrace(w) {
		return []value{s.value(w)}
	}
	syntax.SplitBraces(w)
	var values []value
	for made, err := range expand.BracesSeq(nil, w) {
		if err != nil || len(values) >= expansionsMax {
			s.cannot("its braces make too many words")
			return []value{unknownValue()}
		}
		values = append(values, s.value(&syntax.Word{Parts: joined(made.Parts)}))
	}
	return values
}

func hasBrace(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		_, split := p.(*syntax.BraceExp)
		return split || ok && strings.Contains(lit.Value, "{")
	})
}

// joined joins plain parts that were only split to find braces: {} is one word.
func joined(parts []syntax.WordPart) []syntax.WordPart {
	all := make([]syntax.WordPart, 0, len(parts))
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if n := len(all); ok && n > 0 {
			if before, ok := all[n-1].(*syntax.Lit); ok {
				all[n-1] = &syntax.Lit{Value: before.Value + lit.Value}
				continue
			}
		}
		all = append(all, part)
	}
	return all
}

// value reads one word after brace expansion.
func (s *shell) value(w *syntax.Word) value {
	var v value
	var b strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text := p.Value
			if i == 0 {
				text = s.tilde(&b, text)
			}
			s.literal(&b, &v, text, b.Len() == 0)
		case *syntax.SglQuoted:
			if p.Dollar {
				s.cannot("the quotes $'…' mean different things to different shells")
				plain, _, err := expand.Format(nil, p.Value, nil) // a hidden name is seen
				if err != nil || strings.ContainsRune(plain, hole) {
					plain = p.Value
				}
				b.WriteString(plain)
				continue
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				s.cannot("the quotes $\"…\" are translated")
			}
			s.quoted(&b, &v, p.Parts)
		case *syntax.ExtGlob:
			s.cannot("this glob runs commands in some shells")
			v.glob, v.split = true, true
			b.WriteByte(hole)
		default:
			s.part(&b, &v, part, false)
		}
	}
	if v.text = b.String(); v.text == "[" || v.text == "[[" {
		v.glob, v.opens = false, false // the command [, not a bracket expression
	}
	return v
}

// tilde writes the value of a leading ~, and returns the rest.
func (s *shell) tilde(b *strings.Builder, text string) string {
	if !strings.HasPrefix(text, "~") {
		return text
	}
	name, rest, _ := strings.Cut(text[1:], "/")
	if name == "" && s.j.where.Home != "" {
		b.WriteString(strings.TrimSuffix(s.j.where.Home, "/"))
	} else {
		b.WriteString("/" + string(hole))
	}
	if len(text) > 1+len(name) {
		return "/" + rest
	}
	return ""
}

// literal writes unquoted text as the shell reads it.
func (s *shell) literal(b *strings.Builder, v *value, text string, first bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i < len(text) {
				b.WriteByte(text[i])
			}
		case '*', '?', '[':
			v.glob = true
			v.opens = v.opens || first && i == 0
			b.WriteByte(c)
		case '{':
			if group, _, closed := strings.Cut(text[i:], "}"); !closed || strings.ContainsAny(group, ",") || strings.Contains(group, "..") {
				v.split = true // the shell may expand braces that were not expanded here
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
}

// quoted writes the content of double quotes.
func (s *shell) quoted(b *strings.Builder, v *value, parts []syntax.WordPart) {
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			s.part(b, v, part, true)
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			if c := lit.Value[i]; c == '\\' && i+1 < len(lit.Value) && strings.IndexByte("$`\"\\", lit.Value[i+1]) >= 0 {
				i++
			}
			b.WriteByte(lit.Value[i])
		}
	}
}

// part reads expansions: variables, and command substitutions.
func (s *shell) part(b *strings.Builder, v *value, part syntax.WordPart, quoted bool) {
	switch p := part.(type) {
	case *syntax.ParamExp:
		text, split := s.param(p, quoted)
		v.split = v.split || split
		b.WriteString(text)
	case *syntax.CmdSubst:
		if p.TempFile || p.ReplyVar {
			s.cannot("this kind of substitution is not known")
		}
		s.apart(p.Stmts)
		v.split = v.split || !quoted
		b.WriteByte(hole)
	case *syntax.ArithmExp:
		s.arithmetic(p.X)
		v.split = v.split || !quoted
		b.WriteByte(hole)
	case *syntax.ProcSubst:
		if p.Op != syntax.CmdIn {
			s.cannot("the process substitution >(…) writes")
		}
		s.apart(p.Stmts)
		b.WriteString("/proc/self/fd/" + string(hole))
	default:
		s.cannot("it holds a form that is not known")
		v.split = true
		b.WriteByte(hole)
	}
}

// param reads $x and ${x…}. It returns the text as far as it is known, and whether it may become several
// words.
func (s *shell) param(p *syntax.ParamExp, quoted bool) (text string, split bool) {
	element := false // of a list
	if w, ok := p.Index.(*syntax.Word); ok {
		element = isNumber(w.Lit()) || has("@ *", w.Lit())
	}
	assigns := p.Exp != nil && has(":= = @", p.Exp.Op.String())
	switch {
	case p.Param == nil, p.Excl, p.Names != 0, p.Slice != nil, p.Repl != nil, p.Index != nil && !element, assigns:
		s.cannot("this expansion of a variable may look up another name, calculate, or assign")
		s.compound(p)
		return string(hole), true
	case p.Exp != nil:
		s.word(p.Exp.Word)
	case p.Index == nil && !p.Length:
		if known, ok := s.known(p.Param.Value); ok {
			return known, !quoted && strings.ContainsAny(known, " \t\n*?[")
		}
	}
	list := p.Param.Value == "@" || p.Param.Value == "*" && !quoted || element
	return string(hole), !quoted || list
}

// known returns a variable's value if it is certain.
func (s *shell) known(name string) (string, bool) {
	if text, ok := s.vars[name]; ok {
		return text, strings.IndexByte(text, hole) < 0
	}
	switch {
	case name == "HOME" && s.j.where.Home != "":
		return s.j.where.Home, true
	case name == "PWD" && len(s.dirs) == 1:
		return s.dirs[0], true
	}
	return "", false
}

func isNumber(word string) bool {
	return word != "" && strings.Trim(strings.TrimPrefix(word, "-"), "0123456789") == "" && word != "-"
}

// arithmetic allows plain numbers. A name's value would be evaluated again, including commands.
func (s *shell) arithmetic(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok && !isNumber(w.Lit()) {
			s.cannot("arithmetic with names can assign, and run the code in a variable")
			s.compound(w)
		}
		return true
	})
}
