package ca

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
)

var start = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

func at(now time.Time) func() time.Time { return func() time.Time { return now } }

// team makes an authority and its first host, an engine host.
func team(t *testing.T, name, hostName string) (*Authority, *Identity) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cluster")
	a, err := Create(dir, name, start)
	if err != nil {
		t.Fatal(err)
	}
	return a, join(t, a, dir, hostName, cluster.Engine, at(start))
}

// join gives a host a certificate for its name and for loopback.
func join(t *testing.T, a *Authority, dir, name string, role cluster.Role, now func() time.Time) *Identity {
	t.Helper()
	id, err := NewIdentity(dir, name, now)
	if err != nil {
		t.Fatal(err)
	}
	request, err := id.Request([]string{name, "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := a.Sign(request, name, role, net.IP.IsLoopback, start)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Install(cert, a.PEM()); err != nil {
		t.Fatal(err)
	}
	return id
}

// shake connects two ends on loopback, and returns the errors of both.
func shake(t *testing.T, server, client *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			_, err = conn.Read(make([]byte, 1))
		}
		done <- err
	}()
	conn, err := tls.Dial("tcp", l.Addr().String(), client)
	if err == nil {
		_, err = conn.Write([]byte("x"))
		conn.Close()
	}
	return <-done, err
}

// server is a client's configuration for one name of the server.
func server(config *tls.Config, name string) *tls.Config {
	config.ServerName = name
	return config
}

