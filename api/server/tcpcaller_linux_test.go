package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/machine"
)

const (
	askPortVar  = "FAIRLEAD_TEST_PORT"
	askTokenVar = "FAIRLEAD_TEST_TOKEN"
)

// X10 over the port: an agent can read the token, and it gives itself no orders for that. Who is in no
// session may.
func TestNobodyReleasesHimselfOverThePort(t *testing.T) {
	if url := os.Getenv(askPortVar); url != "" {
		askOverPort(t, url)
		return
	}
	s := serve(t)
	dir, err := realDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(dir))
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `env -u FAIRLEAD_MARK "$0" -test.run='^TestNobodyReleasesHimselfOverThePort$' -test.v; exit $?`, os.Args[0])
	cmd.Env = append(os.Environ(), askPortVar+"="+s.url, askTokenVar+"="+testToken, "FAIRLEAD_MARK="+hex.EncodeToString(sum[:8])+".coder-17")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.Join(s.fake.orders, "|"); got != `agent coder: hold true ""` {
		t.Errorf("orders: %s", got)
	}
	s.want(t, 200, "POST", "/api/v1/unhold", `{}`) // a person, over the same door
	if got := s.fake.orders[len(s.fake.orders)-1]; !strings.HasPrefix(got, "human ") {
		t.Errorf("a person's order: %s", got)
	}
}

func askOverPort(t *testing.T, url string) {
	for path, want := range map[string]int{"release": 409, "down": 409, "team/sleep": 409, "hold": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/"+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+os.Getenv(askTokenVar))
		req.Header.Set("Content-Type", "application/json")
		resp, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || want == 409 && !strings.Contains(string(text), "coder-17") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}

// A connection whose process cannot be found may be an agent's; one from another host is not.
func TestUnseenOverThePort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	taken, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	port := portCaller(taken, t.TempDir())
	if is := port.seen(); is.session != "" || is.unseen || is.who.PID != os.Getpid() {
		t.Errorf("we ask: %+v", is)
	}
	_ = dialed.Close()
	ctx := context.WithValue(t.Context(), callerKey{}, &caller{port: port})
	var refused *machine.Refusal
	if err := identity(ctx).MayOrder("down", ""); !errors.As(err, &refused) || refused.Row != "X10" {
		t.Errorf("nobody holds the other end any more: %v", err)
	}
	elsewhere := *port
	elsewhere.client = netip.MustParseAddrPort("192.0.2.1:1234")
	if is := elsewhere.seen(); is.unseen || is.session != "" {
		t.Errorf("nobody on this machine has that address: %+v", is)
	}
	_ = taken.Close()
}

func TestKernelAddr(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1D2A": "127.0.0.1:7466", "00000000000000000000000001000000:0050": "[::1]:80",
		"0000000000000000FFFF00000100007F:1D2A": "127.0.0.1:7466",
	} {
		if got := kernelAddr(text); got.String() != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", ":", "0100007F", "01:0050", "0100007F:FFFFF", "zz00007F:0050"} {
		if got := kernelAddr(text); got.IsValid() {
			t.Errorf("%q is %s", text, got)
		}
	}
}

// What it costs to look who asks over the port: an order's time beside that of a question.
func BenchmarkWhoAsks(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer dialed.Close()
	taken, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer taken.Close()
	port := portCaller(taken, b.TempDir())
	for b.Loop() {
		if port.seen().unseen {
			b.Fatal("not seen")
		}
	}
	b.ReportMetric(float64(len(processes())), "processes")
}
