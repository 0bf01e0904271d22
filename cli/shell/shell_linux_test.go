package shell

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

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	_ "github.com/fairlead-dev/fairlead/process/proxy" // runs in a process of this binary
	"github.com/fairlead-dev/fairlead/process/proxy/outlet"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/read/view"
)

func TestMain(m *testing.M) {
	sandbox.Intercept()
	os.Exit(m.Run())
}

// In each kind of view the command writes inside and not outside, and its exit code, its streams and its lock are as they should be.
func TestStart(t *testing.T) {
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	kinds := map[string]sandbox.Ability{"by Landlock": {By: sandbox.ByLandlock}}
	if can := sandbox.Abilities(); can.By == sandbox.ByNamespaces {
		kinds["by namespaces"] = can
	}
	for name, can := range kinds {
		t.Run(name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for p := base; p != "/tmp" && p != "/"; p = filepath.Dir(p) {
				_ = os.Chmod(p, 0o755) // root's program in a view is another user
			}
			inside, home := filepath.Join(base, "inside"), filepath.Join(base, "home")
			for _, dir := range []string{inside, home, filepath.Join(base, "shell")} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			v := can.Apply(sandbox.View{
				Dir: inside, Home: home, Temp: home,
				Places: []sandbox.Place{{Path: inside, Access: sandbox.Write}},
			})
			s := view.Shell{
				Dir: inside, View: string(encode.JSON(v)), Lock: filepath.Join(base, "shell", "lock"), Made: filepath.Join(base, "made"),
				Env: []string{"PATH=" + os.Getenv("PATH"), "GIVEN=given"},
			}
			var out, errs bytes.Buffer
			a := &cli.App{In: strings.NewReader("typed\n"), Out: &out, Err: &errs}
			script := fmt.Sprintf(`read line; echo "$line $GIVEN"; pwd; echo mine > mine; echo x > %s/outside; exit 5`, base)
			code, err := start(a, s, []string{"sh", "-c", script})
			if code != 5 || err != nil || out.String() != "typed given\n"+inside+"\n" {
				t.Errorf("%d, %v: %s%s", code, err, &out, &errs)
			}
			if text, err := os.ReadFile(filepath.Join(inside, "mine")); err != nil || string(text) != "mine\n" {
				t.Errorf("inside is written: %q, %v", text, err)
			}
			if _, err := os.Lstat(filepath.Join(base, "outside")); err == nil {
				t.Error("outside was written")
			}
			lock, err := os.Open(s.Lock)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
				t.Errorf("the lock is held after the end: %v", err)
			}
		})
	}
}

// A command in a view with a network of its own reaches what its rules allow, and what it leaves ends with it.
func TestStartNetwork(t *testing.T) {
	can := sandbox.Abilities()
	if !can.Network {
		t.Skip(can.Why)
	}
	base, err := os.MkdirTemp("", "fl") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	t.Setenv(runtimedir.Var, base)
	if err := os.Mkdir(filepath.Join(base, "shell"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a page") })}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	port := l.Addr().(*net.TCPAddr).Port
	to := spawn.Network{Folder: filepath.Join(base, "proxy"), Agent: "coder", Rules: network.Rules{
		Hosts: []network.Host{{Name: "127.0.0.2", Port: port, Named: true}},
	}}
	v := can.Apply(sandbox.View{Network: sandbox.InsideOf(to.Rules)})
	s := view.Shell{
		Dir: "/tmp", View: string(encode.JSON(v)), Lock: filepath.Join(base, "shell", "lock"), Made: filepath.Join(base, "made"),
		Env: outlet.Environment([]string{"PATH=" + os.Getenv("PATH")}), Network: string(encode.JSON(to)),
	}
	var out, errs bytes.Buffer
	a := &cli.App{In: strings.NewReader(""), Out: &out, Err: &errs}
	script := fmt.Sprintf(`curl -sSf http://127.0.0.2:%d/; curl -s --noproxy '*' http://127.0.0.2:%d/; sleep 600 > /dev/null 2>&1 & exit 6`, port, port)
	code, err := start(a, s, []string{"sh", "-c", script})
	if code != 6 || err != nil || out.String() != "a page\n" {
		t.Errorf("%d, %v: %s%s", code, err, &out, &errs)
	}
	c, err := wire.Connect(t.Context(), to.Folder, wire.RoleWatcher, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = syscall.Kill(c.PID, syscall.SIGTERM)
	for err == nil {
		_, _, err = c.Receive()
	}
}
