package config

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

const hidden = "[hidden]"

// Secret is a text that may hold, or refer to, something nobody should read over
// a shoulder: it prints as [hidden] wherever it turns up, in JSON and logs too.
// What it stands for is had by Resolve alone, at the moment it is needed.
type Secret struct {
	raw string // as written, references included
}

// Empty tells whether nothing was written.
func (s Secret) Empty() bool { return s.raw == "" }

func (s Secret) String() string { return hidden }

// GoString keeps %#v from showing what String hides.
func (s Secret) GoString() string { return hidden }

// Format keeps every other verb from doing so.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalJSON writes the word [hidden].
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// MarshalText writes the word [hidden].
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue keeps it out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// References are the names of the variables it refers to, in order, each once.
func (s Secret) References() []string {
	var names []string
	_, _ = expand(s.raw, func(name string) (string, bool) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		return "", true
	})
	return names
}

// Resolve puts the variables' values in. Its error names what is missing and
// never what was found.
func (s Secret) Resolve(lookupEnv func(string) (string, bool)) (string, error) {
	return expand(s.raw, lookupEnv)
}

// Env is what an agent's process finds in its environment besides the ordinary.
// Values are kept as they were written, with their references unresolved.
type Env struct {
	vars []variable
}

// References are the names in the environment that any value is taken from.
func (e Env) References() []string {
	var names []string
	for _, v := range e.vars {
		names = append(names, v.value.References()...)
	}
	return names
}

type variable struct {
	name  string
	value Secret
}

// Names are the variables' names in file order. They may be shown.
func (e Env) Names() []string {
	names := make([]string, len(e.vars))
	for i, v := range e.vars {
		names[i] = v.name
	}
	return names
}

// Resolve gives K=V for every variable, in file order, for the process that is
// about to start. The result is secret: never log it, never journal it.
func (e Env) Resolve(lookupEnv func(string) (string, bool)) ([]string, error) {
	out := make([]string, 0, len(e.vars))
	for _, v := range e.vars {
		value, err := v.value.Resolve(lookupEnv)
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", v.name, err)
		}
		out = append(out, v.name+"="+value)
	}
	return out, nil
}

func (e Env) String() string {
	parts := e.Names()
	for i := range parts {
		parts[i] += "=" + hidden
	}
	return strings.Join(parts, " ")
}

// Format keeps %#v and its like from showing what String hides.
func (e Env) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(e.String())) }

// LogValue keeps values out of logs.
func (e Env) LogValue() slog.Value { return slog.StringValue(e.String()) }

// MarshalJSON shows the names alone.
func (e Env) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range e.Names() {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%q", name, hidden)
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${NAME}; $${ is a plain ${ and every other dollar is itself.
func expand(raw string, lookupEnv func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(raw, "${")
		if i < 0 {
			b.WriteString(raw)
			return b.String(), nil
		}
		if i > 0 && raw[i-1] == '$' {
			b.WriteString(raw[:i-1] + "${")
			raw = raw[i+2:]
			continue
		}
		b.WriteString(raw[:i])
		name, rest, closed := strings.Cut(raw[i+2:], "}")
		if !closed || !envName.MatchString(name) {
			return "", fmt.Errorf("a reference is written ${NAME}, with letters, digits and _; for a plain ${ write $${")
		}
		value, ok := lookupEnv(name)
		if !ok {
			return "", fmt.Errorf("the environment has no variable %s; export it before Fairlead starts", name)
		}
		if strings.ContainsRune(value, 0) {
			return "", fmt.Errorf("the variable %s holds a zero byte, which no process can be given", name)
		}
		b.WriteString(value)
		raw = rest
	}
}
