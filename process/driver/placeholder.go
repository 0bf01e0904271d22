package driver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/process/spawn"
)

// A launch for another host has placeholders for what only that host knows: the values of its variables, and where its
// programs are. They begin and end with a zero byte. No argument and no variable of a process can hold one, so no other
// text is taken for a placeholder, and no process starts with one that was left. JSON carries it as \u0000.
const (
	valueMark   = "\x00value:"   // and the name of a variable
	programMark = "\x00program:" // and the first word of a command
	end         = "\x00"
	inheritMark = "\x00inherit\x00" // the value of an entry whose name is one of Environment's list
)

// Variable is the placeholder for the value of a variable that the configuration names: the host must have it.
func Variable(name string) string { return valueMark + name + end }

// deferred adds placeholders for the variables that the process gets if its host has them.
func deferred(vars map[string]string, list []string) {
	for _, name := range list {
		if _, has := vars[name]; !has {
			vars[name] = inheritMark
		}
	}
}

// Resolve replaces the placeholders of a launch that was prepared for this host, with its name for errors and its
// environment. Only values of variables and arguments can have placeholders: input has the words of agents and people.
func Resolve(l spawn.Launch, environ []string, host string) (spawn.Launch, error) {
	vars := make(map[string]string, len(l.Env))
	var list []string
	for _, kv := range l.Env {
		name, value, _ := strings.Cut(kv, "=")
		if value == inheritMark {
			list = append(list, name)
			continue
		}
		value, err := filled(value, environ, host)
		if err != nil {
			return spawn.Launch{}, err
		}
		vars[name] = value
	}
	inherit(vars, environ, list)
	l.Env, l.Argv = sorted(vars), slices.Clone(l.Argv)
	for i, word := range l.Argv {
		name, is := strings.CutPrefix(word, programMark)
		if !is {
			continue
		}
		path, err := FindProgram(Agent{Name: vars["FAIRLEAD_AGENT"], Command: []string{strings.TrimSuffix(name, end)}, Workspace: l.Dir},
			l.Env)
		if err != nil {
			return spawn.Launch{}, fmt.Errorf("host %s: %w", host, err)
		}
		l.Argv[i] = path
	}
	return l, nil
}

// filled replaces the placeholders in the value of a variable.
func filled(value string, environ []string, host string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, valueMark)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, rest, _ := strings.Cut(rest, end)
		is, set := lookUp(environ, name)
		if !set {
			return "", fmt.Errorf("the environment of host %s has no %s; set it where its daemon starts", host, name)
		}
		b.WriteString(is)
		value = rest
	}
}
