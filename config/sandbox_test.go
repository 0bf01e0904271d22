package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSandbox checks each way to write a wall: of an agent and, with the same words and mapping, of MAIN.
func TestSandbox(t *testing.T) {
	t.Setenv("HOME", "/home/you")
	for text, want := range map[string]AgentSandbox{
		"workspace":       {Mode: SandboxWorkspace},
		"required":        {Mode: SandboxRequired},
		"auto":            {Mode: SandboxAuto},
		"off":             {Mode: SandboxOff},
		"{}":              {Mode: SandboxWorkspace},
		"{mode: auto}":    {Mode: SandboxAuto},
		"{write: [.git]}": {Mode: SandboxWorkspace, Write: []string{"DIR/.git"}},
		"{mode: required, read: [docs, .], write: [/srv/data/, ~/go], hide: [~/], sockets: [/run/docker.sock, agent.sock], local: [5432, 6379]}": {
			Mode: SandboxRequired, Read: []string{"DIR/docs", "DIR"}, Write: []string{"/srv/data", "/home/you/go"},
			Hide:    []string{"/home/you"},
			Sockets: []string{"/run/docker.sock", "DIR/agent.sock"}, Local: []int{5432, 6379},
		},
	} {
		dir := folder(t,
			map[string]string{FileName: "version: 1\nagents: {a: {command: [a], workspace: a, sandbox: " + text +
				"}}\ndispatch: {sandbox: " + text + "}\n"})
		cfg, err := Load(dir, environment(nil))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, list := range []*[]string{&want.Read, &want.Write, &want.Hide, &want.Sockets} {
			for i := range *list {
				(*list)[i] = strings.Replace((*list)[i], "DIR", cfg.Dir, 1)
			}
		}
		for what, got := range map[string]AgentSandbox{"agent": cfg.Agents[0].Sandbox, "dispatch": cfg.Dispatch.Sandbox} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s of %s: -want +got\n%s", text, what, diff)
			}
			if got.On() != (text != "off") {
				t.Errorf("%s of %s: on is %v", text, what, got.On())
			}
		}
		if len(cfg.Notes) > 0 {
			t.Errorf("%s: notes %v", text, cfg.Notes)
		}
	}
	if (AgentSandbox{}).On() {
		t.Error("the zero value is a wall")
	}
}

