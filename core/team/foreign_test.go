package team

import (
	"reflect"
	"time"

	"github.com/fairlead-dev/fairlead/core/control"
)

// The foreign loops of the world: the program of seed 000, with its carelessness. It reads its
// file, works, and writes its half back over the content of that time.

// writeFile writes Fairlead's command into a foreign agent's file. Content that another program
// wrote meanwhile is recorded first, as agentfile does. The files of all other agents are
// projections of the team's state, which the ledger checks.
func (w *world) writeFile(name string) {
	d, a := w.disks[name], w.team.Agents[name]
	if d == nil || a.Control.State != control.Foreign || a.Control.Desired.N == 0 || a.Removed {
		return
	}
	f := w.team.File(a)
	if d.file.Desired == f.Desired && d.file.By == f.By && d.file.Note == f.Note && !f.Stamp.After(d.file.Stamp) {
		return
	}
	key := name + " file"
	if w.doing[key] {
		return
	}
	w.doing[key] = true
	w.later("write "+name, func() {
		delete(w.doing, key)
		if d := w.disks[name]; d != nil && !reflect.DeepEqual(d.file, d.seen) {
			w.look(name)
			return // decided again
		}
		d, a := w.disks[name], w.team.Agents[name]
		if d == nil || a.Control.State != control.Foreign || a.Removed {
			return
		}
		f := w.team.File(a)
		d.before = d.file
		d.file.Desired, d.file.By, d.file.Note, d.file.Stamp, d.file.Extra = f.Desired, f.By, f.Note, f.Stamp, f.Extra
		d.seen = d.file
	})
}

// look delivers a foreign agent's file to the team if it has changed.
func (w *world) look(name string) {
	d := w.disks[name]
	if d == nil || reflect.DeepEqual(d.file, d.seen) || w.team.Agents[name].Removed {
		return
	}
	d.seen = d.file
	w.say(name, d.file)
}

// loop lets a foreign agent's program take one step. careless: it had read the file before
// Fairlead's last write, and writes all of it back.
func (w *world) loop(name string, careless bool) {
	d, a := w.disks[name], w.team.Agents[name]
	if d == nil || a.Control.State != control.Foreign || (a.Settings.Policy.Program && !a.Control.Running) {
		return
	}
	base := d.file
	if careless && d.before.Desired != "" {
		base = d.before
	}
	if base.Desired == "" {
		base = control.FileRead{Desired: control.WordPause, Current: control.WordPause}
	}
	switch {
	case d.busy == control.WordRunOnce || d.busy == control.WordRunCleanup:
		base.Desired, base.Current, d.busy = control.WordPause, control.WordPause, ""
	case base.Desired == control.WordContinuous, base.Desired == control.WordRunOnce, base.Desired == control.WordRunCleanup:
		d.busy = base.Desired
		base.Current = base.Desired
	default:
		d.busy = ""
		base.Current = control.WordPause
	}
	base.Stamp = w.at.Add(time.Duration(w.rnd.IntN(1000)) * time.Microsecond)
	d.file = base
	w.later("look at "+name, func() { w.look(name) })
}
