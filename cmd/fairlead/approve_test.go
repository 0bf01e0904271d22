package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// An approval on the command line is for what was shown: if an artifact is changed before the answer arrives, it is refused,
// and the next one is for what is asked then.
func TestApproveWhatWasShown(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents: {}\n",
		"ship.yaml":     nowTeam["ship.yaml"], "step.sh": nowTeam["step.sh"], "NOTES.md": "# Release 1\n",
	})
	if _, err := s.client().Runs.Start(t.Context(),
		view.RunFlags{Workflow: "ship.yaml", RunID: "ship-1", PauseForHumans: true}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the step waits", func() bool {
		items, err := s.client().Inbox(t.Context())
		return err == nil && len(items) == 1 && items[0].Step == "notes"
	})

	// A daemon that changes the artifact as soon as the inbox was read, once.
	text, err := os.ReadFile(filepath.Join(s.dir, ".fairlead", "daemon.json"))
	if err != nil {
		t.Fatal(err)
	}
	var daemon map[string]any
	if err := json.Unmarshal(text, &daemon); err != nil {
		t.Fatal(err)
	}
	socket := daemon["socket"].(string)
	between, err := os.MkdirTemp("", "fl") //nolint:usetesting // for a socket: the name of a test folder may be too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(between) })
	daemon["socket"] = filepath.Join(between, filepath.Base(socket))
	if text, err = json.Marshal(daemon); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(between, ".fairlead"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(between, ".fairlead", "daemon.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	front := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "fairlead" },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}},
		ModifyResponse: func(r *http.Response) error {
			if !strings.HasSuffix(r.Request.URL.Path, "/inbox") {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			once.Do(func() {
				if err == nil {
					err = os.WriteFile(filepath.Join(s.dir, "NOTES.md"), []byte("# Release 2\n"), 0o600)
				}
			})
			return err
		},
	}}
	listener, err := net.Listen("unix", daemon["socket"].(string))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = front.Serve(listener) }() // it ends with Close
	t.Cleanup(func() { _ = front.Close() })

	approve := func() (string, int) {
		cmd := command("approve", "ship-1", "notes", "--dir", between)
		out, _ := cmd.CombinedOutput() // the exit code says it
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := approve(); code != cli.ExitRefused || !strings.Contains(out, "changed since you looked") {
		t.Errorf("changed meanwhile: %d: %s", code, out)
	}
	if items, err := s.client().Inbox(t.Context()); err != nil || len(items) != 1 {
		t.Fatalf("it is not asked again: %+v, %v", items, err)
	}
	if out, code := approve(); code != cli.ExitDone || !strings.Contains(out, "notes of run ship-1 is approved") {
		t.Errorf("once more: %d: %s", code, out)
	}
}
