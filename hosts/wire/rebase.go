package wire

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// Check returns why launches cannot be prepared for these places; nil: they can. A path is written into JSON and
// into prompts as it is, so it has no character that JSON writes in another way.
func (p Places) Check() error {
	for name, path := range map[string]string{"repository": p.Root, "program fairlead": p.Exe, "home": p.Home} {
		switch {
		case path == "" && name == "home":
		case !filepath.IsAbs(path) || filepath.Clean(path) != path:
			return fmt.Errorf("the path of the %s, %q, is not absolute and clean", name, path)
		case strings.ContainsFunc(path, func(r rune) bool { return strings.ContainsRune("\"\\<>&", r) || !unicode.IsPrint(r) }):
			return fmt.Errorf("the path of the %s, %q, has a quote, a backslash, <, >, & or a character that cannot be printed; move it to another folder", name, path)
		}
	}
	return nil
}

// PlacesOf are the places of this machine, for a repository. HOME stays as it is written, with its links: so it occurs in
// launches. A user without one has no home.
func PlacesOf(repository string) (p Places, err error) {
	if p.Root, err = filepath.Abs(repository); err == nil {
		p.Root, err = filepath.EvalSymlinks(p.Root)
	}
	if err != nil {
		return p, fmt.Errorf("find the repository: %w", err)
	}
	if p.Exe, err = os.Executable(); err != nil {
		return p, fmt.Errorf("find the program fairlead: %w", err)
	}
	p.Exe = strings.TrimSuffix(p.Exe, " (deleted)") // an update has replaced it
	if real, err := filepath.EvalSymlinks(p.Exe); err == nil {
		p.Exe = real
	}
	if home, err := os.UserHomeDir(); err == nil {
		p.Home = filepath.Clean(home)
	}
	return p, p.Check()
}

// Rebase replaces the places of one machine by those of another, wherever a launch has one as a whole path or as the
// beginning of one. The longest match counts, and a replacement is not looked at again. / is no such place, as some
// users have it as their home.
func Rebase(in StartIn, from, to Places) StartIn {
	type place struct{ from, to string }
	places := []place{{from.Root, to.Root}, {from.Exe, to.Exe}, {from.Home, to.Home}}
	places = slices.DeleteFunc(places, func(p place) bool { return len(p.from) < 2 || p.to == "" })
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(len(b.from), len(a.from)) })
	moved := func(text string) string {
		var b strings.Builder
		done := 0
		for at := 0; at < len(text); at++ {
			if text[at] != '/' || !beginsPath(text[:at]) {
				continue
			}
			for _, p := range places {
				if rest, is := strings.CutPrefix(text[at:], p.from); is && endsName(rest) {
					b.WriteString(text[done:at])
					b.WriteString(p.to)
					done = at + len(p.from)
					at = done - 1
					break
				}
			}
		}
		if done == 0 {
			return text
		}
		return b.String() + text[done:]
	}
	list := func(words []string) []string {
		words = slices.Clone(words) // nil stays nil
		for i := range words {
			words[i] = moved(words[i])
		}
		return words
	}
	in.Launch.Argv, in.Launch.Env = list(in.Launch.Argv), list(in.Launch.Env)
	in.Launch.Dir = moved(in.Launch.Dir)
	if in.Launch.Input != nil {
		in.Launch.Input = []byte(moved(string(in.Launch.Input)))
	}
	if in.Confine != nil {
		c := *in.Confine
		for _, words := range []*[]string{
			&c.Command, &c.CanWrite, &c.Read, &c.Write, &c.CannotWrite, &c.Hide, &c.Sockets, &c.Writes,
			&c.Others,
		} {
			*words = list(*words)
		}
		c.Clone = moved(c.Clone)
		if c.Run != nil {
			r := *c.Run
			r.Dir, r.Reports, r.Artifacts, r.Files, r.Folders = moved(r.Dir), moved(r.Reports), moved(r.Artifacts), list(r.Files),
				list(r.Folders)
			c.Run = &r
		}
		in.Confine = &c
	}
	return in
}

// beginsPath reports whether a path can begin behind a text: it does not behind a part of a name or of a path, except
// in file:///PATH. In JSON, \n is the end of a line and no name.
func beginsPath(before string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	switch {
	case before == "" || strings.HasSuffix(before, "://"):
		return true
	case last == '/' || strings.ContainsRune("})]*?$", last):
		return false
	}
	return !ofName(last) || endsEscape(before)
}

// endsEscape reports whether a text ends with an escape of JSON, such as \n or \u003c.
func endsEscape(text string) bool {
	text = text[max(0, len(text)-64):] // so that a long text costs no more
	at := strings.LastIndexByte(text, '\\')
	if at < 0 {
		return false
	}
	slashes := at + 1 - len(strings.TrimRight(text[:at+1], `\`))
	escape := text[at+1:]
	return slashes%2 == 1 && (len(escape) == 1 && strings.Contains("bfnrt", escape) || len(escape) == 5 && escape[0] == 'u')
}

// endsName reports whether the name before a text ends there. A full stop at the end of a sentence is no part of it.
func endsName(rest string) bool {
	rest = strings.TrimLeft(rest, ".")
	next, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || !ofName(next)
}

// ofName reports whether a character usually belongs to the name of a file.
func ofName(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.+@~", r)
}

// Resolve finishes a start on its host, with that host's environment and name. What the host lacks is a
// *spawn.CannotStart.
func Resolve(in StartIn, environ []string, host string) (StartIn, error) {
	launch, err := driver.Resolve(in.Launch, environ, host)
	if err != nil {
		return StartIn{}, &spawn.CannotStart{Why: err.Error()}
	}
	in.Launch = launch
	return in, nil
}
