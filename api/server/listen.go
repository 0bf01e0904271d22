package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
)

// Exposed says that an address is reachable from other machines.
type Exposed struct{ Addr string }

func (e *Exposed) Error() string {
	return fmt.Sprintf("fairlead does not listen on %s: other machines could reach it, which would need TLS and accounts; fairlead does not have them yet; "+
		"listen on 127.0.0.1, and connect from other machines through a tunnel: ssh -L 7466:127.0.0.1:7466 THIS-MACHINE", e.Addr)
}

// PortTaken says that another program listens on the port.
type PortTaken struct {
	Addr     string
	Fairlead bool   // it is the Fairlead of another repository
	Owner    string // the process and its folder; empty: not known
}

func (p *PortTaken) Error() string {
	_, port, _ := net.SplitHostPort(p.Addr)
	who := p.Owner
	if p.Fairlead {
		who = cmp.Or(who, "see `fairlead ps` there")
		return fmt.Sprintf("the fairlead of another repository listens on %s: %s; give this one its own port with `listen:` in fairlead.yaml, or any free one with --listen 127.0.0.1:0", p.Addr, who)
	}
	if who == "" {
		who = fmt.Sprintf("`lsof -i :%s` says which", port)
	}
	return fmt.Sprintf("another program listens on %s: %s; end it, set another port with `listen:` in fairlead.yaml, or take any free one with --listen 127.0.0.1:0", p.Addr, who)
}

// Listen opens HOST:PORT for TCP; port 0 takes any free port. The host must be loopback. The error
// is *Exposed if it is not, and *PortTaken if another program listens there.
func Listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: expected HOST:PORT, as in 127.0.0.1:7466", addr)
	}
	if !strings.EqualFold(host, "localhost") {
		ip, err := netip.ParseAddr(host)
		switch {
		case host == "" || err == nil && !ip.Unmap().IsLoopback():
			return nil, &Exposed{Addr: addr}
		case err != nil:
			return nil, fmt.Errorf("listen on %q: %q is not a loopback address of this machine; use 127.0.0.1:%s", addr, host, port)
		}
	}
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &PortTaken{Addr: addr, Fairlead: isFairlead(addr), Owner: caller.PortOwner(addr)}
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("listen on %s: %w; take a port above 1023", addr, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	if ip, ok := l.Addr().(*net.TCPAddr); !ok || !ip.IP.IsLoopback() { // "localhost" is defined in a file and may be another address
		l.Close()
		return nil, &Exposed{Addr: addr}
	}
	return l, nil
}

// isFairlead reports whether a Fairlead answers there. It says so to callers without a token, and
// nothing more.
func isFairlead(addr string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+addr+api.Base+"/status", nil)
	if err != nil {
		return false
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return strings.Contains(answer.Header.Get("WWW-Authenticate"), `realm="fairlead"`)
}
