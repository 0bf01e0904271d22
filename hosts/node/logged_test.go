package node

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.Write(b)
}

func (l *lines) with(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.kept.String()) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}

// What a server that runs reports is in the log at its level.
func TestServerLevels(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	o, said := f.options(f.host("a", cluster.Engine)), &lines{}
	o.Log = slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := f.start(o).server
	for _, tt := range []struct {
		text string
		say  func(text string)
		want string // the level; empty: it is not logged
	}{
		{"one error", func(text string) { s.Errorf("%s", text) }, "ERROR"},
		{"two error", func(text string) { s.Errors(s, errors.New(text)) }, "ERROR"},
		{"three error", func(text string) { s.Errorc("context", errors.New(text)) }, "ERROR"},
		{"four error", func(text string) { s.Errorsc(s, "context", errors.New(text)) }, "ERROR"},
		{"five error", func(text string) { s.RateLimitErrorf("%s", text) }, "ERROR"},
		{"six fatal", func(text string) { s.Fatalf("%s", text) }, "ERROR"},
		{"one warning", func(text string) { s.Warnf("%s", text) }, "WARN"},
		{"two warning", func(text string) { s.RateLimitWarnf("%s", text) }, "WARN"},
		{"a notice", func(text string) { s.Noticef("%s", text) }, ""},
		{"for debugging", func(text string) { s.Debugf("%s", text) }, ""},
		{"a trace", func(text string) { s.Tracef("%s", text) }, ""},
	} {
		tt.say(tt.text)
		line := said.with(tt.text)
		if tt.want == "" && line != "" || tt.want != "" && !strings.Contains(line, "level="+tt.want+" ") {
			t.Errorf("%s: %q, want %s", tt.text, line, tt.want)
		}
	}
}

// What a program sends to a server is not in the log, whether the server knows the program or not: it may be a secret. The log says that it
// came.
func TestNoSecretInLog(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	f := newTeam(t, "web")
	o, said := f.options(f.host("a", cluster.Engine)), &lines{}
	o.Log = slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	n := f.start(o)
	b := f.host("b", cluster.Engine)
	for _, tt := range []struct{ name, send, want string }{
		{"a password", `CONNECT {"user":"` + secret + `","pass":"` + secret + `"}`, "authentication error"},
		{"a token", `CONNECT {"auth_token":"` + secret + `"}`, "authentication error"},
		{"a key", `CONNECT {"nkey":"` + secret + `","sig":"` + secret + `"}`, "authentication error"},
		{"a name", `CONNECT {"jwt":"` + secret + `","name":"` + secret + `"}`, "authentication error"},
		{"a CONNECT that ends early", `CONNECT {"pass":"` + secret + `"`, "unexpected end of JSON"},
		{"a message before CONNECT", "PUB " + secret + " 6\r\n" + secret, "authentication error"},
		{"no command, of a host of the team", "own " + secret, "parser ERROR"},
		{"a bad length, of a host of the team", "own PUB " + secret + " x", "processPub"},
		{"a long line, of a host of the team", "own PUB " + strings.Repeat(secret, 2000), "maximum control line"},
	} {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(n.Address(), "tls://"), b.TLS(nil))
		if err != nil {
			t.Fatal(err)
		}
		info := make([]byte, 4096)
		size, err := conn.Read(info)
		if err != nil {
			t.Fatal(err)
		}
		send, own := strings.CutPrefix(tt.send, "own ")
		if own {
			_, nonce, _ := strings.Cut(string(info[:size]), `"nonce":"`)
			nonce, _, _ = strings.Cut(nonce, `"`)
			signature, err := b.SignNonce([]byte(nonce))
			if err != nil {
				t.Fatal(err)
			}
			send = fmt.Sprintf(`CONNECT {"nkey":%q,"sig":%q}`, b.PublicKey(), base64.RawURLEncoding.EncodeToString(signature)) + "\r\n" +
				send
		}
		_, _ = conn.Write([]byte(send + "\r\n")) // the server may close it meanwhile
		wait.Until(t, tt.name+" is logged", func() bool { return said.with(tt.want) != "" })
		conn.Close()
	}
	if all := said.all(); strings.Contains(all, secret[:5]) {
		t.Errorf("a secret is in the log:\n%s", all)
	}
}
