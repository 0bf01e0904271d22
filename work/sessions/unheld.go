package sessions

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Wall is what stands around an agent's program.
type Wall struct {
	By     sandbox.Mechanism
	Unheld []sandbox.Row // in the order of sandbox.Rows
}

// WallHere is the wall that this machine would make for a session of an agent. Where missing says why there is no sandbox, there is
// no wall.
func WallHere(conf *config.Agent, missing string, can sandbox.Ability) Wall {
	if !conf.Sandbox.On() || missing != "" || can.By == sandbox.ByNothing {
		return Wall{sandbox.ByNothing, sandbox.Rows}
	}
	return Wall{can.By, ordered(can.Unheld)}
}

// Wall is WallHere with what this machine can hold, which is tried once and takes some 20 ms.
func (c *Controller) Wall(ctx context.Context, conf *config.Agent) Wall {
	if !conf.Sandbox.On() {
		return WallHere(conf, "", sandbox.Ability{})
	}
	if missing := c.SandboxMissing(ctx); missing != "" {
		return WallHere(conf, missing, sandbox.Ability{})
	}
	return WallHere(conf, "", sandbox.Whole())
}

// WallOf is the wall of a running session, by the trial in it.
func WallOf(proof sessionhost.Proof) Wall {
	if proof.Wall == "" {
		return Wall{sandbox.ByNothing, sandbox.Rows}
	}
	rows := make([]sandbox.Row, 0, len(proof.Unheld))
	for _, word := range proof.Unheld {
		rows = append(rows, sandbox.Row(word))
	}
	return Wall{sandbox.Mechanism(proof.Wall), ordered(rows)}
}

// Both is the wall of an agent with several sessions: what one of them does not hold is not held.
func (w Wall) Both(other Wall) Wall {
	if w.By == sandbox.ByNothing {
		other.By = w.By
	}
	return Wall{other.By, ordered(append(slices.Clone(w.Unheld), other.Unheld...))}
}

// HoldsFiles reports whether a session's wall holds what its program reads and writes.
func HoldsFiles(proof sessionhost.Proof) bool {
	w := WallOf(proof)
	return !slices.ContainsFunc(w.Unheld, func(r sandbox.Row) bool {
		return slices.Contains([]sandbox.Row{sandbox.RowWrite, sandbox.RowAttributes, sandbox.RowInside, sandbox.RowRead, sandbox.RowNames},
			r)
	})
}

// HoldsNetwork reports whether a session's program reaches only the hosts that it may.
func HoldsNetwork(proof sessionhost.Proof) bool { return !slices.Contains(WallOf(proof).Unheld, sandbox.RowNetwork) }

func ordered(rows []sandbox.Row) []sandbox.Row {
	return slices.DeleteFunc(slices.Clone(sandbox.Rows), func(r sandbox.Row) bool { return !slices.Contains(rows, r) })
}

// Words are the rows as they travel and are shown.
func (w Wall) Words() []string { return rowWords(w.Unheld) }

// UnheldWords say what can happen where a row is not held.
func UnheldWords(row string) string { return sandbox.Row(row).Unheld() }

func rowWords(rows []sandbox.Row) (words []string) {
	for _, r := range rows {
		words = append(words, string(r))
	}
	return words
}

// HolesOf are the openings in an agent's wall that its configuration makes, a sentence each. An agent without a wall has none.
func HolesOf(conf *config.Agent) (holes []string) {
	box := conf.Sandbox
	if !box.On() {
		return nil
	}
	for _, p := range box.Write {
		rel, err := filepath.Rel(conf.Workspace, p)
		switch {
		case filepath.Base(p) == ".git":
			holes = append(holes, fmt.Sprintf("it can write %s, so what git runs there later is its choice", p))
		case err != nil || !filepath.IsLocal(rel):
			holes = append(holes, fmt.Sprintf("it can write %s, which is outside of its workspace", p))
		}
	}
	for _, p := range box.Sockets {
		holes = append(holes, fmt.Sprintf("it can connect to %s, and what listens there acts outside of its wall", p))
	}
	return append(holes, networkHoles(conf)...)
}

// CommitRefusal says why a commit fails in a folder where an agent works, and names the ways around; empty: nothing keeps the agent
// from it. by is what its wall is made of: Landlock alone takes no folder out of a writable one.
func CommitRefusal(conf *config.Agent, dir string, by sandbox.Mechanism) string {
	if by != sandbox.ByNamespaces {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	at := places.ReadOnlyGit(dir, conf.Sandbox.Write)
	if at == "" {
		return ""
	}
	return fmt.Sprintf("a commit fails: .git is read-only; use a task, or `sandbox: {write: [%s]}` in fairlead.yaml", at)
}

// WallGroup is one set of rows that walls here do not hold, and the agents that have it.
type WallGroup struct {
	Agents []string `json:"agents"`
	Unheld []string `json:"unheld"`
	NoWall bool     `json:"no_wall,omitempty"` // nothing is held, or the agent asks for no wall
}

// WallGroups are the distinct sets of rows that the walls of agents do not hold here, in the order of the agents.
func (c *Controller) WallGroups(ctx context.Context) []WallGroup {
	return groupsOf(c.opts.Config.Agents, func(conf *config.Agent) Wall { return c.Wall(ctx, conf) })
}

func groupsOf(agents []config.Agent, wall func(*config.Agent) Wall) (groups []WallGroup) {
	for i := range agents {
		w := wall(&agents[i])
		is := WallGroup{[]string{agents[i].Name}, w.Words(), w.By == sandbox.ByNothing}
		at := slices.IndexFunc(groups, func(g WallGroup) bool { return g.NoWall == is.NoWall && slices.Equal(g.Unheld, is.Unheld) })
		if at < 0 {
			groups = append(groups, is)
			continue
		}
		groups[at].Agents = append(groups[at].Agents, agents[i].Name)
	}
	return groups
}

// String says what is not held, in one line.
func (g WallGroup) String() string {
	names := strings.Join(g.Agents, ", ")
	switch {
	case g.NoWall:
		return "no wall around " + names + ": each program can do what your user can"
	case len(g.Unheld) == 0:
		return "the wall around " + names + " holds everything"
	}
	return "the wall around " + names + " does not hold: " + strings.Join(g.Unheld, ", ") + " (`fairlead doctor` says why)"
}
