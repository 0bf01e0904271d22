package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
)

// rig is a repository with the real daemon on it, as a process of its own that can be killed.
type rig struct {
	t      *testing.T
	dir    string
	daemon *exec.Cmd
	url    string
	heard  *bytes.Buffer // what the daemon said on standard error; read it when it has ended
	path   string        // a folder whose programs the daemon finds before all others; empty: none
}

const rigWait = 2 * time.Minute // far more than anything here takes

func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return newRigIn(t, dir, files)
}

// newRigIn is newRig in a folder that is there already.
func newRigIn(t *testing.T, dir string, files map[string]string) *rig {
	t.Helper()
	s := &rig{t: t, dir: dir}
	s.begin(files)
	return s
}

// begin writes files into the folder and starts the daemon, which ends with the test.
func (s *rig) begin(files map[string]string) {
	t, dir := s.t, s.dir
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.up()
	t.Cleanup(func() {
		if s.daemon == nil {
			s.up()
		}
		if out, code := s.fairlead("down", "--now"); code != cli.ExitDone {
			t.Errorf("fairlead down --now: exit code %d: %s", code, out)
			s.kill()
			return
		}
		_ = s.daemon.Wait()
		if strays, err := shim.Strays(dir); err != nil || len(strays) > 0 {
			t.Errorf("processes were left behind: %+v, %v", strays, err)
		}
	})
}

func command(words ...string) *exec.Cmd {
	cmd := exec.Command(program, words...)
	cmd.Env = os.Environ()
	return cmd
}

// up starts the daemon and waits until it says that it is ready.
func (s *rig) up() {
	s.t.Helper()
	if said, err := s.tryUp(); err != nil {
		s.t.Fatalf("the daemon did not get ready: %v; it said: %s", err, said)
	}
}

// tryUp is up where a no is an answer: what the daemon said before it ended, and how it ended.
func (s *rig) tryUp(before ...string) (said string, err error) {
	words := append(before, program, "up", "--dir", s.dir, "--listen", "127.0.0.1:0", "--no-browser", "--json")
	cmd := exec.Command(words[0], words[1:]...)
	if s.path != "" {
		cmd.Env = append(os.Environ(), "PATH="+s.path+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	heard := &bytes.Buffer{}
	cmd.Stderr = heard
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	late := time.AfterFunc(rigWait, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	first, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct {
		Ready bool   `json:"ready"`
		URL   string `json:"url"`
		PID   int    `json:"pid"`
	}
	if err != nil || json.Unmarshal(first, &ready) != nil || !ready.Ready || ready.PID != cmd.Process.Pid {
		err = errors.Join(fmt.Errorf("it is not ready: %q", first), err, cmd.Wait())
		return heard.String(), err
	}
	token, err := os.ReadFile(filepath.Join(s.dir, ".fairlead", "token"))
	if err != nil {
		return heard.String(), err
	}
	s.daemon, s.url, s.heard = cmd, ready.URL+"?token="+strings.TrimSpace(string(token)), heard // as uitest opens it
	return "", nil
}

// kill is SIGKILL: no word, no last write.
func (s *rig) kill() {
	s.t.Helper()
	if err := s.daemon.Process.Signal(syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	_ = s.daemon.Wait()
	s.daemon = nil
}

// fairlead runs one verb and gives what it printed and its exit code.
func (s *rig) fairlead(words ...string) (string, int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), rigWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(words, "--dir", s.dir)...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		s.t.Fatalf("fairlead %v hangs; it said: %s", words, out)
	}
	if err != nil && cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must is fairlead where only success is right.
func (s *rig) must(words ...string) string {
	s.t.Helper()
	out, code := s.fairlead(words...)
	if code != cli.ExitDone {
		s.t.Fatalf("fairlead %v: exit code %d: %s", words, code, out)
	}
	return out
}

func (s *rig) client() *apiclient.Client {
	s.t.Helper()
	client, err := apiclient.Dial(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { client.Close() })
	return client
}

// until waits for a condition on an agent.
func (s *rig) until(agent, what string, ok func(view.WhyView) bool) view.WhyView {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*wait.Patience)
	defer cancel()
	client := s.client()
	return wait.Value(s.t, what, func() (view.WhyView, error) { return client.Why(ctx, agent) }, ok)
}

func (s *rig) lines(name string) []string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
