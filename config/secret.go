package config

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

const hidden = "[hidden]"

// Secret is a text that may hold or refer to a secret. It prints as [hidden] everywhere, also in JSON and
// logs. Only Resolve returns the value.
type Secret struct {
	raw string // as written, with references
}

// Empty reports whether the text is empty.
func (s Secret) Empty() bool { return s.raw == "" }

func (s Secret) String() string { return hidden }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return hidden }

// Format hides the value from all other verbs.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalJSON writes "[hidden]".
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// MarshalText writes [hidden].
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the value from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// References returns the names of the variables that it refers to, in order, each once.
func (s Secret) References() []string {
	var names []string
	_, _ = expand(s.raw, func(name string) (string, error) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		return "", nil
	})
	return names
}

// Resolve replaces references by the variables' values. Its error names missing variables and never holds a
// value.
func (s Secret) Resolve(lookupEnv func(string) (string, bool)) (string, error) {
	return expand(s.raw, func(name string) (string, error) {
		value, ok := lookupEnv(name)
		if !ok {
			return "", fmt.Errorf("the environment has no variable %s; export it before Fairlead starts", name)
		}
		if strings.ContainsRune(value, 0) {
			return "", fmt.Errorf("the variable %s holds a zero byte, which cannot be passed to a process", name)
		}
		return value, nil
	})
}

// Env is the additional environment of an agent's process. Values are kept as written, with their references.
type Env struct {
	vars []variable
}

// References returns the names of the variables that the values refer to.
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

// Names returns the variables' names in file order. They are not secret.
func (e Env) Names() []string {
	names := make([]string, len(e.vars))
	for i, v := range e.vars {
		names[i] = v.name
	}
	return names
}

// Resolve returns K=V for every variable, in file order, for a process that is about to start. The result is
// secret: do not log or journal it.
func (e Env) Resolve(lookupEnv func(string) (string, bool)) ([]string, error) {
	return e.resolved(func(s Secret) (string, error) { return s.Resolve(lookupEnv) })
}

// Defer returns K=V for every variable, in file order, with a placeholder for each reference: for a process whose
// environment another machine has. A value that is written in the file is part of the configuration, and stays.
func (e Env) Defer(placeholder func(name string) string) ([]string, error) {
	return e.resolved(func(s Secret) (string, error) {
		return expand(s.raw, func(name string) (string, error) { return placeholder(name), nil })
	})
}

func (e Env) resolved(resolve func(Secret) (string, error)) ([]string, error) {
	out := make([]string, 0, len(e.vars))
	for _, v := range e.vars {
		value, err := resolve(v.value)
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

// Format hides the values from %#v and other verbs.
func (e Env) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(e.String())) }

// LogValue hides the values from logs.
func (e Env) LogValue() slog.Value { return slog.StringValue(e.String()) }

// MarshalJSON writes only the names.
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

// expand replaces ${NAME}. $${ stands for ${, and every other dollar for itself.
func expand(raw string, valueOf func(name string) (string, error)) (string, error) {
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
			return "", fmt.Errorf("a reference is written ${NAME}, with letters, digits and _; write $${ for a plain ${")
		}
		value, err := valueOf(name)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		raw = rest
	}
}
