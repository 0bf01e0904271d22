package server

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
)

// A leader that most engine hosts do not answer says that what it shows may be old.
func TestNoLeaderAnswers(t *testing.T) {
	t.Parallel()
	dir := newWorkspace(t)
	is := api.Leader{Leads: true}
	s := New(Options{
		Engine: supervise(t, memory.New(), dir, pair).App, Dir: dir, Store: "memory",
		Leader: func() api.Leader { return is },
	})
	defer s.Close()
	c := client.ReadFrom(dir, s.SocketHandler())
	team, err := c.Agents(t.Context())
	if err != nil || team.NoLeaderSince != nil || team.AsOf != nil {
		t.Errorf("a leader with a majority: %+v, %v", team.Past, err)
	}
	since, asOf := time.Now().Add(-10*time.Second).UTC(), time.Now().Add(-8*time.Second).UTC()
	is.NoLeaderSince, is.AsOf = &since, &asOf
	if team, err = c.Agents(t.Context()); err != nil || team.NoLeaderSince == nil || !team.NoLeaderSince.Equal(since) ||
		!team.AsOf.Equal(asOf) {
		t.Errorf("a leader that is cut off: %+v, %v", team.Past, err)
	}
	if hosts, err := c.Hosts(t.Context()); err != nil || hosts.NoLeaderSince == nil {
		t.Errorf("the hosts: %+v, %v", hosts.Past, err)
	}
	if got, err := c.Leader(t.Context()); err != nil || !got.Leads || got.NoLeaderSince == nil || !got.AsOf.Equal(asOf) {
		t.Errorf("%+v, %v", got, err)
	}
}
