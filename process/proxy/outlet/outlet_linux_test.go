package outlet_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	_ "github.com/fairlead-dev/fairlead/process/proxy" // runs in processes of this binary, as the shim and the view do
	"github.com/fairlead-dev/fairlead/process/proxy/outlet"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

const (
	machineVar = "FAIRLEAD_TEST_MACHINE" // this process is in the machine of the tests
	clientVar  = "FAIRLEAD_TEST_CLIENT"  // this process is a program in a session
)

func TestMain(m *testing.M) {
	switch act := os.Getenv(clientVar); act {
	case "":
	case "ways":
		makeWays()
		return
	case "crowd":
		makeCrowd()
		return
	case "one":
		fmt.Println(outcome(func() (string, error) { return tunneled(allowed+":80", noTLS, get("/", allowed), " end") }, forAllowed))
		return
	default:
		client(act)
		return
	}
	dir, err := os.MkdirTemp("", "fl") // for sockets that no other test uses
	if err != nil {
		panic(err)
	}
	os.Setenv(runtimedir.Var, dir)
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

const (
	allowed = "allowed.example.com"
	other   = "other.example.com"
	// addresses that are public: a documentation range would be refused. Only the machine of the tests has them here.
	allowedAt, otherAt = "93.184.216.34", "93.184.216.35"
)

// machine is where the tests of this file run: a network namespace in which two hosts are addresses of loopback, so that no packet leaves
// it, and in which only /etc/hosts knows them.
type machine struct {
	certificate string // a file with the authority of the hosts
}

// alone runs a test in a machine of its own: namespaces of network and mounts. It returns false in the process that only waits for it.
func alone(t testing.TB) bool {
	t.Helper()
	if !sandbox.Abilities().Network {
		t.Skipf("there is no network of a view here: %v", sandbox.Abilities().Why)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root makes the network namespace that stands for the machine")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip gives that machine its addresses: ", err)
	}
	if os.Getenv(machineVar) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), machineVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
	return false
}

// inMachine makes such a machine with two hosts. It returns nil in the process that only waits.
func inMachine(t *testing.T) *machine {
	t.Helper()
	if !alone(t) {
		return nil
	}
	m := &machine{}
	hosts := filepath.Join(t.TempDir(), "hosts")
	ok(t, os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"+allowedAt+" "+allowed+"\n"+otherAt+" "+other+"\n"), 0o644))
	ok(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	ok(t, unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, ""))
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", allowedAt + "/32", "dev", "lo"},
		{"addr", "add", otherAt + "/32", "dev", "lo"},
	} {
		ok(t, exec.Command("ip", args...).Run())
	}
	m.serve(t)
	return m
}

