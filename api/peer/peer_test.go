package peer

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUserAtTheOtherEnd(t *testing.T) {
	dir, err := os.MkdirTemp("", "peer") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if uid, err := peerUID(c.(*net.UnixConn)); err != nil || uid != os.Getuid() {
		t.Errorf("the peer is user %d, %v", uid, err)
	}
	if err := SameUser(c.(*net.UnixConn)); err != nil {
		t.Error(err)
	}
	if text := (&otherUser{uid: 4711}).Error(); !strings.Contains(text, "4711") {
		t.Error(text)
	}
}
