package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/hosts/invite"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	notStarted = "none" // the boot of a host whose daemon was never seen
	versionMax = 100    // bytes of what a host says its version is
)

// Admit takes a host in that has shown a valid invitation. Its daemon may start later. The error is the team's
// refusal.
func (c *Controller) Admit(ctx context.Context, j invite.Joiner) error {
	if j.Name == c.is.Name {
		return errors.New("the machine of the leader has this name; choose another one with --name")
	}
	_, err := c.loop.Submit(ctx, change.Actor{Kind: "human", ID: j.Invited}, "",
		host.Join{Name: j.Name, Boot: notStarted, Labels: j.Labels, Key: j.Key, Engine: j.Address, Invited: true})
	return err
}

// Members are the hosts that belong to the team.
func (c *Controller) Members() cluster.Members { return c }

// Member implements cluster.Members.
func (c *Controller) Member(name string) (m cluster.Member, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok = c.members[name]
	return m, ok
}

// Renew takes a renewal of a host's lease, and answers what the journal has of the host. name is that of the
// certificate.
func (c *Controller) Renew(ctx context.Context, name string, in wire.RenewIn) (wire.RenewOut, error) {
	var out wire.RenewOut
	if err := in.Places.Check(); err != nil {
		return out, &wire.Problem{Code: wire.Refused, Why: "host " + name + ": " + err.Error()}
	}
	if c.is.Confirmed != nil && !c.is.Confirmed() {
		return out, wire.Unconfirmed()
	}
	known, err := c.known(ctx, name)
	if err == nil && known.State == host.Left {
		err = &wire.Problem{
			Code: wire.Refused,
			Why:  fmt.Sprintf("host %s was removed, or has left; to come back, it needs a new invitation: `fairlead host invite` on the leader's machine", name),
		}
	}
	engine := ""
	if err == nil && known.Engine != "" && in.Engine != "" { // an ordinary host does not become one by its own word
		engine = in.Engine
		if _, wrong := (cluster.EngineHost{Name: name, Address: engine}).Routes(); wrong != nil {
			err = &wire.Problem{Code: wire.Refused, Why: wrong.Error()}
		}
	}
	if err == nil && (known.Boot != in.Boot || known.State == host.Lost || in.N == 0 || engine != "" && engine != known.Engine) {
		_, err = c.loop.Submit(ctx, byHosts, "",
			host.Join{Name: name, Boot: in.Boot, Labels: in.Labels, Capacity: in.Capacity, Engine: engine})
	}
	if err != nil {
		return out, asProblem(err)
	}
	if known, err = c.known(ctx, name); err != nil {
		return out, err
	}
	if c.renewed(known, in) && !known.DoubtedAt.IsZero() {
		if _, err := c.loop.Submit(ctx, byHosts, "", host.Renew{Name: name, Incarnation: in.Incarnation}); err != nil && !loop.IsAnswer(err) {
			return out, err
		}
	}
	if lacks, said := c.lacks(in.Found); said && !slices.Equal(lacks, known.Lacks) {
		if _, err := c.loop.Submit(ctx, byHosts, "", host.Note{Name: name, Incarnation: known.Incarnation, Lacks: lacks}); err != nil &&
			!loop.IsAnswer(err) {
			return out, err
		}
	}
	out.Uses = c.uses
	if err := c.loop.View(ctx, func(t *team.Team) {
		out.Epoch, out.Host = t.Epoch, *t.Hosts.Hosts[name]
		out.Host.Missing, out.Host.Late = nil, nil // they grow, and the host decides nothing by them
		for _, lease := range t.Hosts.Leases {
			if lease.Host == name {
				out.Leases = append(out.Leases, lease)
			}
		}
	}); err != nil {
		return out, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	is := c.of(&out.Host) // it may have left just now
	out.Revision, out.Closed, out.Daemon, out.N, out.At = is.Revision, is.Closed, is.last.Daemon, is.last.N, time.Now()
	out.Leader, out.Config = c.is.Name, c.config
	out.Engines, out.Stream, out.Alone = slices.Clone(c.engines), c.is.Stream, !c.is.Stream
	return out, nil
}

// lacks are the used programs and variables that a host reports as missing; false: it has not looked for all of them yet. If the
// host's protocol cannot report them, the list is empty.
func (c *Controller) lacks(found *wire.Found) (lacks []host.Lack, said bool) {
	if found == nil {
		return nil, true
	}
	for _, l := range found.Lacks {
		if l == (host.Lack{What: host.Disk}) || slices.Contains(c.uses, l) {
			lacks = append(lacks, l)
		}
	}
	return host.Lacks(lacks), slices.Equal(found.Uses, c.uses)
}

// known is the host as the journal has it; a copy.
func (c *Controller) known(ctx context.Context, name string) (h host.Host, err error) {
	is := false
	err = c.loop.View(ctx, func(t *team.Team) {
		if known := t.Hosts.Hosts[name]; known != nil {
			h, is = *known, true
		}
	})
	if err == nil && !is {
		err = &wire.Problem{Code: wire.Refused, Why: "host " + name + " does not belong to this team"}
	}
	return h, err
}

// renewed compares a renewal with the lease's entry, and stores it. The entry only changes from the revision that
// the sender knows, so of two daemons of a host one wins.
func (c *Controller) renewed(h host.Host, in wire.RenewIn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := c.of(&h)
	is.version, is.places, is.config = clip.Text(in.Version, versionMax), in.Places, in.Config
	if is.last.N == 0 && in.Incarnation == is.incarnation {
		is.Revision = max(is.Revision, in.Revision) // the clock of the daemon before may have been ahead
	}
	if in.N == 0 || in.Incarnation != is.incarnation || in.Revision != is.Revision || is.Closed || h.RemovedBy != "" {
		return false
	}
	is.Saw(is.Revision+1, false, c.Clock())
	is.last = host.RenewalID{Daemon: clip.To(in.Daemon, versionMax), N: in.N}
	return true
}

// of is what is known of the present incarnation of a host. mu is held.
func (c *Controller) of(h *host.Host) *heard {
	is := c.heard[h.Name]
	if is == nil || is.incarnation != h.Incarnation {
		first := host.NewWatch(c.Clock())
		first.Revision = uint64(time.Now().UnixMilli()) << 16 //nolint:gosec // above those of the daemon before: a host takes no older ones
		is = &heard{incarnation: h.Incarnation, Watch: first}
		c.heard[h.Name] = is
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return is
}

// Grant answers a host that asks whether a session may start there now.
func (c *Controller) Grant(ctx context.Context, name string, in wire.GrantIn) (grant host.Grant, err error) {
	no := ""
	err = c.loop.View(ctx, func(t *team.Team) {
		ok, why := t.Hosts.Counts(in.Token)
		switch {
		case in.Token.Host != name:
			no = "it is placed on another host"
		case !ok:
			no = why
		case c.is.Confirmed != nil && !c.is.Confirmed(): // the host asks again
			no = wire.Unconfirmed().Why
		}
		grant = host.Grant{Token: in.Token, Epoch: t.Epoch, Asked: in.Asked}
	})
	if err == nil && no != "" {
		err = &wire.Problem{Code: wire.NotHere, Why: no}
	}
	return grant, err
}

// Leave takes a host out that asks for it, after it has ended its sessions.
func (c *Controller) Leave(ctx context.Context, name string) error {
	busy, engine := 0, false
	if err := c.loop.View(ctx, func(t *team.Team) {
		h := t.Hosts.Hosts[name]
		busy, engine = t.Hosts.Placed(name), h != nil && h.Engine != "" && h.State != host.Left
	}); err != nil {
		return err
	}
	if engine && c.is.Stream {
		return &wire.Problem{
			Code: wire.Busy,
			Why:  fmt.Sprintf("host %s is an engine host; drain it first: `fairlead host drain %s`", name, name),
		}
	}
	if busy > 0 {
		return &wire.Problem{
			Code: wire.Busy,
			Why:  fmt.Sprintf("%d sessions are placed on host %s; drain it first: `fairlead host drain %s`", busy, name, name),
		}
	}
	_, err := c.loop.Submit(ctx, byHosts, "", host.Leave{Name: name})
	return asProblem(err)
}

// asProblem is a refusal as a host gets it.
func asProblem(err error) error {
	var no *table.Refusal
	if errors.As(err, &no) {
		return &wire.Problem{Code: wire.Refused, Why: no.Reason}
	}
	return err
}

var _ cluster.Members = (*Controller)(nil)
