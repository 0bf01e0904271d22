package caller

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/process/shim"
)

// A caller that has exited when its order is handled has no identity.
func TestGoneCaller(t *testing.T) {
	this, ok := shim.BirthOf(os.Getpid())
	if !ok {
		t.Fatal("this process is not in the process table")
	}
	for who, refused := range map[shim.Birth]bool{
		this: false, {PID: this.PID, Start: this.Start + 1}: true, {PID: 1 << 30, Start: 1}: true,
	} {
		if err := In(With(t.Context(), Caller{Who: who})).Identity().MayOrder("down", ""); (err != nil) != refused {
			t.Errorf("%v: %v, want a refusal: %v", who, err, refused)
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
	port := overTCP(taken, t.TempDir())
	if is := port.seen(); is.Session != "" || is.Unseen || is.Who.PID != os.Getpid() {
		t.Errorf("we ask: %+v", is)
	}
	_ = dialed.Close()
	var refused *table.Refusal
	if err := In(WithConn(t.Context(), taken, port.dir)).Identity().MayOrder("down", ""); !errors.As(err, &refused) ||
		refused.Row != "X10" {
		t.Errorf("no process holds the other end: %v", err)
	}
	elsewhere := *port
	elsewhere.client = netip.MustParseAddrPort("192.0.2.1:1234")
	if is := elsewhere.seen(); is.Unseen || is.Session != "" {
		t.Errorf("no process on this machine has that address: %+v", is)
	}
	_ = taken.Close()
}

// A request asks who it is from more than once, and the processes are read once.
func TestLookedUpOnce(t *testing.T) {
	looks := 0
	ctx := recordOf(func() Caller { looks++; return Caller{Session: "coder-17"} }).in(t.Context())
	for range 2 { // two requests over one connection
		request := Once(ctx)
		for range 3 {
			if is := IdentityIn(request); is.Session != "coder-17" || In(request).Session != "coder-17" {
				t.Errorf("the caller is %+v", is)
			}
		}
	}
	if looks != 2 {
		t.Errorf("the caller of two requests was looked up %d times", looks)
	}
}

// A request looks once whether its caller still runs; the next request over the connection looks again.
func TestIdentityOnce(t *testing.T) {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	is, _ := shim.BirthOf(child.Process.Pid)
	ctx := With(t.Context(), Caller{Who: is})
	request := Once(ctx)
	before := IdentityIn(request)
	_ = child.Process.Kill()
	_ = child.Wait()
	if after := IdentityIn(request); before.Unknown || after.Unknown {
		t.Errorf("one request has two identities: %+v, then %+v", before, after)
	}
	if next := IdentityIn(Once(ctx)); !next.Unknown {
		t.Errorf("the caller has ended, and the next request is of %+v", next)
	}
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
	port := overTCP(taken, b.TempDir())
	for b.Loop() {
		if port.seen().Unseen {
			b.Fatal("not seen")
		}
	}
	b.ReportMetric(float64(len(processes())), "processes")
}
