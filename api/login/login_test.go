package login

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

func open(t *testing.T, path string) *Logins {
	t.Helper()
	l, err := Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func refused(t *testing.T, l *Logins, code string, want Fault) {
	t.Helper()
	secret, _, err := l.Redeem(code, "")
	var no *Refused
	if !errors.As(err, &no) || no.Fault != want || secret != "" {
		t.Errorf("code %q: %q, %v; want the fault %s", code, secret, err, want)
	}
}

func signIn(t *testing.T, l *Logins, name string) (string, Login) {
	t.Helper()
	code, _ := l.NewCode()
	secret, in, err := l.Redeem(code, name)
	if err != nil {
		t.Fatal(err)
	}
	return secret, in
}

func TestCodeIsValidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, filepath.Join(t.TempDir(), "logins.json"))
		code, until := l.NewCode()
		if time.Until(until) != CodeValid {
			t.Errorf("valid until %v", until)
		}
		typed := " " + strings.ToLower(strings.NewReplacer("-", " ", "0", "o", "1", "l").Replace(code)) + "\n"
		secret, in, err := l.Redeem(typed, "Firefox on Linux\x1b[31m")
		if err != nil || in.ID != "l1" || in.Name != "Firefox on Linux[31m" || len(secret) != 43 {
			t.Fatalf("the code %q as typed: %q %+v, %v", typed, secret, in, err)
		}
		refused(t, l, code, Used)
		old, _ := l.NewCode()
		wait.Elapse(CodeValid)
		refused(t, l, old, Old)
		refused(t, l, "", Wrong)
		refused(t, l, "0000-0000", Wrong)
		if got, _, ok := l.Check(secret); !ok || got.ID != "l1" {
			t.Errorf("the secret: %+v %v", got, ok)
		}
		for _, bad := range []string{"", code, secret + "x", secret[:20], hashOf(secret)} {
			if _, _, ok := l.Check(bad); ok {
				t.Errorf("%q is accepted", bad)
			}
		}
	})
}

// Guessing stops all codes for a while, the right one too: otherwise the limit would not limit guesses.
func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, filepath.Join(t.TempDir(), "logins.json"))
		for i := range guessesMax {
			refused(t, l, fmt.Sprintf("%08d", i), Wrong)
		}
		code, _ := l.NewCode()
		refused(t, l, code, TooMany)
		wait.Elapse(guessSpan)
		refused(t, l, code, Old)
		signIn(t, l, "")
	})
}

// Of many who redeem a code at the same time, one gets a secret.
func TestRace(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "logins.json"))
	code, _ := l.NewCode()
	var all sync.WaitGroup
	var mu sync.Mutex
	got := 0
	for range 8 {
		all.Go(func() {
			if _, _, err := l.Redeem(code, ""); err == nil {
				mu.Lock()
				got++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if got != 1 {
		t.Errorf("%d secrets for one code", got)
	}
}

func TestStoredAndRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logins.json")
	l := open(t, path)
	one, _ := signIn(t, l, "one")
	two, in := signIn(t, l, "two")
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), one) || strings.Contains(string(text), two) ||
		!strings.Contains(string(text), hashOf(two)) {
		t.Fatalf("%v; a secret is in the file, or its hash is not:\n%s", err, text)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	_, ctx, ok := l.Check(two)
	if done, err := l.Revoke(in.ID); !ok || !done || err != nil || ctx.Err() == nil {
		t.Errorf("revoked: %v %v; the open requests: %v", done, err, ctx.Err())
	}
	if done, err := l.Revoke(in.ID); done || err != nil {
		t.Errorf("revoked twice: %v, %v", done, err)
	}
	l = open(t, path)
	if list := l.List(); len(list) != 1 || list[0].Name != "one" {
		t.Errorf("after a restart: %+v", list)
	}
	if _, _, ok := l.Check(two); ok {
		t.Error("a revoked secret is valid after a restart")
	}
	if _, _, ok := l.Check(one); !ok {
		t.Error("a secret is lost at a restart")
	}
	if _, in := signIn(t, l, ""); in.ID != "l3" || in.Name != "a browser" {
		t.Errorf("an id is used again, or the name is not replaced: %+v", in)
	}
	l.path = filepath.Join(t.TempDir(), "gone", "logins.json")
	if done, err := l.Revoke("l1"); done || err == nil {
		t.Error("a login that could not be removed from the file counts as revoked")
	}
}

// A file that a repository brought has the hash of a secret that its author knows.
func TestForeignFiles(t *testing.T) {
	planted := fmt.Sprintf(`{"format":1,"next":2,"logins":[{"id":"l1","name":"x","hash":%q}]}`, hashOf("known"))
	for name, c := range map[string]struct {
		text  string
		mode  os.FileMode
		known bool
	}{
		"ours":          {planted, 0o600, true},
		"as git writes": {planted, 0o644, false},
		"damaged":       {planted[:40], 0o600, false},
		"null":          {`{"format":1,"logins":[null,{}]}`, 0o600, false},
		"too long":      {planted + strings.Repeat(" ", fileMax), 0o600, false},
	} {
		path := filepath.Join(t.TempDir(), "logins.json")
		if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		l := open(t, path)
		if _, _, ok := l.Check("known"); ok != c.known {
			t.Errorf("%s: the secret is accepted: %v", name, ok)
		}
		signIn(t, l, "") // and the next person can sign in
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, filepath.Join(t.TempDir(), "logins.json"))
		first, _ := signIn(t, l, "first")
		second, _ := signIn(t, l, "second")
		_, ended, _ := l.Check(second)
		for range LoginsMax - 2 {
			wait.Elapse(time.Second)
			signIn(t, l, "")
		}
		l.Check(first)
		signIn(t, l, "")
		if _, _, ok := l.Check(second); ok || ended.Err() == nil {
			t.Errorf("the login unused for longest is valid: %v; its requests: %v", ok, ended.Err())
		}
		if n := len(l.List()); n != LoginsMax {
			t.Errorf("%d logins", n)
		}
		if _, _, ok := l.Check(first); !ok {
			t.Error("a login in use was dropped")
		}
	})
}