// serve starts the servers of both hosts: web pages, with and without TLS, and a git repository among them.
func (m *machine) serve(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "machine"}, DNSNames: []string{allowed, other},
		NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ok(t, err)
	m.certificate = filepath.Join(t.TempDir(), "ca.pem")
	ok(t, os.WriteFile(m.certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	repo := filepath.Join(t.TempDir(), "repo.git")
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", repo}, {"-C", repo, "update-server-info"},
	} {
		ok(t, exec.Command("git", args...).Run())
	}
	pages := http.NewServeMux()
	pages.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "page of", r.Host) })
	pages.Handle("/repo.git/", http.StripPrefix("/repo.git/", http.FileServer(http.Dir(repo))))
	for _, at := range []string{allowedAt, otherAt} {
		plain, err := net.Listen("tcp", at+":80")
		ok(t, err)
		secure, err := tls.Listen("tcp", at+":443", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
		ok(t, err)
		for _, l := range []net.Listener{plain, secure} {
			server := &http.Server{Handler: pages}
			go func() { _ = server.Serve(l) }()
			t.Cleanup(func() { server.Close() })
		}
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// session is a program in a view of the machine.
type session struct {
	*shim.Handle
	proxy string // the folder
}

// start starts a program whose rules allow one host.
func (m *machine) start(t *testing.T, folder string, argv []string, env ...string) *session {
	t.Helper()
	rules := network.Rules{Hosts: []network.Host{{Name: allowed}}}
	places := []sandbox.Place{
		{Path: filepath.Dir(self(t)), Access: sandbox.Read},
		{Path: filepath.Dir(m.certificate), Access: sandbox.Read},
	}
	view := sandbox.Abilities().Apply(sandbox.View{Places: places, Network: sandbox.InsideOf(rules)})
	h, err := shim.Start(t.Context(), filepath.Join(t.TempDir(), "session"), shim.Spec{
		Session: "coder-1", Workspace: t.Name(), Fence: 1, Grace: 5 * time.Second,
		Launch: spawn.Launch{
			Argv: argv, KeepStdin: true, View: &view, Network: &spawn.Network{Folder: folder, Agent: "coder", Rules: rules},
			Env: append(env, m.environment()...),
		},
	})
	ok(t, err)
	s := &session{h, folder}
	t.Cleanup(func() {
		_ = s.End(context.Background(), 0)
		<-s.Done()
		s.Close()
	})
	return s
}

// environment are the variables with which each client knows the authority of the hosts.
func (m *machine) environment() []string {
	return []string{
		"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0", "SSL_CERT_FILE=" + m.certificate, "CURL_CA_BUNDLE=" + m.certificate,
		"NODE_EXTRA_CA_CERTS=" + m.certificate, "GIT_SSL_CAINFO=" + m.certificate,
	}
}

func self(t testing.TB) string {
	exe, err := os.Executable()
	ok(t, err)
	return exe
}

// proxyPID is the proxy of a folder.
func proxyPID(t *testing.T, folder string) int {
	t.Helper()
	c, err := wire.Connect(t.Context(), folder, wire.RoleWatcher, wire.Options{})
	ok(t, err)
	defer c.Close()
	return c.PID
}

// endProxy ends the proxy after a test.
func endProxy(t *testing.T, folder string) {
	t.Cleanup(func() {
		c, err := wire.Connect(context.Background(), folder, wire.RoleWatcher, wire.Options{})
		if err != nil {
			return
		}
		c.Close()
		_ = syscall.Kill(c.PID, syscall.SIGTERM)
		waitGone(t, c.PID)
	})
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("process %d is gone", pid), func() bool { return shim.LifeOf(pid, 0) == shim.Gone })
}

// output is what a session has written, when it has ended.
func (s *session) output(t *testing.T) string {
	t.Helper()
	<-s.Done()
	r, err := shim.Output(s.Folder(), 0)
	ok(t, err)
	defer r.Close()
	text, err := io.ReadAll(r)
	ok(t, err)
	return string(text)
}

// proxied are the variables for programs that know proxies.
func proxied() []string { return outlet.Environment(nil) }

// TestClients: programs of different kinds reach an allowed host, by variables for proxies and without them, and no other host. Outside
// of a view, the same commands reach both.
func TestClients(t *testing.T) {
	m := inMachine(t)
	if m == nil {
		return
	}
	const python = `import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())`
	const node = `fetch(process.argv[1]).then(r => r.ok ? r.text() : Promise.reject(r.status)).then(console.log, e => { console.log(e); process.exit(1) })`
	const nodeOld = `require(process.argv[1].split(":")[0]).get(process.argv[1], r => { r.pipe(process.stdout); if (r.statusCode != 200) process.exitCode = 1 }).on("error", e => { console.log(e); process.exit(1) })`
	folder := filepath.Join(t.TempDir(), "proxy")
	endProxy(t, folder)
	for name, argv := range map[string][]string{
		"curl":      {"curl", "-sSf", "--max-time", "20", "URL/page"},
		"python":    {"/usr/bin/python3", "-c", python, "URL/page"},
		"node":      {"node", "-e", node, "URL/page"},
		"node http": {"node", "-e", nodeOld, "URL/page"},
		"go":        {self(t), "URL/page"},
		"git":       {"git", "ls-remote", "URL/repo.git"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(argv[0]); err != nil {
				t.Skip(err)
			}
			control := exec.Command("/bin/sh", "-c", eachURL(argv))
			control.Env = append(m.environment(), clientVar+"=get", "HOME=/tmp")
			out, err := control.CombinedOutput()
			if strings.Count(string(out), "done 0") != 4 {
				t.Fatalf("it does not even work free: %v %s", err, out)
			}
			for how, env := range map[string][]string{"by variables": proxied(), "without": nil} {
				out := m.start(t, folder, control.Args, append(env, clientVar+"=get", "HOME=/tmp")...).output(t)
				for _, scheme := range []string{"http", "https"} {
					reached := strings.Contains(out, "done 0 "+scheme+"://"+allowed)
					if refused := strings.Contains(out, scheme+"://"+other+"\n") && !strings.Contains(out, "done 0 "+scheme+"://"+other); !reached || !refused {
						t.Errorf("%s: %s", how, out)
					}
				}
				if strings.Contains(out, "page of "+other) || name != "git" && strings.Count(out, "page of "+allowed) != 2 {
					t.Errorf("%s: %s", how, out)
				}
			}
		})
	}
}

