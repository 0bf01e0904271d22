package network

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Word is a setting in one word. The zero value is a list.
type Word string

// The words that are the whole setting.
const (
	None Word = "none" // no host
	All  Word = "all"  // each public name, at the ports of the web
)

// The words that are items of a list.
const (
	wordModel    = "model"
	wordPackages = "packages"
)

// HostsMax is how many hosts one setting names: the address 127.96.0.(1+i) leads to the host i that has a port, and the last part
// of an address ends at 254. A team that needs more allows patterns, or all.
const HostsMax = 200

// Setting is the value of the key network.
type Setting struct {
	Word     Word   `json:"word,omitempty"`
	Model    bool   `json:"model,omitempty"`
	Packages bool   `json:"packages,omitempty"`
	Hosts    []Host `json:"hosts,omitempty"`
}

// Default is the setting of an agent without the key.
func Default() Setting { return Setting{Model: true, Packages: true} }

// Parse reads one word, or the items of a list. An error is a sentence that quotes the item.
func Parse(words []string) (Setting, error) {
	var s Setting
	for i, word := range words {
		switch {
		case word == string(None) || word == string(All):
			if len(words) > 1 {
				return Setting{}, fmt.Errorf("%s stands beside other items; write it alone, or remove it from the list", word)
			}
			s.Word = Word(word)
		case slices.Contains(words[:i], word):
			return Setting{}, fmt.Errorf("%s is there twice; remove one of them", quote(word))
		case word == wordModel:
			s.Model = true
		case word == wordPackages:
			s.Packages = true
		default:
			host, err := ParseHost(word)
			if err != nil {
				return Setting{}, fmt.Errorf("%s %w", quote(word), err)
			}
			if slices.Contains(s.Hosts, host) {
				return Setting{}, fmt.Errorf("%s is there twice; remove one of them", quote(host.String()))
			}
			s.Hosts = append(s.Hosts, host)
		}
	}
	switch {
	case len(words) == 0:
		return Setting{}, errors.New("the list is empty; write none for no network, or a list of model, packages and hosts")
	case len(s.Hosts) > HostsMax:
		return Setting{}, fmt.Errorf("there are %d hosts; the most is %d; write patterns such as *.example.org, or all", len(s.Hosts), HostsMax)
	}
	return s, nil
}

// Words is what Parse reads, in one order.
func (s Setting) Words() []string {
	if s.Word != "" {
		return []string{string(s.Word)}
	}
	var words []string
	if s.Model {
		words = append(words, wordModel)
	}
	if s.Packages {
		words = append(words, wordPackages)
	}
	for _, h := range s.Hosts {
		words = append(words, h.String())
	}
	return words
}

// Rules are what a session may reach. The zero value allows nothing, and every public name may be asked for.
type Rules struct {
	None  bool   `json:"none,omitempty"` // nothing is allowed, and nothing is asked for
	All   bool   `json:"all,omitempty"`  // each public name at the ports of the web, besides Hosts
	Hosts []Host `json:"hosts,omitempty"`
	Local []int  `json:"local,omitempty"` // ports of this machine's loopback, which the session has at the same numbers
}

// Rules are those of the setting. provider is the name of the agent's provider; empty: it has none. base is a base URL that a person
// configured for it; the provider is then that host alone, which counts as named. Hosts that people named come first.
func (s Setting) Rules(provider, base string) Rules {
	if s.Word == None {
		return Rules{None: true}
	}
	r := Rules{All: s.Word == All, Hosts: slices.Clone(s.Hosts)}
	if s.Model || r.All {
		if host, err := BaseHost(base); err == nil {
			r.add(host)
		} else if p, known := ProviderNamed(provider); known {
			r.add(p.Hosts...)
		}
	}
	if s.Packages {
		for _, registry := range Registries() {
			for _, name := range registry.Hosts {
				r.add(Host{Name: name})
			}
		}
	}
	return r
}

// add adds hosts that the rules do not have yet.
func (r *Rules) add(hosts ...Host) {
	for _, h := range hosts {
		if !slices.Contains(r.Hosts, h) {
			r.Hosts = append(r.Hosts, h)
		}
	}
}

// BaseHost is the host of a base URL such as http://localhost:8080/v1. A person configured it, so it counts as named.
func BaseHost(base string) (Host, error) {
	scheme, rest, found := strings.Cut(base, "://")
	port := map[string]int{"http": 80, "https": 443}[lower(scheme)]
	if !found || port == 0 {
		return Host{}, errors.New("is no address that begins with https:// or http://")
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if strings.Contains(rest, "@") {
		return Host{}, errors.New("has a user name; give the key in the variable for it")
	}
	name, given, err := splitPort(lower(rest))
	if err != nil {
		return Host{}, err
	}
	if given != 0 {
		port = given
	}
	host, err := hostOf(name, port)
	if err == nil && host.pattern() {
		err = errors.New("has a pattern; write the host in full")
	}
	return host, err
}

// quote shows a text of a person in a message, on one line and bounded.
func quote(text string) string {
	const bytesMax = 80 // a message stays on two lines of a terminal
	if len(text) > bytesMax {
		text = strings.ToValidUTF8(text[:bytesMax], "") + "…"
	}
	return strconv.Quote(text)
}
