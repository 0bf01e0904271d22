package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Ability is what a wall is made of on this machine, as trials have shown.
type Ability struct {
	By        Mechanism `json:"by"`
	Users     bool      `json:"users"`     // with a namespace of users, which root does not need
	Processes bool      `json:"processes"` // with a namespace of processes, and a fresh /proc
	Network   bool      `json:"network"`   // with a network of its own
	Overlays  bool      `json:"overlays"`  // caches may have the person's below
	Git       bool      `json:"git"`       // what git of Fairlead's opens is in a view, too; only [Whole] tries it
	Unheld    []Row     `json:"unheld"`
	Why       []Reason  `json:"why,omitempty"` // why there is nothing better, a reason for each trial that failed
}

// WhyNotMore is why there is nothing better, as the end of a sentence; empty: there is nothing better.
func (a Ability) WhyNotMore() string {
	var all []string
	for _, r := range a.Why {
		all = append(all, r.What)
	}
	return strings.Join(all, ", ")
}

// Apply says in a view how it is made.
func (a Ability) Apply(v View) View {
	v.By, v.Users, v.Processes, v.Git = a.By, a.Users, a.Processes, a.Git
	if !a.Network {
		v.Network = nil
	}
	return v
}

// Look tries what this machine can hold, the best first. It starts a few processes, and takes some 20 ms; see [Abilities].
func Look(ctx context.Context) Ability {
	if runtime.GOOS != "linux" {
		return Ability{
			By: ByNothing, Unheld: slices.Clone(Rows),
			Why: []Reason{{
				CauseSystem, "there are no walls on " + runtime.GOOS,
				[]string{"start agents that need one on a host with Linux"},
			}},
		}
	}
	var why []Reason
	for _, t := range Ways() {
		unheld, err := trial(ctx, t.Apply(View{Network: &Inside{}}))
		if err == nil {
			t.Unheld, t.Why = unheld, why
			t.Overlays = t.By == ByNamespaces && overlays(ctx, t)
			return t
		}
		facts := lookAround("/")
		facts.Step, facts.Errno = stepOf(err)
		facts.Said, facts.Root = err.Error(), t.By == ByNamespaces && !t.Users
		reason := Why(facts)
		if !slices.ContainsFunc(why, func(r Reason) bool { return r.Cause == reason.Cause && r.What == reason.What }) {
			why = append(why, reason)
		}
	}
	return Ability{By: ByNothing, Unheld: slices.Clone(Rows), Why: why}
}

// Ways are how a view can be made, the best first.
func Ways() (all []Ability) {
	views := []Ability{{By: ByNamespaces, Users: true, Processes: true}, {By: ByNamespaces, Users: true}}
	if os.Geteuid() == 0 {
		views = append([]Ability{{By: ByNamespaces, Processes: true}}, views...)
	}
	for _, way := range views {
		with := way
		with.Network = true
		all = append(all, with, way)
	}
	return append(all, Ability{By: ByLandlock})
}

// Abilities is [Look], once in a process.
var Abilities = sync.OnceValue(func() Ability { return Look(context.Background()) })

// trial makes a view without a program.
func trial(ctx context.Context, v View) (unheld []Row, err error) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	said, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer said.Close()
	v.Report = 3
	argv, err := WrapView(exe, nil, v)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var words bytes.Buffer
	cmd.Stderr, cmd.ExtraFiles, cmd.SysProcAttr, cmd.WaitDelay = &words, []*os.File{theirs}, v.Attr(), probePatience
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return nil, atStep(StepClone, fmt.Errorf("%s: %w", v.name(), err))
	}
	var started Started
	read := json.NewDecoder(said).Decode(&started)
	err = cmd.Wait()
	switch {
	case started.Error != "":
		if v.By == ByLandlock {
			started.Step = StepLandlock
		}
		return nil, stepError{started.Step, started.Errno, fmt.Errorf("%s: %s", v.name(), started.Error)}
	case err != nil || read != nil:
		return nil, fmt.Errorf("%s: %w %s", v.name(), errors.Join(err, read), strings.TrimSpace(words.String()))
	}
	return started.Unheld, nil
}

// name says how a view is made, for a message.
func (v View) name() string {
	switch {
	case v.By == ByLandlock:
		return "Landlock alone"
	case !v.Processes && v.Network != nil:
		return "namespaces without one of processes"
	case !v.Users && v.Network != nil:
		return "namespaces as root"
	case v.Network != nil:
		return "namespaces"
	}
	v.Network = &Inside{}
	return v.name() + " and without one of the network"
}

// overlays tries one overlay. As root it would belong to root inside, so a cache of its own is used.
func overlays(ctx context.Context, a Ability) bool {
	if !a.Users {
		return false
	}
	dir, err := os.MkdirTemp("", "fairlead-overlay-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false
	}
	lower, upper := filepath.Join(dir, "lower"), filepath.Join(dir, "upper")
	if os.Mkdir(lower, 0o700) != nil {
		return false
	}
	_, err = trial(ctx, a.Apply(View{Places: []Place{{Path: "/overlay", From: lower, Access: Overlay, Upper: upper}}}))
	return err == nil
}