// TestSandboxFaults checks what is refused; TestSandbox has the same keys where they are permitted.
func TestSandboxFaults(t *testing.T) {
	for text, want := range map[string]string{
		"workspce":                       `cannot be "workspce" (did you mean workspace?); it is one of workspace, required, auto, off`,
		"{mode: of}":                     `.mode: cannot be "of" (did you mean off?); it is one of workspace, required, auto, off`,
		"5":                              "cannot be 5; it is one of workspace, required, auto, off",
		"{sockets: true}":                ".sockets: is true or false and should be a list",
		"{sockets: ['/run/*.sock']}":     `.sockets[0]: "/run/*.sock" is a pattern; a wall holds whole folders and single sockets`,
		"{write: [/]}":                   `.write[0]: "/" cannot be opened in a wall`,
		"{read: [/proc/self]}":           `.read[0]: "/proc/self" cannot be opened in a wall`,
		"{hide: [/dev/shm]}":             `.hide[0]: "/dev/shm" cannot be opened in a wall`,
		"{write: [.]}":                   `.write[0]: "." is the folder of fairlead.yaml; an agent that may write there can change its own limits`,
		"{write: ['src/**']}":            `.write[0]: "src/**" is a pattern; a wall holds whole folders`,
		"{read: ['doc?']}":               `.read[0]: "doc?" is a pattern`,
		"{hide: ['secret.{pem,key}']}":   `.hide[0]: "secret.{pem,key}" is a pattern`,
		"{write: [fairlead.yaml]}":       `.write[0]: "fairlead.yaml" is a file; a wall holds whole folders, so name the folder that it is in`,
		"{read: [docs], hide: [./docs]}": `.hide[0]: "./docs" is in read too; keep one of them`,
		"{writes: [docs]}":               ".writes: there is no such key here (did you mean write?)",
	} {
		_, err := Load(folder(t,
			map[string]string{FileName: "version: 1\nagents: {a: {command: [a], workspace: a, sandbox: " + text +
				"}}\ndispatch: {sandbox: " + text + "}\n"}), environment(nil))
		for _, key := range []string{"agents.a.sandbox", "dispatch.sandbox"} {
			if sep := map[bool]string{true: "", false: ": "}[strings.HasPrefix(want, ".")]; err == nil ||
				!strings.Contains(err.Error(), key+sep+want) {
				t.Errorf("%s: the faults do not contain %s%s%s\n%v", text, key, sep, want, err)
			}
		}
	}
	_, err := Load(folder(t,
		map[string]string{FileName: "version: 1\nagents: {a: {command: [a], workspace: a, sandbox: {hide: [a, b]}}}\n"}), environment(nil))
	if want := `agents.a.sandbox.hide[0]: "a" is the agent's own workspace`; err == nil || !strings.Contains(err.Error(), want) ||
		strings.Contains(err.Error(), "hide[1]") {
		t.Errorf("its own workspace hidden: %v", err)
	}
	cfg, err := Load(folder(t, map[string]string{FileName: "version: 1\nagents: {a: {command: [a], sandbox: {mode: off, read: [b]}}}\n"}),
		environment(nil))
	if err != nil || len(cfg.Notes) != 1 || !strings.Contains(cfg.Notes[0].Error(), "agents.a.sandbox: has no effect with mode off") {
		t.Errorf("folders without a wall: %v, %v", cfg, err)
	}
}

// TestDefaultSandbox checks which agents have a wall without the key: programs with conversations, and those with can_write.
func TestDefaultSandbox(t *testing.T) {
	for entry, want := range map[string]string{
		"driver: acp, command: [a]":                                                     SandboxAuto,
		"driver: claude":                                                                SandboxAuto,
		"driver: codex":                                                                 SandboxAuto,
		"driver: codex, mode: danger-full-access":                                       SandboxAuto,
		"driver: codex, permissions: {can_write: [src]}":                                SandboxAuto,
		"command: [a]":                                                                  SandboxOff,
		"command: [a], permissions: {cannot_write: [src]}":                              SandboxOff,
		"command: [a], permissions: {can_write: [src]}":                                 SandboxAuto,
		"command: [a], permissions: {can_write: []}":                                    SandboxAuto,
		"driver: script, script: s.yaml":                                                SandboxOff,
		"driver: script, script: s.yaml, permissions: {can_write: []}":                  SandboxAuto,
		"loop: foreign":                                                                 SandboxOff,
		"loop: foreign, command: [a], permissions: {can_write: []}":                     SandboxOff,
		"loop: foreign, driver: acp, command: [a]":                                      SandboxOff,
		"loop: foreign, command: [a], sandbox: auto":                                    SandboxAuto,
		"driver: claude, sandbox: off":                                                  SandboxOff,
		"command: [a], permissions: {can_write: [src]}, sandbox: off":                   SandboxOff,
		"command: [a], permissions: {can_write: [src]}, sandbox: {mode: off}":           SandboxOff,
		"driver: acp, command: [a], permissions: {can_write: []}, sandbox: {read: [b]}": SandboxWorkspace,
	} {
		cfg, err := Load(folder(t, map[string]string{FileName: "version: 1\nagents: {a: {" + entry + "}}\n", "s.yaml": "steps: []\n"}),
			environment(nil))
		if err != nil {
			t.Errorf("%s: %v", entry, err)
		} else if got := cfg.Agents[0].Sandbox.Mode; got != want {
			t.Errorf("%s: %s, not %s", entry, got, want)
		}
	}
}
