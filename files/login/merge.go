package login

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	bytesMax  = 256 << 10            // of a login file: a hundred servers with tokens are 100 KiB
	tokenMax  = 16 << 10             // bytes; JWTs with many claims have some 4 KiB
	aheadMax  = 400 * 24 * time.Hour // of an expiry: the longest known token holds for a year; a later time would always win
	numberMax = 32                   // digits: a time in seconds with all that a program prints behind the point
	groupsMax = 256                  // objects with tokens in one file
)

// errNotWhole says that a file is no JSON object: it is being written, or is none.
var errNotWhole = errors.New("it is no JSON object")

// tree is the content of a login file. A number keeps its text.
type tree = map[string]any

var rawNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *any) error {
	if d.PeekKind() == '0' {
		*to = jsontext.Value(nil)
	}
	return json.SkipFunc
}))

// parse reads a file. A name that occurs twice is refused, since readers disagree about its value.
func parse(text []byte) (tree, error) {
	var t tree
	if len(text) > bytesMax {
		return nil, fmt.Errorf("it is larger than %d bytes", bytesMax)
	}
	if err := json.Unmarshal(text, &t, rawNumbers); err != nil || t == nil {
		return nil, errNotWhole // the error of a parser would quote a token
	}
	return t, nil
}

func format(t tree) ([]byte, error) {
	return json.Marshal(t, jsontext.WithIndent("  "), json.Deterministic(true))
}

// side is one of two files.
type side struct {
	tree    tree
	written time.Time
}

// merged is what two files have together.
type merged struct {
	tree        tree     // the person's, with the freshest tokens
	fromSession bool     // some tokens are from the sessions' file
	fromPerson  bool     // some are fresher in the person's
	other       bool     // the sessions' file has other things than tokens that differ
	refused     []string // why tokens of the sessions' file were not taken
}

// merge takes the fresher tokens of each group. Everything else is the person's.
func merge(person, session side, groups []group, now time.Time) (m merged) {
	m.tree = copyOf(person.tree)
	rest := copyOf(session.tree) // what is left of it is no token
	for _, g := range groups {
		for _, at := range g.places(m.tree) {
			theirs, mine := object(session.tree, at), object(m.tree, at)
			if theirs == nil || !slices.ContainsFunc(g.tokens, func(name string) bool { return get(mine, name) != nil }) {
				continue
			}
			if why := g.take(mine, theirs, session.written.After(person.written), now, &m); why != "" {
				m.refused = append(m.refused, why)
			}
			left := object(rest, at)
			for _, name := range g.written() {
				set(left, name, get(mine, name))
			}
			for _, name := range g.quiet {
				set(left, name, get(mine, name))
			}
		}
	}
	m.other = !isSame(rest, m.tree)
	return m
}

func (g group) written() []string {
	names := slices.Concat(g.tokens, g.may)
	if g.expiry != "" {
		names = append(names, g.expiry)
	}
	return names
}

// take puts the tokens of the sessions' object into the person's, if they are fresher. It returns why they are none.
func (g group) take(mine, theirs tree, later bool, now time.Time, m *merged) string {
	if !slices.ContainsFunc(g.written(), func(name string) bool { return !isSame(get(mine, name), get(theirs, name)) }) {
		return ""
	}
	for _, name := range g.same {
		if !isSame(get(mine, name), get(theirs, name)) {
			return "it is of another account, or for another server"
		}
	}
	for _, name := range g.written() {
		before, after := get(mine, name), get(theirs, name)
		optional := slices.Contains(g.may, name)
		switch {
		case before == nil && (optional || after == nil), optional && after == nil:
		case !isToken(after) || before != nil && isText(before) != isText(after):
			return "a token in it is none"
		case subject(before) != "" && subject(before) != subject(after):
			return "it is of another account"
		}
	}
	mineEnds, theirsEnd := g.ends(mine), g.ends(theirs)
	switch {
	case theirsEnd.After(now.Add(aheadMax)):
		return fmt.Sprintf("its token would hold for more than %d days", aheadMax/(24*time.Hour))
	case mineEnds.After(theirsEnd), mineEnds.Equal(theirsEnd) && !later:
		m.fromPerson = true
		return ""
	}
	for _, name := range g.written() {
		after := get(theirs, name)
		if after == nil || get(mine, name) == nil && slices.Contains(g.may, name) || isSame(get(mine, name), after) {
			continue
		}
		set(mine, name, after)
		m.fromSession = true
	}
	return ""
}

// ends is when the first token of a group ends; the zero time: it does not say.
func (g group) ends(t tree) time.Time {
	if g.expiry == "" {
		exp, _ := claims(get(t, g.tokens[0]))["exp"].(jsontext.Value)
		return timeOf(exp, time.Second)
	}
	value, _ := get(t, g.expiry).(jsontext.Value)
	return timeOf(value, g.unit)
}

func timeOf(number jsontext.Value, unit time.Duration) time.Time {
	n, err := strconv.ParseFloat(string(number), 64)
	if err != nil || !(n > 0) {
		return time.Time{}
	}
	seconds := math.Min(n*unit.Seconds(), 1e11) // some 3,000 years: more is as wrong
	return time.UnixMilli(int64(seconds * 1000))
}

// isToken reports whether a value can be a token or a time: the characters of RFC 6749, and no space, quote or backslash.
func isToken(value any) bool {
	switch value := value.(type) {
	case jsontext.Value:
		return len(value) <= numberMax
	case string:
		return value != "" && len(value) <= tokenMax &&
			!strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
	}
	return false
}

func isText(value any) bool {
	_, is := value.(string)
	return is
}

// claims are what a JWT says; none: it is no JWT. Nothing is verified: only the provider can.
func claims(value any) tree {
	token, _ := value.(string)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return nil
	}
	said, err := parse(text)
	if err != nil {
		return nil
	}
	return said
}

// subject is whose token it is, if it says so.
func subject(value any) string {
	sub, _ := claims(value)["sub"].(string)
	return sub
}

// places are the paths of a group's objects in a file.
func (g group) places(t tree) (all [][]string) {
	if g.at == "" {
		return [][]string{nil}
	}
	parent, every := strings.CutSuffix("."+g.at, ".*")
	path := strings.FieldsFunc(parent, func(r rune) bool { return r == '.' })
	if !every {
		return [][]string{path}
	}
	for _, name := range slices.Sorted(maps.Keys(object(t, path))) {
		if len(all) == groupsMax {
			break
		}
		all = append(all, append(slices.Clone(path), name))
	}
	return all
}

// object is the object at a path; nil: there is none.
func object(t tree, path []string) tree {
	for _, name := range path {
		t, _ = t[name].(tree)
	}
	return t
}

func get(t tree, name string) any {
	path := strings.Split(name, ".")
	return object(t, path[:len(path)-1])[path[len(path)-1]]
}

// set sets a value; nil removes it.
func set(t tree, name string, value any) {
	path := strings.Split(name, ".")
	if t = object(t, path[:len(path)-1]); t == nil {
		return
	}
	if value == nil {
		delete(t, path[len(path)-1])
		return
	}
	t[path[len(path)-1]] = value
}

func copyOf(t tree) tree {
	t = maps.Clone(t)
	for name, value := range t {
		if inner, is := value.(tree); is {
			t[name] = copyOf(inner)
		}
	}
	return t
}

// isSame compares two values by their text.
func isSame(a, b any) bool {
	x, errX := json.Marshal(a, json.Deterministic(true))
	y, errY := json.Marshal(b, json.Deterministic(true))
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
