package task

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	_ "github.com/fairlead-dev/fairlead/process/proxy" // runs in a process of this binary
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// TestCommandsNetwork: a check reaches the hosts of tasks.network, and no others, while there is a proxy.
func TestCommandsNetwork(t *testing.T) {
	if !sandbox.Abilities().Network {
		t.Skip(sandbox.Abilities().Why)
	}
	w := newWorld(t)
	dir, err := os.MkdirTemp("", "fl") //nolint:usetesting // a socket's path is short
	w.must(err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv(runtimedir.Var, dir)
	t.Setenv("ANTHROPIC_API_KEY", "the-real-key")
	var ports [2]int
	for i, at := range []string{"127.0.0.2:0", "127.0.0.3:0"} {
		l, err := net.Listen("tcp", at)
		w.must(err)
		server := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { fmt.Fprintln(out, "a page") })}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { server.Close() })
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	daemon, err := wire.Connect(t.Context(), filepath.Join(w.repo, ".fairlead", "proxy"), wire.RoleWatcher, wire.Options{})
	w.must(err)
	t.Cleanup(func() {
		_ = syscall.Kill(daemon.PID, syscall.SIGTERM)
		_, _, err := daemon.Receive()
		for err == nil {
			_, _, err = daemon.Receive()
		}
		daemon.Close()
	})
	w.task.Wall = Wall{
		Mode: "workspace", Network: network.Rules{Hosts: []network.Host{{Name: "127.0.0.2", Port: ports[0], Named: true}}},
	}
	get := "curl -sSf --max-time 20 http://%s:%d/"
	for line, allowed := range map[string]bool{
		fmt.Sprintf(get, "127.0.0.2", ports[0]):                                                   true,
		fmt.Sprintf(get, "127.0.0.3", ports[1]):                                                   false,
		fmt.Sprintf(strings.Replace(get, "curl", "curl --noproxy '*'", 1), "127.0.0.2", ports[0]): false,
		fmt.Sprintf(strings.Replace(get, "curl", "curl --noproxy '*'", 1), "127.0.0.3", ports[1]): false,
		"test -z \"$ANTHROPIC_API_KEY\"":                                                          true,
		"curl -sS http://127.0.0.1:61080/anthropic/v1/models | grep .":                            true, // the proxy says that it has no key
	} {
		w.task.Checks = []string{line}
		var out bytes.Buffer
		if err := w.task.Check(t.Context(), &out); (err == nil) != allowed {
			t.Errorf("%s: %v %s", line, err, &out)
		}
		if strings.Contains(out.String(), "the-real-key") || strings.Contains(out.String(), "does not hold: network") {
			t.Errorf("%s: %s", line, &out)
		}
	}
}
