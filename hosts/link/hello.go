package link

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/clip"

	"github.com/nats-io/nkeys"
)

const (
	toLeader = "fairlead-to-leader" // ALPN of a connection with requests of the host, before the protocol: see offers
	toHost   = "fairlead-to-host"   // and of one with those of the leader

	greetWithin  = 10 * time.Second // from the first byte to the answer
	signatureLen = 64               // bytes of an nkey's signature
	answerMax    = 2 << 10          // bytes of the answer
	whyMax       = 300              // bytes of a reason
)

// Refused says that the team does not take this host, now or later.
type Refused struct{ Team, Why string }

func (r *Refused) Error() string { return "team " + r.Team + " refuses this host: " + r.Why }

// offer is the name by ALPN of a kind of connection with a protocol; 0: this program's.
func offer(kind string, speaks wire.Protocol) string {
	return kind + "/" + cmp.Or(speaks, wire.Own()).String()
}

// offered is what a name by ALPN says; false: it is another one.
func offered(name string) (kind, protocol string, ok bool) {
	kind, protocol, ok = strings.Cut(name, "/")
	return kind, protocol, ok && (kind == toLeader || kind == toHost)
}

const comeBack = "; to come back, it needs a new invitation: run `host invite` on the leader, and `host join` here"

// challenge is what a host signs. No other connection has the same.
func challenge(conn *tls.Conn) ([]byte, error) {
	state := conn.ConnectionState()
	secret, err := state.ExportKeyingMaterial("EXPORTER-fairlead-link", nil, 32)
	return append([]byte("fairlead link "), secret...), err
}

// prove sends the second proof of a host.
func prove(conn *tls.Conn, id *ca.Identity) error {
	text, err := challenge(conn)
	if err != nil {
		return err
	}
	signature, err := id.SignNonce(text)
	if err == nil {
		_, err = conn.Write(signature)
	}
	return err
}

// proven reports whether a host has signed the challenge with its key.
func proven(conn *tls.Conn, key string, signature []byte) bool {
	text, err := challenge(conn)
	if err != nil {
		return false
	}
	public, err := nkeys.FromPublicKey(key)
	return err == nil && public.Verify(text, signature) == nil
}

// writeAnswer says whether a connection is taken; nil: it is. The answer is its length in two bytes, and a problem.
func writeAnswer(w io.Writer, p *wire.Problem) error {
	var text []byte
	if p != nil {
		text, _ = json.Marshal(wire.Problem{Code: p.Code, Why: clip.To(p.Why, whyMax)}) // two strings
	}
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...)) //nolint:gosec // whyMax bounds it
	return err
}

// readAnswer reads what writeAnswer wrote, and not a byte more.
func readAnswer(r io.Reader, team string) error {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return fmt.Errorf("the leader closed the connection without an answer: %w", err)
	}
	n := binary.BigEndian.Uint16(size[:])
	if n == 0 {
		return nil
	}
	if n > answerMax {
		return fmt.Errorf("the leader answers with %d bytes; use the same version of Fairlead on both hosts", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return fmt.Errorf("the leader closed the connection within its answer: %w", err)
	}
	var p wire.Problem
	if err := wire.Read(bytes.NewReader(text), &p); err != nil {
		return fmt.Errorf("the leader answers in another format; use the same version of Fairlead on both hosts: %w", err)
	}
	p.Why = clip.To(p.Why, whyMax)
	if p.Code == wire.Refused {
		return &Refused{team, p.Why}
	}
	return &p
}
