package worker

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
)

// team has an authority and the members that it certified.
type team struct {
	authority *ca.Authority

	mu      sync.Mutex
	members map[string]cluster.Member
}

func newTeam(t *testing.T) *team {
	t.Helper()
	authority, err := ca.Create(t.TempDir(), "shop", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &team{authority: authority, members: map[string]cluster.Member{}}
}

// Member is cluster.Members'.
func (m *team) Member(name string) (cluster.Member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, ok := m.members[name]
	return is, ok
}

// join makes the identity of a host in a folder.
func (m *team) join(t *testing.T, folder, name string, role cluster.Role) *ca.Identity {
	t.Helper()
	id, err := ca.NewIdentity(folder, name, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if role == cluster.Engine {
		names = []string{"127.0.0.1"}
	}
	request, err := id.Request(names)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := m.authority.Sign(request, name, role, func(net.IP) bool { return true }, time.Now())
	if err == nil {
		err = id.Install(certificate, m.authority.PEM())
	}
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members[name] = cluster.Member{Name: name, Role: role, Key: id.PublicKey()}
	return id
}

// remove ends a membership.
func (m *team) remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.members, name)
}
