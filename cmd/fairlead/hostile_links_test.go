package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/read/view"
)

const told = "the secret of somebody\n"

// somebodys is a file outside of every repository here.
func somebodys(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spool")
	if err := os.WriteFile(path, []byte(told), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Three routes read files that an agent can reach: output, its stream, and the facts made of
// it. A link to another file, or a pipe that blocks its reader, is refused with
// a message.
func TestPlantedOutput(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [echo, hello], workspace: ada}\n",
	})
	s.must("once", "ada", "--wait")
	session := s.until("ada", "it rests", func(v view.WhyView) bool { return v.Agent.Session == nil && len(v.Sessions) > 0 }).Sessions[0].ID
	secret := somebodys(t)
	client := s.client()
	folder := filepath.Join(s.dir, ".fairlead", "sessions", session)
	for name, plant := range map[string]struct {
		at string
		do func(path string) error
	}{
		"a link":           {filepath.Join(folder, "spool"), func(path string) error { return os.Symlink(secret, path) }},
		"a pipe":           {filepath.Join(folder, "spool"), func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		"a second name":    {filepath.Join(folder, "spool"), func(path string) error { return os.Link(secret, path) }},
		"a link to folder": {folder, func(path string) error { return os.Symlink(filepath.Dir(secret), path) }},
		"a folder":         {filepath.Join(folder, "spool"), func(path string) error { return os.Mkdir(path, 0o700) }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), rigWait)
			defer cancel()
			putAside(t, plant.at)
			if err := plant.do(plant.at); err != nil {
				t.Fatal(err)
			}
			_, rawErr := client.RawOutput(ctx, session, 0, 1000)
			_, factsErr := apiclient.Get[api.Facts](ctx, client, "/sessions/"+session+"/facts", nil)
			for what, err := range map[string]error{"output": rawErr, "facts": factsErr, "stream": streamed(ctx, client, session)} {
				if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), plant.at) ||
					strings.Contains(err.Error(), told) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// Every route that shows an agent shows what its agent_state.json says. A link in its place is
// neither read nor written through, and `why` says what is there.
func TestPlantedState(t *testing.T) {
	t.Parallel()
	s := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [\"true\"], workspace: ada}\n",
	})
	secret := somebodys(t)
	path := filepath.Join(s.dir, "ada", agentstate.FileName)
	putAside(t, path)
	if err := os.Symlink(secret, path); err != nil {
		t.Fatal(err)
	}
	s.poll("`why` says that it is a link", func() bool {
		out, _ := s.fairlead("why", "ada")
		return strings.Contains(out, "link")
	})
	for _, words := range [][]string{{"ps", "--json"}, {"why", "ada", "--json"}, {"events", "--json"}, {"once", "ada"}, {"doctor"}} {
		if out, _ := s.fairlead(words...); strings.Contains(out, strings.TrimSpace(told)) {
			t.Errorf("%q shows somebody's file: %s", words, out)
		}
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != told {
		t.Errorf("somebody's file is %q now: %v", text, err)
	}
}

// streamed follows a session's output to its end, and says why it ended.
func streamed(ctx context.Context, c *apiclient.Client, session string) error {
	for heard, err := range c.Output(ctx, session, apiclient.OutputQuery{}) {
		if err != nil {
			return err
		}
		if heard.End != nil {
			break
		}
	}
	return nil
}

// putAside takes a file away, and brings it back after the test.
func putAside(t *testing.T, path string) {
	t.Helper()
	aside := path + ".aside"
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.RemoveAll(path)
		if err := os.Rename(aside, path); err != nil {
			t.Error(err)
		}
	})
}
