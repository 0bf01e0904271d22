package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/network"
)

// TestNetwork checks each way to write the hosts that an agent reaches, and those of setup and checks.
func TestNetwork(t *testing.T) {
	host := network.Host{Name: "example.org", Port: 8443, Named: true}
	for text, want := range map[string]network.Setting{
		"":                              {Model: true, Packages: true},
		"network: none":                 {Word: network.None},
		"network: [none]":               {Word: network.None},
		"network: all":                  {Word: network.All},
		"network: packages":             {Packages: true},
		"network: [packages]":           {Packages: true},
		"network: [model, packages]":    {Model: true, Packages: true},
		"network: ['example.org:8443']": {Hosts: []network.Host{host}},
		"network: example.org:8443":     {Hosts: []network.Host{host}},
		"network: [model, EXAMPLE.org:8443, '[::1]:1', '*.example.org']": {Model: true, Hosts: []network.Host{
			host, {Name: "::1", Port: 1, Named: true}, {Name: "*.example.org"},
		}},
	} {
		cfg, err := Parse(FileName, t.TempDir(), []byte("version: 1\nagents: {a: {driver: claude, "+text+"}}\n"), environment(nil))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, cfg.Agents[0].Network); diff != "" || len(cfg.Notes) > 0 {
			t.Errorf("%s: -want +got, notes %v\n%s", text, cfg.Notes, diff)
		}
		if want.Model {
			continue
		}
		cfg, err = Parse(FileName, t.TempDir(), []byte("version: 1\ntasks: {"+text+"}\n"), environment(nil))
		if err != nil {
			t.Errorf("tasks, %s: %v", text, err)
		} else if diff := cmp.Diff(want, cfg.Tasks.Network); diff != "" {
			t.Errorf("tasks, %s: -want +got\n%s", text, diff)
		}
	}
}

// TestNetworkFaults checks what is refused, with the place and the key. The twins of most rows are in TestNetwork.
func TestNetworkFaults(t *testing.T) {
	for text, want := range map[string]string{
		"a: {driver: claude, network: [none, packages]}":         "agents.a.network: none stands beside other items; write it alone",
		"a: {driver: claude, network: []}":                       "agents.a.network: is empty",
		"a: {driver: claude, network:}":                          "agents.a.network: is empty",
		"a: {driver: claude, network: {model: true}}":            "agents.a.network: is a mapping",
		"a: {driver: claude, network: [443]}":                    "agents.a.network[0]: is a number",
		"a: {driver: claude, network: [pip3]}":                   `agents.a.network[0]: "pip3" is neither model, packages, none nor all`,
		"a: {driver: claude, network: [pip, x.org, x.org]}":      `agents.a.network[0]: "pip" is neither`,
		"a: {driver: claude, network: [x.org, x.org]}":           `agents.a.network: "x.org" is there twice`,
		"a: {driver: claude, network: ['https://x.org/a']}":      "write its host alone",
		"a: {driver: claude, network: [10.0.0.0/8]}":             "has a path or a range",
		"a: {driver: claude, network: ['x.org:0']}":              "has no port from 1 to 65535",
		"a: {driver: claude, network: ['*.org']}":                "is no pattern of public names",
		"a: {driver: claude, network: ['127.1']}":                "is an address in an odd form",
		"a: {driver: claude, sandbox: off, network: [packages]}": "agents.a.network: is held by the wall, and sandbox is off; remove one of the two keys",
		"a: {command: [x], network: none}":                       "agents.a.network: is held by the wall, and this agent has none; add sandbox: workspace",
		"a: {loop: foreign, command: [x], network: none}":        "agents.a.network: is held by the wall, and this agent has none",
		"a: {driver: claude, sandbox: {local: [0]}}":             "agents.a.sandbox.local[0]: is 0; the least is 1",
		"a: {driver: claude, sandbox: {local: [65536]}}":         "agents.a.sandbox.local[0]: is 65536; the most is 65535",
		"a: {driver: claude, sandbox: {local: [5432, 5432]}}":    "agents.a.sandbox.local: items 1 and 2 are the same",
		"a: {driver: claude, sandbox: {local: [443]}}":           "agents.a.sandbox.local[0]: port 443 of a session is its way into the network",
		"a: {driver: claude, sandbox: {local: [61080]}}":         "agents.a.sandbox.local[0]: port 61080",
		"a: {driver: claude}}\ntasks: {network: [model]":         "tasks.network: names model, and setup and checks have no model",
		"a: {driver: claude}}\ntasks: {network: [localhost]":     `tasks.network[0]: "localhost" is neither`,
	} {
		_, err := Parse(FileName, t.TempDir(), []byte("version: 1\nagents: {"+text+"}\n"), environment(nil))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
	for _, text := range []string{
		"a: {command: [x], sandbox: workspace, network: none}",
		"a: {loop: foreign, command: [x], sandbox: auto, network: none}",
		"a: {driver: claude, sandbox: off, network: none}}\ndispatch: {main: a", // MAIN has a wall of its own
		"a: {command: [x], permissions: {can_write: []}, network: [packages]}",
	} {
		cfg, err := Parse(FileName, t.TempDir(), []byte("version: 1\nagents: {"+text+"}\n"), environment(nil))
		if err != nil || len(cfg.Notes) > 0 {
			t.Errorf("%s: %v, %v", text, cfg, err)
		}
	}
}

// TestNetworkNotes checks that a person hears of the word model where it allows no host.
func TestNetworkNotes(t *testing.T) {
	const note = "agents.a.network: names model, which allows no host"
	for text, noted := range map[string]bool{
		"driver: acp, command: [agent], network: [model]":                                    true,
		"driver: acp, command: [agent], network: [packages]":                                 false,
		"driver: acp, command: [agent]":                                                      false,
		"driver: acp, command: [agent], network: [model], env: {ANTHROPIC_API_KEY: k}":       false,
		"driver: claude, network: [model], env: {CLAUDE_CODE_USE_BEDROCK: 1}":                true,
		"driver: acp, command: [npx, -y, opencode-ai@1.18, acp], network: [model, packages]": false,
	} {
		cfg, err := Parse(FileName, t.TempDir(), []byte("version: 1\nagents: {a: {"+text+"}}\n"), environment(nil))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := len(cfg.Notes) == 1 && strings.Contains(cfg.Notes[0].Error(), note); got != noted {
			t.Errorf("%s: %v", text, cfg.Notes)
		}
	}
}
