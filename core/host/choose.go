package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Needs is what a session needs of its host.
type Needs struct {
	Labels   []string
	Worktree string // the host that has the worktree; empty: none has
	Uses     []Lack // programs and variables without which it cannot start
	Only     string // the host on which another session works in the same worktree; empty: none does
}

// Choice is where a session runs, and why. Host is empty if it has to wait.
type Choice struct {
	Host    string
	Reasons []Reason // of every host that has not left: the chosen one first, then by name
}

// Reason says why a host was chosen or not.
type Reason struct {
	Host  string `json:"host"`
	Takes bool   `json:"takes"` // it could take the session
	Why   string `json:"why"`
}

// Choose picks the host of a session. Of the hosts that may take it, the one with the worktree comes first,
// because nothing has to be copied; then the least loaded one by its share of taken places; then by name.
func (t *Hosts) Choose(needs Needs) Choice {
	var may []*Host
	var c Choice
	for _, name := range t.Names() {
		h := t.Hosts[name]
		if h.State == Left {
			continue
		}
		if no := t.unfit(h, needs); no != "" {
			c.Reasons = append(c.Reasons, Reason{Host: name, Why: no})
			continue
		}
		may = append(may, h)
		c.Reasons = append(c.Reasons, Reason{Host: name, Takes: true, Why: t.load(h)})
	}
	if len(may) == 0 {
		return c
	}
	best := slices.MinFunc(may, func(a, b *Host) int {
		return cmp.Or(
			cmp.Compare(away(a, needs), away(b, needs)),
			cmp.Compare(t.Busy(a.Name)*b.Capacity, t.Busy(b.Name)*a.Capacity),
			cmp.Compare(a.Name, b.Name))
	})
	c.Host = best.Name
	at := slices.IndexFunc(c.Reasons, func(r Reason) bool { return r.Host == best.Name })
	chosen := c.Reasons[at]
	switch {
	case best.Name == needs.Worktree:
		chosen.Why = "it has the worktree; " + chosen.Why
	case len(may) == 1:
		chosen.Why = "the only one that can take it; " + chosen.Why
	default:
		chosen.Why = "the least loaded; " + chosen.Why
	}
	c.Reasons = slices.Insert(slices.Delete(c.Reasons, at, at+1), 0, chosen)
	return c
}

func away(h *Host, needs Needs) int {
	if h.Name == needs.Worktree {
		return 0
	}
	return 1
}

func (t *Hosts) load(h *Host) string {
	return fmt.Sprintf("%d of %d places taken", t.Busy(h.Name), h.Capacity)
}

// unfit says why a host cannot take a session; empty: it can.
func (t *Hosts) unfit(h *Host, needs Needs) string {
	switch {
	case h.State != Joined:
		return "it is " + string(h.State)
	case needs.Only != "" && h.Name != needs.Only:
		return "another step works in the same folder on " + needs.Only
	case h.Capacity == 0:
		return "its daemon has not started yet"
	}
	var missing []string
	for _, l := range labels(needs.Labels) {
		if !slices.Contains(h.Labels, l) {
			missing = append(missing, l)
		}
	}
	if len(missing) > 0 {
		return "it lacks the label " + strings.Join(missing, ", ")
	}
	for _, l := range h.Lacks {
		if l.What == Disk || slices.Contains(needs.Uses, l) {
			return l.String()
		}
	}
	if t.Busy(h.Name) >= h.Capacity {
		return "it is full: " + t.load(h)
	}
	return ""
}

// String explains the choice in one line, for `fairlead why`.
func (c Choice) String() string {
	var others []string
	for _, r := range c.Reasons {
		if r.Host != c.Host {
			others = append(others, r.Host+": "+r.Why)
		}
	}
	switch {
	case len(c.Reasons) == 0:
		return "waits: the team has no host"
	case c.Host == "":
		return "waits for a host: " + strings.Join(others, "; ")
	case len(others) == 0:
		return fmt.Sprintf("on %s: %s", c.Host, c.Reasons[0].Why)
	}
	return fmt.Sprintf("on %s: %s (%s)", c.Host, c.Reasons[0].Why, strings.Join(others, "; "))
}