// eachURL is a script that runs a command for each URL, and says how it ended.
func eachURL(argv []string) (script string) {
	for _, url := range []string{"http://" + allowed, "http://" + other, "https://" + allowed, "https://" + other} {
		for _, word := range argv {
			script += "'" + strings.ReplaceAll(strings.ReplaceAll(word, "URL", url), "'", `'\''`) + "' "
		}
		script += "2>&1; echo \"done $? " + url + "\"\n"
	}
	return script
}

// client is a program in a session: it gets a page, or one for each line of its input.
func client(act string) {
	get := func(url string) (string, error) {
		c := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
		answer, err := c.Get(url)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusOK {
			err = errors.Join(err, errors.New(answer.Status))
		}
		return string(text), err
	}
	if act == "get" {
		text, err := get(os.Args[1])
		fmt.Println(text, err)
		if err != nil {
			os.Exit(1)
		}
		return
	}
	for {
		var url string
		if _, err := fmt.Scanln(&url); err != nil {
			return
		}
		text, err := get(url)
		line, _ := json.Marshal([]string{text, fmt.Sprint(err)})
		fmt.Println(string(line))
	}
}

// asking is a session that gets pages on demand.
type asking struct {
	*session
	sent int64
	out  *json.Decoder
}

func (m *machine) startAsking(t *testing.T, folder string) *asking {
	t.Helper()
	s := m.start(t, folder, []string{self(t)}, append(proxied(), clientVar+"=lines")...)
	r, err := s.Output(t.Context(), 0)
	ok(t, err)
	t.Cleanup(func() { r.Close() })
	return &asking{s, 0, json.NewDecoder(r)}
}

func (a *asking) ask(t *testing.T, url string) {
	t.Helper()
	ok(t, a.Send(t.Context(), a.sent, []byte(url+"\n")))
	a.sent += int64(len(url) + 1)
}

func (a *asking) answer(t *testing.T) (text, err string) {
	t.Helper()
	var got [2]string
	ok(t, a.out.Decode(&got))
	return got[0], got[1]
}

const page = "http://" + allowed + "/page"

func (a *asking) reaches(t *testing.T) {
	t.Helper()
	a.ask(t, page)
	if text, err := a.answer(t); text != "page of "+allowed+"\n" {
		t.Fatalf("%q %s", text, err)
	}
}

