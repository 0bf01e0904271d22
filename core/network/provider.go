package network

import (
	"path"
	"slices"
	"strings"
)

// Provider is a model service in one way of signing in to it.
type Provider struct {
	// Name is its name in the rules and in the address that a program gets in place of Origin.
	Name string
	// Origin is the scheme and host of its API, without a slash at the end.
	Origin string
	// Paths are the beginnings of the paths of the API that a program may call with the key.
	Paths []string
	// Hosts are what a program needs of it: the API and, for programs that sign in by themselves, those of the sign-in.
	Hosts []Host
	// Keys are the variables that hold the key, in the order in which programs look at them.
	Keys []string
	// Header is the header that carries the key; Scheme is the word before it, such as Bearer.
	Header, Scheme string
	// BaseVariable is the variable that replaces Origin; empty: none does.
	BaseVariable string
	// BasePath is what a program expects after the origin in that variable.
	BasePath string
	// Placeholder has the shape of a key and is none.
	Placeholder string
}

var providers = [...]Provider{
	{
		Name: "anthropic", Origin: "https://api.anthropic.com", Paths: []string{"/v1/", "/api/"},
		Hosts: []Host{{Name: "api.anthropic.com"}, {Name: "claude.ai"}, {Name: "console.anthropic.com"}, {Name: "platform.claude.com"}},
		Keys:  []string{"ANTHROPIC_API_KEY"}, Header: "x-api-key", BaseVariable: "ANTHROPIC_BASE_URL",
		Placeholder: "sk-ant-api03-placeholder",
	},
}

// Providers are all rows.
func Providers() []Provider { return slices.Clone(providers[:]) }

// ProviderNamed is the provider of a name.
func ProviderNamed(name string) (Provider, bool) {
	i := slices.IndexFunc(providers[:], func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return providers[i], true
}

// ProviderOf is the provider that an agent is configured for: by its driver, its program, and the names of the variables that it has.
func ProviderOf(driver string, command, env []string) (Provider, bool) {
	program := driver
	if len(command) > 0 {
		program = strings.TrimSuffix(path.Base(command[0]), ".exe")
	}
	_ = env
	if program == "claude" {
		return ProviderNamed("anthropic")
	}
	return Provider{}, false
}
