package netns

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && strings.HasPrefix(os.Args[1], "__") {
		if err := program(os.Args[1], os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// program is what the tests run on a host.
func program(does, at string) error {
	switch does {
	case "__serve":
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) }))
	case "__get":
		answer, err := (&http.Client{Timeout: 300 * time.Millisecond}).Get("http://" + at)
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, answer.Body)
		return err
	case "__hear": // datagrams, one a line
		c, err := net.ListenPacket("udp", at)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		for buf := make([]byte, 100); ; {
			n, _, err := c.ReadFrom(buf)
			if err != nil {
				return err
			}
			fmt.Println(string(buf[:n]))
		}
	}
	c, err := net.Dial("udp", at) // otherwise does says "__" and the text
	if err == nil {
		_, err = c.Write([]byte(strings.TrimPrefix(does, "__")))
	}
	return err
}

// runs starts a program on a host and returns its output, after it has said that it is ready.
func runs(t *testing.T, n *Net, host string, args ...string) *bufio.Scanner {
	t.Helper()
	cmd := n.Command(t.Context(), host, append([]string{os.Args[0]}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // its context has ended
	said := bufio.NewScanner(out)
	if !said.Scan() || said.Text() != "ready" {
		t.Fatalf("%s on %s said %q", args, host, said.Text())
	}
	return said
}

// TestCut: hosts reach each other by their addresses, do not while they are cut off, and then do again.
func TestCut(t *testing.T) {
	t.Parallel()
	n := New(t, "a", "b", "c")
	runs(t, n, "a", "__serve", n.Address("a")+":80")
	get := func(host string) (string, error) {
		out, err := n.Command(t.Context(), host, os.Args[0], "__get", n.Address("a")+":80").CombinedOutput()
		return string(out), err
	}
	reaches := func(host string) {
		t.Helper()
		wait.Until(t, host+" reaches a", func() bool {
			out, err := get(host)
			return err == nil && strings.HasPrefix(out, n.Address(host)+":")
		})
	}
	reaches("b")
	n.Cut("a", "b")
	n.Cut("b", "a")
	if out, err := get("b"); err == nil || !strings.Contains(out, "deadline exceeded") {
		t.Errorf("b was cut off and got %q", out)
	}
	reaches("c")
	n.Heal()
	reaches("b")
}

// TestCutOneWay: what one host sends to another is lost, and what it receives is not.
func TestCutOneWay(t *testing.T) {
	t.Parallel()
	n := New(t, "a", "b")
	heard := runs(t, n, "a", "__hear", n.Address("a")+":9")
	runs(t, n, "b", "__serve", n.Address("b")+":80")
	on := func(host string, args ...string) (string, error) {
		out, err := n.Command(t.Context(), host, append([]string{os.Args[0]}, args...)...).CombinedOutput()
		return string(out), err
	}
	n.CutOneWay("a", "b")
	if out, err := on("a", "__get", n.Address("b")+":80"); err == nil || !strings.Contains(out, "deadline exceeded") {
		t.Errorf("a was cut off from b and got %q", out)
	}
	if out, err := on("b", "__hello", n.Address("a")+":9"); err != nil || !heard.Scan() || heard.Text() != "hello" {
		t.Errorf("a heard %q of b: %s %v", heard.Text(), out, err)
	}
	n.Heal()
	wait.Until(t, "a reaches b", func() bool {
		_, err := on("a", "__get", n.Address("b")+":80")
		return err == nil
	})
}

// TestSignal: a signal reaches all processes of one host.
func TestSignal(t *testing.T) {
	t.Parallel()
	n := New(t, "a", "b")
	var cmds []*exec.Cmd
	for _, host := range []string{"a", "a", "b"} {
		cmd := n.Command(context.Background(), host, os.Args[0], "__serve", "127.0.0.1:0")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if said := bufio.NewScanner(out); !said.Scan() || said.Text() != "ready" {
			t.Fatal(said.Text())
		}
		cmds = append(cmds, cmd)
	}
	n.Signal("a", syscall.SIGHUP)
	for _, cmd := range cmds[:2] {
		_ = cmd.Wait()
		if is, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || is.Signal() != syscall.SIGHUP {
			t.Error(cmd.ProcessState)
		}
	}
	n.Signal("b", syscall.SIGTERM)
	_ = cmds[2].Wait()
	if is, ok := cmds[2].ProcessState.Sys().(syscall.WaitStatus); !ok || is.Signal() != syscall.SIGTERM {
		t.Error(cmds[2].ProcessState)
	}
}

// TestNothingIsLeft: the end of a test removes its namespaces with all processes in them, and a later test those of
// a process of tests that was killed.
func TestNothingIsLeft(t *testing.T) {
	left := func() []string {
		all, _ := filepath.Glob(filepath.Join(folder, fmt.Sprintf("%s%d-*-stays", prefix, os.Getpid())))
		return all
	}
	var cmd *exec.Cmd
	t.Run("a test", func(t *testing.T) {
		n := New(t, "stays")
		cmd = n.Command(context.Background(), "stays", "sleep", "3600")
		if err := cmd.Start(); err != nil || len(left()) != 1 {
			t.Fatal(err, left())
		}
		ended := exec.Command("true")
		if err := ended.Run(); err != nil {
			t.Fatal(err)
		}
		old := fmt.Sprintf("%s%d-1-old", prefix, ended.Process.Pid)
		if err := ip("netns", "add", old); err != nil {
			t.Fatal(err)
		}
		New(t, "b")
		if _, err := os.Stat(filepath.Join(folder, old)); err == nil {
			t.Errorf("%s is left", old)
		}
	})
	if cmd == nil {
		t.Skip("see the test within")
	}
	if err := cmd.Wait(); err == nil || len(left()) != 0 {
		t.Errorf("left: %v, %v", left(), err)
	}
}
