package invite

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
)

const (
	tokenBegin  = "fli1_" // another format gets another number
	tokenMax    = 4096    // characters; the labels make it longer or shorter
	hidden      = "[hidden]"
	secretBytes = 32
	idBytes     = 8
)

// Token is what a host needs to join. It prints as [hidden]; only Text returns it.
type Token struct {
	ID          string       `json:"id"`
	Team        string       `json:"team"`
	Address     string       `json:"address"` // of the server for joining
	Fingerprint string       `json:"ca"`
	Role        cluster.Role `json:"role"`
	Labels      []string     `json:"labels,omitempty"`
	Expires     time.Time    `json:"expires"`
	Root        string       `json:"root,omitempty"` // first commit of the team's repository; empty: it has none

	secret []byte
}

// wireToken is a token with its secret, as Text encodes it.
type wireToken struct {
	Token
	Secret []byte `json:"secret"`
}

// Format hides the token from all verbs of fmt.
func (Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the token from logs.
func (Token) LogValue() slog.Value { return slog.StringValue(hidden) }

// Text is the token as a person pastes it. It ends with a checksum, because texts are often copied in part.
func (t Token) Text() string {
	text, err := json.Marshal(wireToken{t, t.secret})
	if err != nil {
		panic(fmt.Sprintf("invite: encode a token: %v", err)) // it has only texts
	}
	text = binary.BigEndian.AppendUint32(text, crc32.ChecksumIEEE(text))
	return tokenBegin + base64.RawURLEncoding.EncodeToString(text)
}

// ParseToken reads a pasted token. Its error does not quote it.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	encoded, begins := strings.CutPrefix(text, tokenBegin)
	if !begins || len(text) > tokenMax {
		return Token{},
			fmt.Errorf("this is not an invitation: a token begins with %s; copy it from the output of `host invite`", tokenBegin)
	}
	damaged := errors.New("the token is not complete, or has a wrong character; copy all of it from the output of `host invite`")
	b, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(b) < 4 {
		return Token{}, damaged
	}
	body, sum := b[:len(b)-4], b[len(b)-4:]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return Token{}, damaged
	}
	var w wireToken
	if err := strict(body, &w); err != nil {
		return Token{}, errors.New("the token is of another version of Fairlead; use the same version on both hosts")
	}
	w.secret = w.Secret
	_, port, err := net.SplitHostPort(w.Address)
	if err != nil || port == "" || len(w.secret) != secretBytes || len(w.ID) != 2*idBytes || len(w.Fingerprint) != 64 ||
		!host.IsWord(w.Team) ||
		w.Role != cluster.Host && w.Role != cluster.Engine || wrongLabels(w.Labels) {
		return Token{}, errors.New("the token is of another version of Fairlead; use the same version on both hosts")
	}
	return w.Token, nil
}

// strict decodes one JSON value without unknown fields.
func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one value")
	}
	return nil
}
