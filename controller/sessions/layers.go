package sessions

import (
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/view"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/policy"
)

// The names of an agent's layers.
const (
	LayerRules   = "rules"
	layerBounds  = "bounds"
	LayerSandbox = "sandbox"
)

// layersOfAgent says what holds an agent in its ordinary sessions, by fairlead.yaml: its answers, its
// bounds, and the kernel. What its program says of itself stands in its conversation (Enforced); what holds
// it as MAIN of a session, beside that session.
func LayersOfAgent(conf *config.Agent) []view.Layer {
	asks, who := true, "what its program asks for is answered by its permissions, by answers that stand, and by people; what it does without asking is seen where the program tells it, and told"
	switch conf.Driver {
	case config.DriverExec:
		asks, who = false, "its program asks nobody, and tells nobody what it does"
	case config.DriverCodex:
		asks, who = false, "its program asks nobody; its own sandbox holds it, as its mode says"
	case config.DriverScript:
		who = "what its script asks for is answered by its permissions, by answers that stand, and by people; it does the rest without asking"
	}
	bounds := view.Layer{Name: layerBounds, Text: "none are drawn: can_write, cannot_write, can_execute and cannot_execute of its permissions say nothing"}
	if text := boundsInWords(conf.Permissions.Bounds()); text != "" {
		bounds.Holds, bounds.Text = asks, text
		if !asks {
			bounds.Text += "; but its program asks nobody, so they are held against what it tells alone"
		}
	}
	return []view.Layer{{Name: LayerRules, Holds: asks, Text: who}, bounds, sandboxLayer(conf)}
}

func sandboxLayer(conf *config.Agent) view.Layer {
	if !conf.Sandbox.On {
		return view.Layer{Name: LayerSandbox, Text: "off: its process may write whatever its user may"}
	}
	where := "in its workspace"
	switch folders, narrow := PlainFolders(conf.Permissions.CanWrite); {
	case narrow && len(folders) == 0:
		where = "in nothing of its workspace"
	case narrow:
		where = "in " + strings.Join(folders, ", ")
	}
	text := "the kernel (Landlock) lets it and all that it starts write " + where + ", its own temporary folder, its program's own folders and where its session belongs"
	if len(conf.Sandbox.Write) > 0 {
		text += ", and in " + strings.Join(conf.Sandbox.Write, ", ")
	}
	text += "; nowhere else. It reads everything, the network is open, and modes and times of files outside can be changed"
	if conf.Sandbox.Sockets {
		text += "; services of this machine may be asked to act in its stead"
	}
	return view.Layer{Name: LayerSandbox, Holds: true, Text: text}
}

// boundsInWords tells the lists; empty: they say nothing.
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
	list(bounds.CanWrite != nil, "it may write %s and no more", bounds.CanWrite)
	list(len(bounds.CannotWrite) > 0, "it may not write %s", bounds.CannotWrite)
	list(bounds.CanExecute != nil, "it may run %s and what only looks", bounds.CanExecute)
	list(len(bounds.CannotExecute) > 0, "it may not run %s", bounds.CannotExecute)
	return strings.Join(parts, "; ")
}
