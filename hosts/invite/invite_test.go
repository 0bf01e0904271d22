package invite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

var start = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

// clock is moved by a test.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *clock) move(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

// team has an open listener for joins on loopback.
type team struct {
	t         *testing.T
	clock     *clock
	authority *ca.Authority
	book      *Store
	path      string
	address   string
	port      *Port
	id        *ca.Identity     // of the leader
	log       *strings.Builder // read after close
	close     func()

	mu       sync.Mutex
	admitted []Joiner
	refuse   error
}

// newTeam makes the authority and the book. open opens the server for joining.
func newTeam(t *testing.T) *team {
	t.Helper()
	f := &team{t: t, clock: &clock{at: start}, log: &strings.Builder{}, path: filepath.Join(t.TempDir(), "book", "invitations.json")}
	var err error
	if err = os.Mkdir(filepath.Dir(f.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if f.book, err = OpenStore(f.path, f.clock.now); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if f.authority, err = ca.Create(dir, "web", start); err != nil {
		t.Fatal(err)
	}
	id := f.host("a", dir)
	request, err := id.Request([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := f.authority.Sign(request, "a", cluster.Engine, net.IP.IsLoopback, start)
	if err == nil {
		err = id.Install(cert, f.authority.PEM())
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address, f.port, f.id = l.Addr().String(), Share(l), id
	t.Cleanup(func() { l.Close() })
	f.close = func() {}
	f.invite(cluster.Host)
	d := &Server{
		Store: f.book, Authority: f.authority, Members: f, Servers: []string{"tls://a:4222"}, Admit: f.admit, Now: f.clock.now,
		Log: slog.New(slog.NewTextHandler(f.log, nil)),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, listener := make(chan error, 1), f.port.JoinListener()
	go func() { done <- d.Serve(ctx, listener, id.JoinTLS()) }()
	f.close = sync.OnceFunc(func() {
		cancel()
		if err := wait.For(t, "the end of the server for joining", done); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(f.close)
	return f
}

func (f *team) admit(_ context.Context, j Joiner) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return f.refuse
	}
	f.admitted = append(f.admitted, j)
	return nil
}

// Member is the membership: the hosts that were admitted.
func (f *team) Member(name string) (cluster.Member, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.admitted, func(j Joiner) bool { return j.Name == name })
	if at < 0 {
		return cluster.Member{}, false
	}
	return f.admitted[at].Member, true
}

func (f *team) invite(role cluster.Role) Token {
	f.t.Helper()
	token, err := f.book.Invite("human/ann", role, []string{"gpu"}, f.address, f.authority)
	if err != nil {
		f.t.Fatal(err)
	}
	return token
}

func (f *team) host(name, dir string) *ca.Identity {
	f.t.Helper()
	id, err := ca.NewIdentity(dir, name, f.clock.now)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

func (f *team) join(token Token, id *ca.Identity) (Joined, error) {
	address := ""
	if token.Role == cluster.Engine {
		address = "127.0.0.1:4222"
	}
	return Join(f.t.Context(), token, id, address, f.clock.now)
}

func TestJoin(t *testing.T) {
	f := newTeam(t)
	dir := t.TempDir()
	id := f.host("b", dir)
	token, err := ParseToken(" " + f.invite(cluster.Engine).Text() + "\n") // as a person pastes it
	if err != nil {
		t.Fatal(err)
	}
	if token.Team != "web" || token.Role != cluster.Engine || len(token.Labels) != 1 || !token.Expires.Equal(start.Add(15*time.Minute)) {
		t.Errorf("%s %s %v %v", token.Team, token.Role, token.Labels, token.Expires)
	}
	for range 2 { // the answer to the first may be lost
		joined, err := f.join(token, id)
		if err != nil || joined.Role != cluster.Engine || len(joined.Servers) != 1 {
			t.Fatalf("%+v %v", joined, err)
		}
	}
	want := Joiner{
		Member: cluster.Member{Name: "b", Role: cluster.Engine, Key: id.PublicKey()}, Labels: []string{"gpu"},
		Invited: "human/ann", Address: "127.0.0.1:4222",
	}
	if len(f.admitted) != 2 || fmt.Sprint(f.admitted[1]) != fmt.Sprint(want) {
		t.Errorf("%+v", f.admitted)
	}
	if own, err := ca.Load(dir); err != nil || own.Fingerprint() != f.authority.Fingerprint() {
		t.Errorf("an engine host cannot act as the authority: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "authority.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	plain := t.TempDir()
	if _, err := f.join(f.invite(cluster.Host), f.host("c", plain)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(plain, "authority.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a host that cannot lead has the key of the authority: %v", err)
	}
	if again, err := ca.LoadIdentity(dir, f.clock.now); err != nil || again.PublicKey() != id.PublicKey() ||
		again.Authority() != f.authority.Fingerprint() {
		t.Error(err)
	}
	f.close()
	stored, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := json.Marshal(token.secret)
	for _, text := range []string{string(stored), f.log.String()} {
		if strings.Contains(text, strings.Trim(string(secret), `"`)) || strings.Contains(text, token.Text()) {
			t.Error("a secret is on disk or in the log")
		}
	}
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// TestRefusedJoins is the table of bad input at the server for joining. Nothing is admitted.
func TestRefusedJoins(t *testing.T) {
	for _, c := range []struct {
		name, want string
		code       Code // empty: the server for joining did not answer
		edit       func(f *team, token *Token, id **ca.Identity)
	}{
		{
			"wrong secret", "does not belong to an invitation", WrongToken,
			func(_ *team, token *Token, _ **ca.Identity) { token.secret[0]++ },
		},
		{
			"wrong id", "does not belong to an invitation", WrongToken,
			func(_ *team, token *Token, _ **ca.Identity) { token.ID = "0123456789abcdef" },
		},
		{"expired", "has expired, 15 minutes after", Expired, func(f *team, token *Token, _ **ca.Identity) {
			f.clock.move(10 * time.Minute)
			f.invite(cluster.Host) // keeps the server for joining open
			f.clock.move(5 * time.Minute)
		}},
		{"expired, and the server for joining is closed", "the invitation expired at 2026-11-26T09:15:00Z", "", func(f *team, _ *Token, _ **ca.Identity) {
			f.close()
			f.clock.move(16 * time.Minute)
		}},
		{"used", "used by another host", Used, func(f *team, token *Token, _ **ca.Identity) {
			if _, err := f.join(*token, f.host("c", f.t.TempDir())); err != nil {
				f.t.Fatal(err)
			}
			f.admitted = nil
		}},
		{"refused by the team", "the team has 256 hosts", NotAdmit, func(f *team, _ *Token, _ **ca.Identity) {
			f.refuse = errors.New("the team has 256 hosts")
		}},
		{
			"the name is taken", "another host of the team is called b; choose another name", NotAdmit,
			func(f *team, _ *Token, _ **ca.Identity) {
				if _, err := f.join(f.invite(cluster.Host), f.host("b", f.t.TempDir())); err != nil {
					f.t.Fatal(err)
				}
			},
		},
		{"full disk", "free space on its disk and try again with the same token", NotStored, func(f *team, _ *Token, _ **ca.Identity) {
			if err := os.Rename(filepath.Dir(f.path), filepath.Dir(f.path)+"-gone"); err != nil { // no file can be made
				f.t.Fatal(err)
			}
		}},
		{"wrong authority", "ask for a new invitation", "", func(_ *team, token *Token, _ **ca.Identity) {
			token.Fingerprint = strings.Repeat("0", 64)
			token.Team = "shop"
		}},
		{
			"another team of this name", "also called web", "",
			func(_ *team, token *Token, _ **ca.Identity) { token.Fingerprint = strings.Repeat("0", 64) },
		},
		{"wrong name", `not for "localhost"; use one of its names: [] [127.0.0.1]`, "", func(_ *team, token *Token, _ **ca.Identity) {
			token.Address = strings.Replace(token.Address, "127.0.0.1", "localhost", 1)
		}},
		{
			"clock years behind", "set the clock right", "",
			func(f *team, _ *Token, _ **ca.Identity) { f.clock.move(-5 * 365 * 24 * time.Hour) },
		},
		{"no program", "no program listens there", "", func(f *team, _ *Token, _ **ca.Identity) { f.close(); f.port.Close() }},
		{"closed listener", "no invitation is open there", "", func(f *team, _ *Token, _ **ca.Identity) { f.close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newTeam(t)
			token := f.invite(cluster.Host)
			dir := t.TempDir()
			id := f.host("b", dir)
			c.edit(f, &token, &id)
			_, err := f.join(token, id)
			var refused *Refused
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if errors.As(err, &refused) != (c.code != "") || refused != nil && refused.Code != c.code {
				t.Errorf("%+v", refused)
			}
			if strings.Contains(err.Error(), token.Text()) {
				t.Error("the error has the token")
			}
			if _, err := ca.LoadIdentity(dir, f.clock.now); err == nil ||
				slices.ContainsFunc(f.admitted, func(j Joiner) bool { return j.Key == id.PublicKey() }) {
				t.Error("it has joined", f.admitted)
			}
			if c.code == NotStored || c.code == NotAdmit { // nothing is lost
				f.refuse = nil
				if err := os.Rename(filepath.Dir(f.path)+"-gone", filepath.Dir(f.path)); err != nil && c.code == NotStored {
					t.Fatal(err)
				}
				if _, err := f.join(token, f.host("c", t.TempDir())); err != nil { // it was not used
					t.Error(err)
				}
			}
		})
	}
}

// Two hosts join with one token at the same time: one is admitted, the other one gets the code.
func TestTwoJoinersOneToken(t *testing.T) {
	f := newTeam(t)
	token := f.invite(cluster.Host)
	const n = 6
	results := make(chan error, n)
	for i := range n {
		id := f.host(fmt.Sprintf("h%d", i), t.TempDir())
		go func() {
			_, err := f.join(token, id)
			results <- err
		}()
	}
	joined := 0
	for range n {
		err := wait.For(t, "an answer", results)
		var refused *Refused
		switch {
		case err == nil:
			joined++
		case !errors.As(err, &refused) || refused.Code != Used:
			t.Error(err)
		}
	}
	if joined != 1 || len(f.admitted) != 1 {
		t.Errorf("%d have joined: %+v", joined, f.admitted)
	}
	after, err := OpenStore(f.path, f.clock.now) // after a restart it is still used
	if err != nil {
		t.Fatal(err)
	}
	var refused *Refused
	if err := after.Use(token.ID, token.secret, "U", nil); !errors.As(err, &refused) || refused.Code != Used {
		t.Error(err)
	}
}

// The listener closes with the last invitation.
func TestDoorCloses(t *testing.T) {
	f := newTeam(t)
	f.close()
	f.port.Close()
	l, err := net.Listen("tcp", f.address)
	if err != nil {
		t.Fatal(err)
	}
	f.clock.move(15 * time.Minute)
	d := &Server{Store: f.book, Now: f.clock.now, Log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- d.Serve(t.Context(), l, nil) }()
	if err := wait.For(t, "the end of the server for joining", done); err != nil {
		t.Error(err)
	}
}

func TestStore(t *testing.T) {
	f := newTeam(t)
	f.close()
	for range openMax - 1 {
		f.invite(cluster.Host)
	}
	invite := func(role cluster.Role, labels []string, address string) string {
		_, err := f.book.Invite("human/ann", role, labels, address, f.authority)
		return fmt.Sprint(err)
	}
	for want, got := range map[string]string{
		"64 invitations are open":              invite(cluster.Host, nil, "a:1"),
		"the role of a host":                   invite("lead", nil, "a:1"),
		"a host may have 32 labels":            invite(cluster.Host, []string{"GPU"}, "a:1"),
		"for hosts that join is not HOST:PORT": invite(cluster.Host, nil, "a"),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	f.clock.move(validFor + keptFor + time.Second)
	if f.invite(cluster.Host); len(f.book.list) != 1 {
		t.Errorf("%d are kept", len(f.book.list))
	}
}

func TestTokenIsHidden(t *testing.T) {
	f := newTeam(t)
	token := f.invite(cluster.Host)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(verb, token); text != hidden {
			t.Errorf("%s shows %s", verb, text)
		}
	}
	var b strings.Builder
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "token", token)
	if text, err := json.Marshal(token); err != nil || strings.Contains(string(text), "secret") || !strings.Contains(b.String(), hidden) {
		t.Error(string(text), b.String(), err)
	}
}

// TestBadTokens is the table of bad tokens. No error quotes what was pasted.
func TestBadTokens(t *testing.T) {
	f := newTeam(t)
	good := f.invite(cluster.Host).Text()
	middle := len(good) / 2
	other := "A"
	if good[middle] == 'A' {
		other = "B"
	}
	for name, text := range map[string]string{
		"empty": "", "another word": "swordfish", "cut off": good[:len(good)-5], "one character": good[:middle] + other + good[middle+1:],
		"another format": "fli2_" + good[5:], "too long": good + strings.Repeat("A", tokenMax),
		"a space": good[:middle] + " " + good[middle:],
	} {
		_, err := ParseToken(text)
		if err == nil || !strings.Contains(err.Error(), "copy") {
			t.Errorf("%s: %v", name, err)
		}
		if len(text) > 8 && err != nil && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error quotes it", name)
		}
	}
	for name, edit := range map[string]func(*Token){
		"address": func(t *Token) { t.Address = "a" }, "role": func(t *Token) { t.Role = "lead" },
		"fingerprint": func(t *Token) { t.Fingerprint = "ab" },
		"labels":      func(t *Token) { t.Labels = []string{"A"} }, "team": func(t *Token) { t.Team = "" },
		"secret": func(t *Token) { t.secret = t.secret[1:] },
	} {
		token := f.invite(cluster.Host)
		edit(&token)
		if _, err := ParseToken(token.Text()); err == nil || !strings.Contains(err.Error(), "another version") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// goodRequest is a request as Join sends it.
func goodRequest(t testing.TB) request {
	t.Helper()
	id, err := ca.NewIdentity(t.TempDir(), "b", func() time.Time { return start })
	if err != nil {
		t.Fatal(err)
	}
	r := request{Form: requestForm, ID: "0123456789abcdef", Secret: make([]byte, secretBytes), Name: "b", Key: id.PublicKey()}
	if r.CSR, err = id.Request(nil); err == nil {
		r.Proof, err = id.SignNonce(r.CSR)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBadRequests(t *testing.T) {
	other := goodRequest(t)
	for want, edit := range map[string]func(*request){
		"":                                   func(*request) {},
		"another kind of request":            func(r *request) { r.Form = 2 },
		"its name must have":                 func(r *request) { r.Name = "B" },
		"its certificate request is not":     func(r *request) { r.Name = "c" },
		"its certificate request":            func(r *request) { r.CSR = r.CSR[1:] },
		"does not prove that it has its key": func(r *request) { r.Key = other.Key },
		"does not prove that it has":         func(r *request) { r.Proof = other.Proof },
		"does not prove that it has its":     func(r *request) { r.Key = "SU" + r.Key },
	} {
		r := goodRequest(t)
		edit(&r)
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parseRequest(line)
		var refused *Refused
		if (err == nil) != (want == "") ||
			err != nil && (!errors.As(err, &refused) || refused.Code != BadRequest || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	for _, line := range []string{"", "{", "[]", `{"form":1,"more":2}`, "null", `{"form":1}{}`} {
		if _, err := parseRequest([]byte(line)); err == nil {
			t.Errorf("%s is taken", line)
		}
	}
	if _, err := readLine(strings.NewReader(strings.Repeat("x", requestMax)+"\n"), requestMax); err == nil {
		t.Error("a line without end is taken")
	}
}

func FuzzParseToken(f *testing.F) {
	for _, text := range []string{
		"", "fli1_",
		Token{
			ID: "0123456789abcdef", Team: "web", Address: "a:1", Fingerprint: strings.Repeat("0", 64), Role: cluster.Host,
			secret: make([]byte, secretBytes),
		}.Text(),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			if len(text) > 12 && strings.Contains(err.Error(), text) {
				t.Error("the error quotes the token")
			}
			return
		}
		again, err := ParseToken(token.Text())
		if err != nil || again.Text() != token.Text() {
			t.Errorf("%v", err)
		}
	})
}

func FuzzParseJoinRequest(f *testing.F) {
	line, err := json.Marshal(goodRequest(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add([]byte(`{"form":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseRequest(line)
		if err != nil {
			var refused *Refused
			if !errors.As(err, &refused) || refused.Code != BadRequest {
				t.Errorf("%v", err)
			}
			return
		}
		if csr, err := ca.ParseRequest(r.CSR); err != nil || csr.Subject.CommonName != r.Name {
			t.Errorf("%+v", r)
		}
	})
}
