package node

import (
	"errors"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// A server gives up its store when the disk is full. It has it again, with what was in it, when it is restarted after there is room.
func TestRevive(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	a := f.host("a", cluster.Engine)
	o := f.options(a)
	room := uint64(freeMin)
	o.free = func(string) (uint64, error) { return room, nil }
	n := f.start(o)
	if n.Storeless() {
		t.Error("a server that has just started has no store")
	}
	n.server.ShutdownJetStream() // as the server does it
	wait.Until(t, "it has no store", n.Storeless)
	room--
	if err := n.Revive(t.Context()); !errors.Is(err, syscall.ENOSPC) || !n.Storeless() {
		t.Errorf("it is restarted on a disk that is full: %v", err)
	}
	room++
	if err := n.Revive(t.Context()); err != nil || n.Storeless() {
		t.Errorf("it is not restarted: %v", err)
	}
	if err := n.WithoutStore(t.Context()); err != nil || n.Storeless() {
		t.Errorf("a server that is to have no store for a while is taken for one that has lost it: %v", err)
	}
}