// TestProxyKilled: a proxy that is killed is back, and nothing passes meanwhile. The proxy is no process of the session.
func TestProxyKilled(t *testing.T) {
	m := inMachine(t)
	if m == nil {
		return
	}
	folder := filepath.Join(t.TempDir(), "proxy")
	endProxy(t, folder)
	a := m.startAsking(t, folder)
	a.reaches(t)
	pid := proxyPID(t, folder)
	for range 3 {
		ok(t, syscall.Kill(pid, syscall.SIGKILL))
		a.reaches(t)
		next := proxyPID(t, folder)
		if next == pid {
			t.Fatal("it is the same proxy")
		}
		pid = next
	}
	// Nothing passes while there is no proxy: here no other one starts, because the test has the lock.
	lock, err := os.Open(filepath.Join(folder, "lock"))
	ok(t, err)
	defer lock.Close()
	ok(t, syscall.Kill(pid, syscall.SIGKILL))
	wait.Until(t, "the lock is free", func() bool { return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil })
	a.ask(t, page)
	st, err := a.Status(t.Context())
	ok(t, err)
	wait.Until(t, "a connection waits", func() bool { return waits(t, st) })
	ok(t, unix.Flock(int(lock.Fd()), unix.LOCK_UN))
	if text, err := a.answer(t); text != "page of "+allowed+"\n" {
		t.Errorf("%q %s", text, err)
	}
	if st, err = a.Status(t.Context()); err != nil || st.Children != 0 {
		t.Errorf("%d processes beside the agent, %v", st.Children, err)
	}
	if zombies := zombiesOf(t, st.ShimPID); len(zombies) > 0 {
		t.Errorf("%v have ended and were not reaped", zombies)
	}
	ok(t, a.CloseInput(t.Context()))
	<-a.Done()
	if st, err = a.Status(t.Context()); err != nil || st.Exit.Code != 0 || st.Exit.Swept != 0 || st.Exit.Ordered {
		t.Errorf("%+v, %v", st.Exit, err)
	}
	waitGone(t, st.ShimPID)
	if pid = proxyPID(t, folder); shim.LifeOf(pid, 0) != shim.Lives {
		t.Error("the proxy has ended with the session that started it")
	}
}

// waits reports whether a connection of the session waits at a socket: the kernel counts them.
func waits(t *testing.T, st shim.Status) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(st.AgentPID) + "/net/tcp")
	ok(t, err)
	return slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
		f := strings.Fields(line)
		return len(f) > 4 && f[3] == "0A" && !strings.HasSuffix(f[4], ":00000000")
	})
}

// zombiesOf are the children of a process that have ended.
func zombiesOf(t *testing.T, parent int) (found []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	ok(t, err)
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it is gone
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[0] == "Z" && f[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			found = append(found, pid)
		}
	}
	return found
}

// TestShortSession: the end of a session does not wait for the proxy that it has started, which serves the next one.
func TestShortSession(t *testing.T) {
	m := inMachine(t)
	if m == nil {
		return
	}
	folder := filepath.Join(t.TempDir(), "proxy")
	endProxy(t, folder)
	pid := 0
	for range 3 {
		s := m.start(t, folder, []string{"curl", "-sSf", page}, proxied()...)
		if out := s.output(t); out != "page of "+allowed+"\n" {
			t.Error(out)
		}
		if st, err := s.Status(t.Context()); err != nil || st.Exit.Swept != 0 || st.Exit.Code != 0 {
			t.Errorf("%+v, %v", st.Exit, err)
		}
		next := proxyPID(t, folder)
		if pid != 0 && next != pid {
			t.Error("another proxy serves the next session")
		}
		pid = next
	}
	m.start(t, folder, []string{"true"}).output(t) // it ends before it is registered, or after
	if next := proxyPID(t, folder); next != pid {
		t.Error("a session that ended at once has ended the proxy")
	}
}

// TestShimKilled: what is left of a session whose shim is killed is ended, and the proxy goes on.
func TestShimKilled(t *testing.T) {
	m := inMachine(t)
	if m == nil {
		return
	}
	folder := filepath.Join(t.TempDir(), "proxy")
	endProxy(t, folder)
	a := m.startAsking(t, folder)
	a.reaches(t)
	st, err := a.Status(t.Context())
	ok(t, err)
	pid := proxyPID(t, folder)
	ok(t, syscall.Kill(st.ShimPID, syscall.SIGKILL))
	<-a.Done()
	waitGone(t, st.AgentPID)
	if next := proxyPID(t, folder); next != pid {
		t.Error("the proxy has ended with the shim")
	}
	if left, err := shim.Strays(t.Name()); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
