package daemon

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// certificate asks for the next certificate of the host.
func (h *hostile) certificate(of *ca.Identity, names []string) (code int, text string) {
	h.t.Helper()
	present, _, err := of.Next()
	if err != nil {
		h.t.Fatal(err)
	}
	request, err := of.Request(names)
	if err != nil {
		h.t.Fatal(err)
	}
	body, err := json.Marshal(wire.CertificateIn{Certificate: string(present), Request: request})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.ask("POST", wire.CertificateRoute, string(body))
}

// TestHostileHostCertificates has a host ask for certificates, and come with wrong ones.
func TestHostileHostCertificates(t *testing.T) {
	h := newHostile(t)
	if code, text := h.certificate(h.c, nil); code == 200 {
		t.Errorf("a certificate of another host: %d %s", code, text)
	}
	if code, text := h.ask("POST", wire.CertificateRoute, `{"certificate":"x","request":"AAAA"}`); code == 200 {
		t.Errorf("a certificate for garbage: %d %s", code, text)
	}
	if code, text := h.ask("POST", wire.CertificateRoute, `{"certificate":"`+strings.Repeat("x", 64<<10)+`"}`); code == 200 {
		t.Errorf("a certificate beyond the limit: %d %s", code, text)
	}
	later := func() time.Time { return time.Now().Add(2 * 365 * 24 * time.Hour) }
	sign := func(by *ca.Authority, name string, now func() time.Time) *ca.Identity {
		t.Helper()
		id, err := ca.NewIdentity(t.TempDir(), name, now)
		if err != nil {
			t.Fatal(err)
		}
		request, err := id.Request(nil)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := by.Sign(request, name, cluster.Host, func(net.IP) bool { return false }, now())
		if err == nil {
			err = id.Install(cert, by.PEM())
		}
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	foreign, err := ca.Create(t.TempDir(), "web", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	mixed := t.TempDir()
	for _, name := range []string{"host.key", "host.crt", "authority.crt", "host.nk"} {
		from := h.cDir
		if name == "host.nk" {
			from = h.idDir
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(mixed, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stolen, err := ca.LoadIdentity(mixed, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var earlier []byte
	if taken, said := h.greets(h.id, toLeader, nil, &earlier); !taken {
		t.Fatalf("the host itself is refused: %s", said)
	}
	for name, c := range map[string]struct {
		id    *ca.Identity
		alpn  string
		proof []byte // nil: that of the connection
	}{
		"of another authority":                  {sign(foreign, "b", time.Now), toLeader, nil},
		"that is not valid yet":                 {sign(h.leads.lead.authority, "b", later), toLeader, nil},
		"of the team, with other keys":          {sign(h.leads.lead.authority, "b", time.Now), toLeader, nil},
		"of a host that never joined":           {sign(h.leads.lead.authority, "d", time.Now), toLeader, nil},
		"of the leader's name":                  {sign(h.leads.lead.authority, "a", time.Now), toLeader, nil},
		"of another host, without its second":   {stolen, toLeader, nil},
		"with the proof of a connection before": {h.id, toLeader, earlier},
		"with an empty proof":                   {h.id, toLeader, make([]byte, 64)},
		"with a protocol that is too old":       {h.id, "fairlead-to-leader/0", nil},
		"with a protocol of the future":         {h.id, "fairlead-to-leader/9", nil},
	} {
		if taken, said := h.greets(c.id, c.alpn, c.proof, nil); taken {
			t.Errorf("a certificate %s is taken", name)
		} else if said == "" {
			t.Errorf("a certificate %s: it is not told why", name)
		}
	}
}

// TestHostileHostIsRemoved has a host break its connections, ask for a server's certificate, and come again after it was removed.
func TestHostileHostIsRemoved(t *testing.T) {
	h := newHostile(t)
	if _, err := join(t, h.invite, "e"); err == nil {
		t.Error("an invitation is taken twice")
	}
	h.frames()
	h.conn = h.dial(h.id)
	if code, text := h.ask("GET", api.Base+"/agents", "", aPerson); code != 200 {
		t.Errorf("the host itself: %d %s", code, text)
	}
	if code, text := h.certificate(h.id, []string{"10.0.0.1", "leader.lan"}); code == 200 {
		var out wire.CertificateOut
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		if err := h.id.Install([]byte(out.Certificate), nil); err != nil {
			t.Fatal(err)
		}
		leaf := h.id.TLS(nil)
		got, err := leaf.GetClientCertificate(&tls.CertificateRequestInfo{})
		if err != nil || len(got.Leaf.IPAddresses)+len(got.Leaf.DNSNames) > 0 || len(got.Leaf.ExtKeyUsage) != 1 {
			t.Errorf("a host gets a server's certificate: %v, %+v", err, got.Leaf)
		}
	}
	// A host that is removed loses its connection, and is not taken again.
	if _, err := h.leads.Engine.Cluster.RemoveHost(t.Context(), change.Actor{Kind: "human", ID: "ann"}, "b"); err != nil {
		t.Fatal(err)
	}
	if err := wait.For(t, "the end of the connection", closed(h.conn.Done())); err != nil {
		t.Error(err)
	}
	if taken, said := h.greets(h.id, toLeader, nil, nil); taken || !strings.Contains(said, "it was removed") {
		t.Errorf("a host that was removed: %v %s", taken, said)
	}
}

func closed(done <-chan struct{}) <-chan error {
	is := make(chan error, 1)
	go func() { <-done; is <- nil }()
	return is
}

// toLeader is the name that a host of this protocol gives its connection.
var toLeader = "fairlead-to-leader/" + wire.Own().String()

// greets begins a connection as the protocol says, and returns whether the leader takes it, and what it says.
func (h *hostile) greets(id *ca.Identity, alpn string, proof []byte, made *[]byte) (taken bool, said string) {
	h.t.Helper()
	conn, said := h.handshake(id, alpn, proof, made)
	if conn == nil {
		return false, said
	}
	conn.Close()
	return said == "", said
}

func (h *hostile) handshake(id *ca.Identity, alpn string, proof []byte, made *[]byte) (*tls.Conn, string) {
	h.t.Helper()
	config := id.TLS(nil)
	config.NextProtos, config.InsecureSkipVerify = []string{alpn}, true
	conn, err := tls.Dial("tcp", h.leads.lead.is.Listen, config)
	if err != nil {
		return nil, err.Error()
	}
	if proof == nil {
		state := conn.ConnectionState()
		secret, err := state.ExportKeyingMaterial("EXPORTER-fairlead-link", nil, 32)
		if err == nil {
			proof, err = id.SignNonce(append([]byte("fairlead link "), secret...))
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
	if made != nil {
		*made = proof
	}
	_, _ = conn.Write(proof)
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		conn.Close()
		return nil, err.Error()
	}
	text, err := io.ReadAll(io.LimitReader(conn, int64(binary.BigEndian.Uint16(size[:]))))
	if err != nil {
		h.t.Fatal(err)
	}
	return conn, string(text)
}

// frames sends what no version of the protocol sends. The connection ends each time.
func (h *hostile) frames() {
	h.t.Helper()
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for name, text := range map[string]string{
		"text for frames":    strings.Repeat("GET / HTTP/1.1\r\n", 100),
		"a frame too long":   preface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01",
		"data of no stream":  preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x01\x00\x00\x00\x00\x00\x05x",
		"headers of garbage": preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x04\x01\x04\x00\x00\x00\x01\xff\xff\xff\xff",
	} {
		conn, said := h.handshake(h.id, toLeader, nil, nil)
		if conn == nil || said != "" {
			h.t.Fatalf("%s: %s", name, said)
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.SetReadDeadline(time.Now().Add(wait.Patience))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			h.t.Errorf("%s: the connection stays", name)
		}
		conn.Close()
	}
	plain, err := net.Dial("tcp", h.leads.lead.is.Listen)
	if err != nil {
		h.t.Fatal(err)
	}
	defer plain.Close()
	_, _ = plain.Write([]byte("POST " + api.Base + "/down HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"))
	_ = plain.SetReadDeadline(time.Now().Add(wait.Patience))
	text, err := io.ReadAll(io.LimitReader(plain, 1<<16))
	if errors.Is(err, os.ErrDeadlineExceeded) || bytes.Contains(text, []byte("HTTP/1.1 200")) {
		h.t.Errorf("without TLS: %v %q", err, text)
	}
}