func TestFiles(t *testing.T) {
	a, id := team(t, "web", "a")
	for _, name := range []string{authorityKeyFile, authorityFile, keyFile, certificateFile, seedFile} {
		info, err := os.Stat(filepath.Join(id.dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	if info, err := os.Stat(id.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	b, err := Load(id.dir)
	if err != nil || b.Team != "web" || b.Fingerprint() != a.Fingerprint() {
		t.Fatalf("%v %v", b, err)
	}
	again, err := LoadIdentity(id.dir, at(start))
	if err != nil || again.Name != "a" || again.PublicKey() != id.PublicKey() || again.Team() != "web" ||
		again.Authority() != a.Fingerprint() {
		t.Fatalf("%v %v", again, err)
	}
	if server, client := shake(t, id.TLS(nil), server(again.TLS(nil), "a")); server != nil || client != nil {
		t.Error(server, client)
	}

	seed, _ := id.nkey.Seed()
	key, _ := os.ReadFile(filepath.Join(id.dir, keyFile))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		text := fmt.Sprintf(verb+verb, id, a)
		if strings.Contains(text, string(seed)) || strings.Contains(text, string(key)) || len(text) > 100 {
			t.Errorf("%s shows %s", verb, text)
		}
	}
	if err := Forget(id.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadIdentity(id.dir, at(start)); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "belongs to no cluster") {
		t.Error(err)
	}
	if _, err := Load(id.dir); err != nil {
		t.Error("the authority is gone with the host", err)
	}
}

// TestDamagedFiles damages one file after the other.
func TestDamagedFiles(t *testing.T) {
	_, other := team(t, "other", "a")
	for _, c := range []struct {
		name, want string
		damage     func(dir string) error
	}{
		{"key open to others", "other users can read", func(dir string) error { return os.Chmod(filepath.Join(dir, keyFile), 0o644) }},
		{"authority open to others", "chmod 600", func(dir string) error { return os.Chmod(filepath.Join(dir, authorityKeyFile), 0o640) }},
		{
			"empty certificate", "is not a certificate",
			func(dir string) error { return os.WriteFile(filepath.Join(dir, certificateFile), nil, 0o600) },
		},
		{"key cut off", "is not a key", func(dir string) error { return os.Truncate(filepath.Join(dir, keyFile), 90) }},
		{"huge key", "should have 1 KiB", func(dir string) error { return os.Truncate(filepath.Join(dir, keyFile), 1<<30) }},
		{"seed cut off", "is not a key", func(dir string) error { return os.Truncate(filepath.Join(dir, seedFile), 20) }},
		{"another authority", "another", func(dir string) error { return swap(other.dir, dir, authorityFile) }},
		{"another host's key", "does not belong to its key", func(dir string) error { return swap(other.dir, dir, keyFile) }},
		{"another authority's key", "do not belong together", func(dir string) error { return swap(other.dir, dir, authorityKeyFile) }},
		{
			"no key of the authority", "from another engine host",
			func(dir string) error { return os.Remove(filepath.Join(dir, authorityKeyFile)) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, id := team(t, "web", "a")
			if err := c.damage(id.dir); err != nil {
				t.Fatal(err)
			}
			_, first := LoadIdentity(id.dir, at(start))
			_, second := Load(id.dir)
			if err := errors.Join(first, second); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func swap(from, to, name string) error {
	text, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name), text, 0o600)
}

func TestRefusedNames(t *testing.T) {
	a, id := team(t, "web", "a")
	for _, name := range []string{"", "A", "a.b", "a b", "ä", strings.Repeat("a", 64)} {
		if _, err := Create(t.TempDir(), name, start); err == nil {
			t.Errorf("a team is called %q", name)
		}
		if _, err := NewIdentity(t.TempDir(), name, at(start)); err == nil {
			t.Errorf("a host is called %q", name)
		}
	}
	if _, err := Create(id.dir, "web2", start); err == nil || !strings.Contains(err.Error(), "leave that first") {
		t.Error(err)
	}
	if _, err := NewIdentity(id.dir, "b", at(start)); err == nil || !strings.Contains(err.Error(), "cluster of team web as a") {
		t.Error(err)
	}
	fresh, err := NewIdentity(t.TempDir(), "b", at(start))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		names []string
		now   time.Time
		as    string
		want  string
	}{
		{"the name of another host", []string{"a"}, start, "b", "the name b"},
		{"a suffix of another", []string{"bad.b"}, start, "b", "begin with b."},
		{"another address", []string{"10.0.0.1"}, start, "b", "does not connect from there"},
		{"for another host", nil, start, "a", "names another host"},
		{"too many names", strings.Split(strings.Repeat("b ", 17), " ")[:17], start, "b", "not valid"},
		{"an old authority", nil, start.Add(9*365*24*time.Hour + 24*time.Hour), "b", "too early"},
	} {
		request, err := fresh.Request(c.names)
		if err == nil {
			_, err = a.Sign(request, c.as, cluster.Engine, net.IP.IsLoopback, c.now)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	request, err := fresh.Request([]string{"b", "b.lan", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Sign(request, "b", cluster.Engine, net.IP.IsLoopback, start); err != nil {
		t.Error(err)
	}
}

// TestTLS connects ends that do not fit.
func TestTLS(t *testing.T) {
	a, first := team(t, "web", "a")
	_, same := team(t, "web", "a")
	_, other := team(t, "shop", "a")
	worker := join(t, a, t.TempDir(), "w", cluster.Host, at(start))
	if leaf := worker.cert.Load().Leaf; len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth ||
		len(leaf.DNSNames)+len(leaf.IPAddresses) > 0 || leaf.IsCA {
		t.Errorf("a plain host's certificate is good for %v %v", leaf.ExtKeyUsage, leaf.DNSNames)
	}
	for _, c := range []struct {
		name   string
		server *tls.Config
		client *tls.Config
		want   string // of the client's error; empty: both connect
		now    time.Time
	}{
		{"a host", first.TLS(nil), server(worker.TLS(nil), "a"), "", start},
		{"by address", first.TLS(nil), server(worker.TLS(nil), "127.0.0.1"), "", start},
		{
			"wrong name", first.TLS(nil), server(worker.TLS(nil), "build.lan"),
			`its certificate is not for "build.lan"; use one of its names: [a] [127.0.0.1]`, start,
		},
		{"another team", other.TLS(nil), server(worker.TLS(nil), "a"), "not from the team's certificate authority", start},
		{"another team of this name", same.TLS(nil), server(worker.TLS(nil), "a"), "another team that is also called web", start},
		{"a host that poses as a server", worker.TLS(nil), server(first.TLS(nil), "w"), "", start},
		{
			"years behind", first.TLS(nil), late(server(worker.TLS(nil), "a"), start.AddDate(-7, 0, 0)), "set the clock right",
			start.AddDate(-7, 0, 0),
		},
		{
			"years ahead", first.TLS(nil), late(server(worker.TLS(nil), "a"), start.AddDate(3, 0, 0)), "set the clock if it is wrong",
			start.AddDate(3, 0, 0),
		},
		{"pinned", first.JoinTLS(), PinnedTLS(a.Fingerprint(), "a", "web", at(start)), "", start},
		{"pinned, wrong name", first.JoinTLS(), PinnedTLS(a.Fingerprint(), "b", "web", at(start)), "its certificate is not for", start},
		{"pinned, another team", other.JoinTLS(), PinnedTLS(a.Fingerprint(), "a", "web", at(start)), "ask for a new invitation", start},
		{"pinned, another team of this name", same.JoinTLS(), PinnedTLS(a.Fingerprint(), "a", "web", at(start)), "also called web", start},
		{"pinned, a host poses as the listener for joins", worker.JoinTLS(), PinnedTLS(a.Fingerprint(), "w", "web", at(start)), "", start},
		{
			"pinned, years behind", first.JoinTLS(), PinnedTLS(a.Fingerprint(), "a", "web", at(start.AddDate(-7, 0, 0))),
			"set the clock right", start,
		},
	} {
		_, err := shake(t, c.server, c.client)
		err = Explain(err, "web", c.now)
		switch poses := strings.Contains(c.name, "poses"); {
		case poses &&
			(err == nil ||
				!strings.Contains(err.Error(), "incompatible key usage") && !strings.Contains(err.Error(), "is not valid for any names") &&
					!strings.Contains(err.Error(), "is not for")):
			t.Errorf("%s: %v", c.name, err)
		case !poses && (err == nil) != (c.want == ""), err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	none := server(worker.TLS(nil), "a")
	none.GetClientCertificate = nil
	if err, _ := shake(t, first.TLS(nil), none); err == nil {
		t.Error("a server takes a client without a certificate")
	}
	if err, _ := shake(t, first.TLS(nil),
		server(&tls.Config{
			RootCAs: none.RootCAs, Time: at(start), MinVersion: tls.VersionTLS13,
			GetClientCertificate: other.TLS(nil).GetClientCertificate,
		}, "a")); err == nil {
		t.Error("a server takes a certificate of another team")
	}
	if err, _ := shake(t, first.TLS(func(name string) error { return fmt.Errorf("no %s", name) }),
		server(worker.TLS(nil), "a")); err == nil || err.Error() != "no w" {
		t.Error("a peer that verify refuses", err)
	}
}

func late(config *tls.Config, now time.Time) *tls.Config {
	config.Time = at(now)
	return config
}

// A certificate is renewed when a third of its time is left, for the same names, by its own host only.
func TestRenewal(t *testing.T) {
	a, _ := team(t, "web", "a")
	now := start
	id := join(t, a, t.TempDir(), "b", cluster.Engine, func() time.Time { return now })
	if id.RenewalDue() {
		t.Error("due at once")
	}
	if now = start.AddDate(0, 8, 10); !id.RenewalDue() {
		t.Error("not due after eight months")
	}
	certificate, request, err := id.Next()
	if err != nil {
		t.Fatal(err)
	}
	member := cluster.Member{Name: "b", Role: cluster.Engine}
	next, err := a.Renew(certificate, request, member, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Install(next, nil); err != nil || !id.Expires().After(start.AddDate(1, 7, 0)) || id.RenewalDue() {
		t.Error(err, id.Expires())
	}
	if leaf := id.cert.Load().Leaf; len(leaf.IPAddresses) != 1 || len(leaf.DNSNames) != 1 {
		t.Error(leaf.DNSNames, leaf.IPAddresses)
	}
	if again, err := LoadIdentity(id.dir, id.now); err != nil || !again.Expires().Equal(id.Expires()) {
		t.Error(err)
	}
	more, err := id.Request([]string{"b", "10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := team(t, "web", "b")
	for name, try := range map[string]func() ([]byte, error){
		"more names":        func() ([]byte, error) { return a.Renew(certificate, more, member, now) },
		"another host":      func() ([]byte, error) { return a.Renew(certificate, request, cluster.Member{Name: "a"}, now) },
		"another authority": func() ([]byte, error) { return b.Renew(certificate, request, member, now) },
		"no certificate":    func() ([]byte, error) { return a.Renew(nil, request, member, now) },
		"no request":        func() ([]byte, error) { return a.Renew(certificate, []byte("x"), member, now) },
	} {
		if _, err := try(); err == nil {
			t.Errorf("%s is certified", name)
		}
	}
	if err := id.Install(mustSign(t, b, request, "b"), nil); err == nil {
		t.Error("a certificate of another authority is taken")
	}
	if err := id.CheckClock(); err != nil {
		t.Error(err)
	}
	if now = start.AddDate(30, 0, 0); id.CheckClock() == nil {
		t.Error("a certificate that ended is taken")
	}
}

func mustSign(t *testing.T, a *Authority, request []byte, name string) []byte {
	t.Helper()
	cert, err := a.Sign(request, name, cluster.Host, nil, start)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestExplain(t *testing.T) {
	for err, want := range map[error]string{
		&net.OpError{Err: syscall.EADDRINUSE}:                 "choose another port",
		&fs.PathError{Op: "write", Err: syscall.ENOSPC}:       "the disk is full",
		&net.OpError{Err: syscall.ECONNREFUSED}:               "no program listens there",
		&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}: "does not answer",
		errors.New("another one"):                             "another one",
	} {
		if got := Explain(err, "web", start); got == nil || !errors.Is(got, err) || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if Explain(nil, "web", start) != nil {
		t.Error("an explanation of nothing")
	}
}

func FuzzParseRequest(f *testing.F) {
	id, err := NewIdentity(f.TempDir(), "b", at(start))
	if err != nil {
		f.Fatal(err)
	}
	good, err := id.Request([]string{"b", "127.0.0.1"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, der []byte) {
		csr, err := ParseRequest(der)
		if err != nil {
			return
		}
		if !bytes.Equal(csr.Raw, der) || csr.CheckSignature() != nil {
			t.Errorf("%x", der)
		}
	})
}
