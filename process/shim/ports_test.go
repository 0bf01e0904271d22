package shim

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// portsAgent starts an agent that leases ports and prints them.
func portsAgent(t *testing.T, folder string, count int, forWhom string) (*Handle, []string) {
	t.Helper()
	spec := agent(t, "ports")
	spec.Session = filepath.Base(folder) + "-1"
	spec.Launch.Env = append(spec.Launch.Env, "PORT_1=1", "PORT_99=kept")
	spec.Launch.Ports, spec.Launch.PortsFor = count, forWhom
	h := start(t, folder, spec)
	return h, lines(t, h, count)
}

// Sessions of one user never have the same port, whichever workspace and daemon they belong to. The ports of a
// session that is over can be leased again, and the same folder gets the same ones.
func TestPorts(t *testing.T) {
	dir := t.TempDir()
	first, ports := portsAgent(t, filepath.Join(dir, "a"), 3, dir)
	_, others := portsAgent(t, filepath.Join(dir, "b"), 3, dir)
	seen := map[string]bool{}
	for _, port := range append(append([]string{}, ports...), others...) {
		n, err := strconv.Atoi(port)
		if err != nil || n < portFirst || n >= portFirst+portCount || seen[port] {
			t.Fatalf("leased are %v and %v", ports, others)
		}
		seen[port] = true
	}
	st, err := first.Status(t.Context())
	if err != nil || len(st.Ports) != 3 || strconv.Itoa(st.Ports[0]) != ports[0] {
		t.Fatalf("its status names the ports %v, %v", st.Ports, err)
	}
	ok(t, first.Close()) // the daemon is gone
	_, more := portsAgent(t, filepath.Join(dir, "c"), 3, dir)
	for _, port := range more {
		if seen[port] {
			t.Fatalf("%s is leased twice: %v, %v, %v", port, ports, others, more)
		}
	}
	again, _, err := Adopt(t.Context(), filepath.Join(dir, "a"), 2)
	ok(t, err)
	ok(t, again.End(t.Context(), 0))
	done(t, again)
	again.Close()
	_, same := portsAgent(t, filepath.Join(dir, "d"), 3, dir)
	if strings.Join(same, " ") != strings.Join(ports, " ") {
		t.Errorf("free again are %v, and the folder gets %v", ports, same)
	}
}

// A shim that is killed frees its ports with its agent.
func TestPortsOfAKilledShim(t *testing.T) {
	dir := t.TempDir()
	h, ports := portsAgent(t, filepath.Join(dir, "a"), 2, dir)
	st, err := h.Status(t.Context())
	ok(t, err)
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGKILL))
	done(t, h)
	_, same := portsAgent(t, filepath.Join(dir, "b"), 2, dir)
	if strings.Join(same, " ") != strings.Join(ports, " ") {
		t.Errorf("free again are %v, and leased are %v", ports, same)
	}
}

// A port on which another program listens is not leased.
func TestPortsInUse(t *testing.T) {
	dir := t.TempDir()
	h, ports := portsAgent(t, filepath.Join(dir, "a"), 2, dir)
	ok(t, h.End(t.Context(), 0))
	done(t, h)
	l, err := net.Listen("tcp", "127.0.0.1:"+ports[0])
	ok(t, err)
	defer l.Close()
	_, others := portsAgent(t, filepath.Join(dir, "b"), 2, dir)
	if others[0] != ports[1] {
		t.Errorf("%s is in use; leased are %v", ports[0], others)
	}
}

func TestTooManyPorts(t *testing.T) {
	spec := agent(t, "hang")
	spec.Launch.Ports = PortsMax + 1
	if _, err := Start(t.Context(), t.TempDir(), spec); err == nil ||
		!strings.Contains(err.Error(), "17 ports: a session leases at most 16") {
		t.Errorf("it says %v", err)
	}
	if os.Getenv(portVar+"1") != "" {
		t.Error("the test has a lease itself")
	}
}
