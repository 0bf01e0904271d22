package main

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The port stays open while the daemon starts again with a changed fairlead.yaml, twice: what the page and
// other programs ask in this moment waits for its answer.
func TestReloadKeepsThePortOpen(t *testing.T) {
	t.Parallel()
	team := "version: 1\nagents:\n  coder: {description: Writes, driver: exec, command: ['true'], workspace: w}\n"
	s := newRig(t, map[string]string{"fairlead.yaml": team, "w/README": "w\n", "v/README": "v\n"})
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"  tom: {driver: exec, command: ['true'], workspace: v}\n", ""} {
		if err := os.WriteFile(filepath.Join(s.dir, "fairlead.yaml"), []byte(team+more), 0o600); err != nil {
			t.Fatal(err)
		}
		done, refused := make(chan struct{}), make(chan error, 1)
		go func() {
			defer close(refused)
			for {
				select {
				case <-done:
					return
				default:
				}
				conn, err := net.Dial("tcp", at.Host)
				if err != nil {
					refused <- err
					return
				}
				_ = conn.Close()
			}
		}()
		s.must("reload")
		close(done)
		if err := <-refused; err != nil {
			t.Errorf("during the reload: %v", err)
		}
	}
	if out, code := s.fairlead("ps"); code != 0 || strings.Contains(out, "tom") {
		t.Errorf("after it, exit code %d:\n%s", code, out)
	}
}
