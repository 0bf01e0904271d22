package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// mixed is the TLS key and certificate of one host's folder with the nkey of another one.
func mixed(t *testing.T, f *team, of, nkey string) *ca.Identity {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"host.key", "host.crt", "authority.crt", "host.nk"} {
		from := of
		if name == "host.nk" {
			from = nkey
		}
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	id, err := ca.LoadIdentity(dir, f.now)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(t *testing.T, f *team) *ca.Identity
		bad  bool // for good
		want string
	}{
		"never a member": {
			bad: true, want: "it was removed, or has left; to come back, it needs a new invitation: run `host invite`",
			make: func(t *testing.T, f *team) *ca.Identity {
				id := f.join("b", cluster.Host)
				f.remove("b")
				return id
			},
		},
		"joined anew": {bad: true, want: "its keys are not those of host b in the team", make: func(t *testing.T, f *team) *ca.Identity {
			id := f.join("b", cluster.Host)
			f.join("b", cluster.Host)
			return id
		}},
		"certificate and TLS key copied": {
			bad: true, want: "its keys are not those of host b in the team",
			make: func(t *testing.T, f *team) *ca.Identity {
				return mixed(t, f, f.dir(f.join("b", cluster.Host)), f.dir(f.join("c", cluster.Host)))
			},
		},
		"the leader's name": {
			bad: true, want: "the leader itself is host a",
			make: func(t *testing.T, f *team) *ca.Identity { return f.join("a", cluster.Host) },
		},
		"another team": {want: "is not from the team's certificate authority", make: func(t *testing.T, f *team) *ca.Identity {
			return newTeam(t, "shop").join("b", cluster.Host)
		}},
		"another team of the same name": {
			want: "the server belongs to another team that is also called web",
			make: func(t *testing.T, f *team) *ca.Identity {
				return newTeam(t, "web").join("b", cluster.Host)
			},
		},
		"expired": {want: "the certificate of b ended at", make: func(t *testing.T, f *team) *ca.Identity {
			id := f.join("b", cluster.Host)
			f.move(366 * 24 * time.Hour)
			return id
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newTeam(t, "web")
			h := f.listen(Options{ping: quiet})
			id := c.make(t, f)
			_, err := Dial(t.Context(), f.options(id, h.Address(), nil))
			var refused *Refused
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &refused) != c.bad {
				t.Error(err)
			}
			if _, _, err := h.Client("b"); err == nil {
				t.Error("the host has a connection")
			}
			replaced := f.listen(Options{Identity: h.o.Identity, ping: quiet, Confirmed: func() bool { return false }})
			if _, err := Dial(t.Context(), f.options(id, replaced.Address(), nil)); err == nil || errors.As(err, &refused) && c.bad {
				t.Errorf("a leader that another one may have replaced: %v", err)
			}
		})
	}
}

// TestLeaderRefusesCertificates is about a host that does not look at certificates itself.
func TestLeaderRefusesCertificates(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	h := f.listen(Options{ping: quiet})
	stranger := newTeam(t, "web").join("b", cluster.Host)
	config := stranger.TLS(nil)
	config.NextProtos, config.InsecureSkipVerify = []string{offer(toLeader, 0)}, true
	conn, err := tls.Dial("tcp", h.Address(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = prove(conn, stranger)
	err = explain(readAnswer(conn, "web"), stranger)
	if err == nil || !strings.Contains(err.Error(), "the leader refuses the certificate of this host") {
		t.Error(err)
	}
}

func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	h := f.listen(Options{ping: quiet})
	id := f.join("b", cluster.Host)
	_, port, err := net.SplitHostPort(h.Address())
	if err != nil {
		t.Fatal(err)
	}
	options := f.options(id, "localhost:"+port, nil)
	if _, err := Dial(t.Context(), options); err == nil || !strings.Contains(err.Error(), `its certificate is not for "localhost"`) {
		t.Error(err)
	}
	options.Addresses = func() []string { return nil }
	if _, err := Dial(t.Context(), options); err == nil || !strings.Contains(err.Error(), "no address of the leader is known") {
		t.Error(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	options.Addresses = func() []string { return []string{free.Addr().String()} }
	if _, err := Dial(t.Context(), options); err == nil || !strings.Contains(err.Error(), "no program listens there") {
		t.Error(err)
	}
	options.Addresses = func() []string { return []string{free.Addr().String(), h.Address()} }
	c, err := Dial(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	options.Addresses = func() []string { return []string{silent.Addr().String()} }
	if _, err := Dial(ctx, options); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Error(err)
	}
}

// TestGarbage sends to the port what a scanner sends, and then connects.
func TestGarbage(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	h := f.listen(Options{ping: quiet, Handler: http.HandlerFunc(echo)})
	id := f.join("b", cluster.Host)
	for name, bytes := range map[string][]byte{
		"nothing": nil, "http": []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "zeros": make([]byte, 1<<16),
		"half a hello": {22, 3, 1, 2, 0, 1, 0},
	} {
		conn, err := net.Dial("tcp", h.Address())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(bytes)
		if err := conn.(*net.TCPConn).CloseWrite(); err == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
		conn.Close()
		t.Log(name)
	}
	config := id.TLS(nil)
	for _, protocols := range [][]string{{offer(toLeader, 0)}, {"h2"}, nil} {
		config.NextProtos = protocols
		conn, err := tls.Dial("tcp", h.Address(), config)
		if err != nil {
			continue
		}
		if protocols == nil {
			_ = prove(conn, id)
		} else {
			_, _ = conn.Write(make([]byte, signatureLen))
		}
		if err := readAnswer(conn, "web"); err == nil || protocols == nil && !strings.Contains(err.Error(), "speaks protocol none") {
			t.Errorf("%v: %v", protocols, err)
		}
		conn.Close()
	}
	config.Certificates, config.GetClientCertificate, config.NextProtos = nil, nil, []string{offer(toHost, 0)}
	if conn, err := tls.Dial("tcp", h.Address(), config); err == nil {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a host without a certificate is answered")
		}
		conn.Close()
	}
	c := f.dial(id, h.Address(), nil)
	if got := text(t, c.Client, "/", "x"); got != "/ from b: x" {
		t.Error(got)
	}
}

// TestManyStrangers fills the places of connections that prove nothing.
func TestManyStrangers(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	h := f.listen(Options{ping: quiet})
	var strangers []net.Conn
	for range greetingMax {
		conn, err := net.Dial("tcp", h.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		strangers = append(strangers, conn)
	}
	more, err := net.Dial("tcp", h.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if _, err := more.Read(make([]byte, 1)); err == nil {
		t.Error("one more has an answer")
	}
	for _, conn := range strangers {
		conn.Close()
	}
	options := f.options(f.join("b", cluster.Host), h.Address(), nil)
	wait.Until(t, "a place for a host", func() bool {
		c, err := Dial(t.Context(), options)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func FuzzReadAnswer(f *testing.F) {
	for _, p := range []*wire.Problem{nil, {Code: wire.Refused, Why: "it was removed"}, {Code: wire.Failed, Why: "full"}} {
		var b bytes.Buffer
		if err := writeAnswer(&b, p); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte{255, 255, '{'})
	f.Add([]byte{0, 4, '{', '}', '{', '}'})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		err := readAnswer(r, "web")
		if read := len(b) - r.Len(); read > 2+answerMax {
			t.Errorf("%d bytes were read", read)
		}
		if taken := len(b) >= 2 && b[0] == 0 && b[1] == 0; (err == nil) != taken || taken && r.Len() != len(b)-2 {
			t.Errorf("%v", err)
		}
		if err != nil && len(err.Error()) > answerMax {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	})
}
