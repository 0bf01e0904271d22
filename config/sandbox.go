package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// AgentSandbox says whether the kernel restricts where an agent's process and its children may write. The
// zero value is no sandbox.
type AgentSandbox struct {
	On      bool
	Auto    bool     // with On: only if the kernel supports it; the default of an agent with can_write
	Write   []string // more folders and files that may be written; absolute and clean
	Sockets bool     // whether connecting to unix sockets is allowed
}

// The words for it; a mapping means workspace.
const (
	agentSandboxAuto      = "auto"
	agentSandboxOff       = "off"
	agentSandboxWorkspace = "workspace"
)

// sandbox reads an agent's sandbox setting.
func (c *checker) sandbox(n *file.YAMLNode) AgentSandbox {
	switch {
	case n == nil:
		return AgentSandbox{}
	case n.Kind == file.YAMLText:
		words := []string{agentSandboxWorkspace, agentSandboxAuto, agentSandboxOff}
		if !slices.Contains(words, n.Text) {
			c.add(n.Place, n.Path, "is %s; it should be %s, %s, %s, or a mapping with write%s", shown(n), words[0], words[1], words[2], didYouMean(n.Text, words))
		}
		return AgentSandbox{On: n.Text == agentSandboxWorkspace || n.Text == agentSandboxAuto, Auto: n.Text == agentSandboxAuto}
	case n.Kind != file.YAMLObject:
		return AgentSandbox{}
	}
	box := AgentSandbox{On: true, Sockets: boolOf(n.Get("sockets"), false)}
	for _, item := range itemsOf(n.Get("write")) {
		p, why := c.place(item.Text)
		if why != "" {
			c.add(item.Place, item.Path, "%s %s", shown(item), why)
			continue
		}
		box.Write = append(box.Write, p)
	}
	return box
}

// place resolves a folder or file outside the workspace to an absolute, clean path. why says what is wrong
// with it.
func (c *checker) place(p string) (abs, why string) {
	if p == "~" || strings.HasPrefix(p, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", "cannot be resolved, because the home folder is unknown; write an absolute path"
		}
		p = home + p[1:]
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(c.dir, p)
	}
	p = filepath.Clean(p)
	switch {
	case p == "/" || p == "/dev" || p == "/proc" || p == "/sys" || strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/"):
		return "", "cannot be opened in a sandbox: an agent that may write there may write anywhere; name a folder below it"
	case p == c.dir:
		return "", "is the folder of fairlead.yaml; an agent that may write there can change its own limits"
	}
	return p, ""
}

// boundBySandbox turns the sandbox on for an agent that has can_write and says nothing about a sandbox. Two
// kinds are left out: a foreign loop, which writes its agent_state.json, and codex in its own sandbox.
func (c *checker) boundBySandbox(n *file.YAMLNode, a *Agent) {
	own := a.Driver == DriverCodex && a.Mode != "danger-full-access"
	if n.Get("sandbox") == nil && a.Permissions.CanWrite != nil && a.Loop != LoopForeign && !own {
		a.Sandbox = AgentSandbox{On: true, Auto: true}
	}
}

// withinSandbox notes a program whose own sandbox does not work inside this one.
func (c *checker) withinSandbox(n *file.YAMLNode, a Agent) {
	if a.Sandbox.On && a.Driver == DriverCodex && a.Mode != "danger-full-access" {
		box := n.Get("sandbox")
		c.note(box.Place, box.Path, "replaces codex's own sandbox, which does not work inside another one; set mode danger-full-access, or remove this line")
	}
}
