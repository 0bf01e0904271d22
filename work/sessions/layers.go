package sessions

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/read/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// Names of the permission layers.
const (
	LayerRules   = "rules"
	layerBounds  = "bounds"
	LayerSandbox = "sandbox"
)

// LayersOfAgent describes what restricts an agent in its ordinary sessions according to
// fairlead.yaml: answers to permission requests, bounds and the kernel sandbox. What the program
// itself enforces is part of its conversation (Enforced); the layers of a dispatch coordinator are
// shown with its folder. missing is why this machine has no sandbox; empty if it has one.
func LayersOfAgent(conf *config.Agent, missing string) []view.Layer {
	asks, who := true,
		"its permissions, saved answers and people answer what its program asks for; Fairlead sees and shows other actions if the program reports them"
	switch conf.Driver {
	case config.DriverExec:
		asks, who = false, "its program never asks, and does not report what it does"
	case config.DriverCodex:
		asks, who = false, "its program never asks; its own sandbox restricts it, according to its mode"
	case config.DriverScript:
		who = "its permissions, saved answers and people answer what its script asks for; it does everything else without asking"
	}
	sandbox := sandboxLayer(conf, missing)
	bounds := view.Layer{
		Name: layerBounds,
		Text: "no bounds: its permissions have no can_write, cannot_write, can_execute or cannot_execute",
	}
	if text := boundsInWords(conf.Permissions.Bounds()); text != "" {
		bounds.Holds, bounds.Text = asks, text
		if !asks {
			bounds.Text += "; its program never asks, so Fairlead compares them only with the actions that it reports"
		}
		if sandbox.Holds && conf.Permissions.CanWrite != nil {
			bounds.Text += "; the kernel holds the folders of can_write, and words hold the rest: what a call says that it does"
		} else {
			bounds.Text += "; words alone hold them: what a call says that it does"
		}
	}
	return []view.Layer{{Name: LayerRules, Holds: asks, Text: who}, bounds, sandbox}
}

func sandboxLayer(conf *config.Agent, missing string) view.Layer {
	switch {
	case !conf.Sandbox.On():
		return view.Layer{Name: LayerSandbox, Text: "off: its process can write wherever its user can"}
	case missing != "" && conf.Sandbox.Mode == config.SandboxAuto:
		return view.Layer{Name: LayerSandbox, Text: "off: its process can write wherever its user can; " + missing}
	}
	where := "nowhere in its workspace"
	if folders := places.WriteFolders(conf.Permissions.CanWrite); len(folders) > 0 {
		if at := slices.Index(folders, "."); at >= 0 {
			folders[at] = "its workspace"
		}
		where = "in " + strings.Join(folders, ", ")
	}
	text := "it and its child processes have a view of the machine of their own: they write " + where +
		", a home and a temporary folder of their own, its program's own folder and the folders of its session"
	if len(conf.Sandbox.Write) > 0 {
		text += ", and in " + strings.Join(conf.Sandbox.Write, ", ")
	}
	text += "; they read the repository, the folder of fairlead.yaml, installed programs"
	if len(conf.Sandbox.Read) > 0 {
		text += ", " + strings.Join(conf.Sandbox.Read, ", ")
	}
	text += "; nothing else of your files is there. " + networkInWords(conf)
	if slices.ContainsFunc(conf.Sandbox.Write, func(p string) bool { return filepath.Base(p) == ".git" }) {
		text += "; it can write a repository of yours, whose hooks and settings run outside: that is a hole"
	}
	if len(conf.Sandbox.Sockets) > 0 {
		text += "; it can ask what listens at " + strings.Join(conf.Sandbox.Sockets, ", ") + " to act for it: that is a hole"
	}
	if some := places.Patterns(conf.Permissions.CanWrite, conf.Permissions.CannotWrite); len(some) > 0 {
		text += "; rules alone hold patterns in a folder: " + strings.Join(some, ", ")
	}
	if unheld := sandbox.Whole().Unheld; len(unheld) > 0 {
		words := make([]string, len(unheld))
		for i, row := range unheld {
			words[i] = string(row)
		}
		text += "; not held on this machine: " + strings.Join(words, ", ")
	}
	return view.Layer{Name: LayerSandbox, Holds: true, Text: text}
}

// boundsInWords describes the lists; empty if there are none.
func boundsInWords(bounds policy.Rules) string {
	var parts []string
	list := func(is bool, format string, entries []string) {
		if !is {
			return
		}
		if len(entries) == 0 {
			entries = []string{"nothing"}
		}
		parts = append(parts, fmt.Sprintf(format, strings.Join(entries, ", ")))
	}
	list(bounds.CanWrite != nil, "it may write only %s", bounds.CanWrite)
	list(len(bounds.CannotWrite) > 0, "it may not write %s", bounds.CannotWrite)
	list(bounds.CanExecute != nil, "it may run %s and read-only commands", bounds.CanExecute)
	list(len(bounds.CannotExecute) > 0, "it may not run %s", bounds.CannotExecute)
	return strings.Join(parts, "; ")
}
