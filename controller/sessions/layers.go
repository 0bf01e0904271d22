package sessions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/policy"
	"github.com/fairlead-dev/fairlead/sandbox"
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
	asks, who := true, "its permissions, saved answers and people answer what its program asks for; Fairlead sees and shows other actions if the program reports them"
	switch conf.Driver {
	case config.DriverExec:
		asks, who = false, "its program never asks, and does not report what it does"
	case config.DriverCodex:
		asks, who = false, "its program never asks; its own sandbox restricts it, according to its mode"
	case config.DriverScript:
		who = "its permissions, saved answers and people answer what its script asks for; it does everything else without asking"
	}
	sandbox := sandboxLayer(conf, missing)
	bounds := view.Layer{Name: layerBounds, Text: "no bounds: its permissions have no can_write, cannot_write, can_execute or cannot_execute"}
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
	case !conf.Sandbox.On:
		return view.Layer{Name: LayerSandbox, Text: "off: its process can write wherever its user can"}
	case missing != "" && conf.Sandbox.Auto:
		return view.Layer{Name: LayerSandbox, Text: "off: its process can write wherever its user can; " + missing}
	}
	where := "in no folder of its workspace"
	if folders := WriteFolders(conf.Permissions.CanWrite); len(folders) > 0 {
		if at := slices.Index(folders, "."); at >= 0 {
			folders[at] = "its workspace"
		}
		where = "in " + strings.Join(folders, ", ")
	}
	text := "the kernel (Landlock) lets it and its child processes write " + where + ", its own temporary folder, its program's own folders and the folders of its session"
	if len(conf.Sandbox.Write) > 0 {
		text += ", and in " + strings.Join(conf.Sandbox.Write, ", ")
	}
	text += "; nowhere else. It can read everything, the network is open, and modes and times of files outside can be changed"
	if conf.Sandbox.Sockets {
		text += "; it can ask services of this machine to act for it"
	}
	if less := sandbox.NotHeld(); less != "" {
		text += "; " + less
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
