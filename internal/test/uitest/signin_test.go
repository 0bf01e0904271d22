package uitest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestSignIn checks that a browser without a secret sees only how to sign in. It signs in with a
// typed code, or with one in the address. A revoked login shows the sign-in again, and a second tab
// needs no code.
func TestSignIn(t *testing.T) {
	s := uitest.NewServer(t, uitest.OneAgent)
	base, query, _ := strings.Cut(s.URL, "?token=")
	code := func() string { return uitest.LoginCode(t, base, query) }
	picture := func(p *uitest.Page, name string) {
		if dir := os.Getenv("PICTURES"); dir != "" {
			p.Screenshot(filepath.Join(dir, name+".png"))
		}
	}
	for size, at := range map[string]uitest.Size{"desktop": uitest.Desktop, "phone": uitest.Phone} {
		t.Run(size, func(t *testing.T) {
			p := uitest.Browse(t)
			p.Resize(at)
			p.Open(base + "#/agents/coder")
			p.WaitText("main", "fairlead open")
			p.Until("the page asks for a code and shows no team",
				`document.querySelector('#login-code') && !document.querySelector('.roster, .places, [data-view]')`)
			p.Until("nothing was requested", `performance.getEntriesByType('resource').every(e => !e.name.includes('/api/'))`)
			picture(p, "signin-"+size)
			p.Axe()
			p.Press("nonsense\r")
			p.WaitText(".sign-in-fault", "this is not a login code of this daemon")
			picture(p, "signin-wrong-"+size)
			p.Press(strings.ToLower(code()) + "\r")
			p.WaitText(".roster", "coder")
			p.Until("no cookie is set, and the address has no secret", `document.cookie === '' && !/code=|token/.test(location.href)`)
			secret := uitest.Eval[string](p, `localStorage.getItem('fairlead.secret')`)
			if len(secret) < 40 {
				t.Errorf("the secret is %q", secret)
			}
			picture(p, "signedin-"+size)

			logins := s.Logins.List()
			last := logins[len(logins)-1]
			if !strings.Contains(last.Name, "Chrome") {
				t.Errorf("the browser calls itself %q", last.Name)
			}
			if _, err := s.Logins.Revoke(last.ID); err != nil {
				t.Fatal(err)
			}
			p.WaitText(".sign-in-fault", "its login was revoked")
			p.Until("the secret is removed", `localStorage.getItem('fairlead.secret') === null`)
			picture(p, "signin-revoked-"+size)
			p.Axe()
		})
	}
}

// TestSignInByAddress checks that the address that `fairlead open` opens signs in and loses its
// code, and that a signed-in browser does not use the code.
func TestSignInByAddress(t *testing.T) {
	s := uitest.NewServer(t, uitest.OneAgent)
	base, query, _ := strings.Cut(s.URL, "?token=")
	p := uitest.Browse(t)
	code := uitest.LoginCode(t, base, query)
	p.Open(base + "#code=" + code)
	p.WaitText(".now-head", "Nothing needs you.")
	p.Until("the code has left the address", `!location.href.includes('code=') && !JSON.stringify(history.state ?? '').includes('code')`)
	other := uitest.Browse(t)
	other.Open(base + "#code=" + code)
	other.WaitText(".sign-in-fault", "this login code was used already")
	spare := uitest.LoginCode(t, base, query)
	uitest.Eval[string](p, `location.hash = '#code=`+spare+`'`)
	p.Until("the code has left the address", `!location.href.includes('code=')`)
	p.WaitText(".now-head", "Nothing needs you.")
	uitest.Eval[string](other, `location.hash = '#code=`+spare+`'`)
	other.WaitText(".now-head", "Nothing needs you.")
	if n := len(s.Logins.List()); n != 2 {
		t.Errorf("%d logins; want 2", n)
	}
	p.NoConsoleErrors()
}
