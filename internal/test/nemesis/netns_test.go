package nemesis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

const (
	folder = "/run/netns" // where ip keeps the namespaces
	prefix = "fl-"        // of the names: fl-PID-NUMBER-HOST, where PID is that of the tests
	router = "router"
	cutAt  = "100" // the place of the rules before the table of routes
)

var made atomic.Int32 // networks of this process

// Net gives each host of a test a network of its own on this machine, and cuts them off from each other. Its methods
// fail the test if they cannot do what they say.
//
// A host is a network namespace. All are connected to one more namespace, which forwards packets. A cut is a rule
// there that discards packets, so the hosts notice it as on a real network: nothing arrives, and no one reports an
// error. When a test has ended, its namespaces and all processes in them are gone.
type Net struct {
	t     testing.TB
	name  string         // of its namespaces, before the host
	hosts map[string]int // numbers of the hosts, from 1
	cuts  map[[2]string]bool
}

// newNet makes a network in which every host reaches all others.
func newNet(t testing.TB, hosts ...string) *Net {
	t.Helper()
	if why := missing(); why != "" {
		t.Skip("hosts in network namespaces: " + why)
	}
	removeStale(t)
	n := &Net{t: t, name: fmt.Sprintf("%s%d-%d-", prefix, os.Getpid(), made.Add(1)), hosts: map[string]int{}, cuts: map[[2]string]bool{}}
	t.Cleanup(func() {
		for _, host := range append(hosts, router) {
			remove(t, n.name+host)
		}
	})
	r := n.name + router
	if err := ip("netns", "add", r); err != nil {
		t.Skip("hosts in network namespaces: ", err)
	}
	n.must(nsenter(context.Background(), r, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward").Run())
	for i, host := range hosts {
		n.hosts[host] = i + 1
		own, link := n.name+host, fmt.Sprint("to", i+1)
		n.must(ip("netns", "add", own))
		n.must(ip("-n", r, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", own))
		n.must(ip("-n", r, "addr", "add", n.gate(host)+"/30", "dev", link))
		n.must(ip("-n", r, "link", "set", link, "up"))
		n.must(ip("-n", own, "link", "set", "lo", "up"))
		n.must(ip("-n", own, "addr", "add", n.Address(host)+"/30", "dev", "eth0"))
		n.must(ip("-n", own, "link", "set", "eth0", "up"))
		n.must(ip("-n", own, "route", "add", "default", "via", n.gate(host)))
	}
	return n
}

// missing says what this machine lacks.
func missing() string {
	if os.Getuid() != 0 {
		return "they need root"
	}
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			return "the program " + program + " is missing; Debian has it in iproute2 and util-linux"
		}
	}
	return ""
}

// Address is the address under which the others reach a host.
func (n *Net) Address(host string) string { return fmt.Sprintf("10.213.%d.2", n.number(host)) }

func (n *Net) gate(host string) string { return fmt.Sprintf("10.213.%d.1", n.number(host)) }

func (n *Net) number(host string) int {
	n.t.Helper()
	if n.hosts[host] == 0 {
		n.t.Fatalf("the network has no host %q", host)
	}
	return n.hosts[host]
}

// Command is a program that runs on a host. Its process is that of the program itself, and it has the files of this
// machine.
func (n *Net) Command(ctx context.Context, host string, argv ...string) *exec.Cmd {
	n.number(host)
	return nsenter(ctx, n.name+host, argv...)
}

// Cut discards what two hosts send each other from now on.
func (n *Net) Cut(a, b string) {
	n.t.Helper()
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// CutOneWay discards what one host sends to another from now on.
func (n *Net) CutOneWay(from, to string) {
	n.t.Helper()
	if cut := [2]string{from, to}; !n.cuts[cut] {
		n.must(n.rule("add", cut))
		n.cuts[cut] = true
	}
}

// Heal ends all cuts.
func (n *Net) Heal() {
	n.t.Helper()
	for cut := range n.cuts {
		n.must(n.rule("del", cut))
		delete(n.cuts, cut)
	}
}

// Signal sends a signal to all processes of a host.
func (n *Net) Signal(host string, sig syscall.Signal) {
	n.t.Helper()
	n.number(host)
	signal(n.name+host, sig)
}

// signal returns the number of processes that a namespace had; none: it may be gone.
func signal(namespace string, sig syscall.Signal) (had int) {
	out, _ := exec.Command("ip", "netns", "pids", namespace).Output()
	pids := strings.Fields(string(out))
	for _, pid := range pids {
		if id, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(id, sig)
		}
	}
	return len(pids)
}

func (n *Net) rule(do string, cut [2]string) error {
	return ip("-n", n.name+router, "rule", do, "from", n.Address(cut[0]), "to", n.Address(cut[1]), "blackhole", "pref", cutAt)
}

func (n *Net) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func nsenter(ctx context.Context, namespace string, argv ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + filepath.Join(folder, namespace), "--"}, argv...)...)
}

// removeStale removes the namespaces that test processes left behind when they were killed.
func removeStale(t testing.TB) {
	t.Helper()
	all, _ := filepath.Glob(filepath.Join(folder, prefix+"*"))
	for _, path := range all {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), prefix), "-")
		if id, err := strconv.Atoi(pid); err == nil && errors.Is(syscall.Kill(id, 0), syscall.ESRCH) {
			remove(t, filepath.Base(path))
		}
	}
}

// remove ends all processes in a namespace, and removes it with its links.
func remove(t testing.TB, namespace string) {
	t.Helper()
	if !wait.Poll(func() bool { return signal(namespace, syscall.SIGKILL) == 0 }) {
		t.Errorf("processes in the namespace %s do not end", namespace)
	}
	if _, err := os.Stat(filepath.Join(folder, namespace)); err == nil {
		_ = ip("netns", "del", namespace) // another process of tests may remove it, too
	}
}

// netProgram is what the tests of Net run on a host.
func netProgram(does, at string) error {
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
	n := newNet(t, "a", "b", "c")
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
	n := newNet(t, "a", "b")
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
	n := newNet(t, "a", "b")
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
		n := newNet(t, "stays")
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
		newNet(t, "b")
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
