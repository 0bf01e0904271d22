package uitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/fairlead-dev/fairlead/api"
)

// LoginCode gets a login code from a server with its token for programs. base is the address of its page.
func LoginCode(t testing.TB, base, token string) string {
	t.Helper()
	var got api.LoginCode
	ask(t, base+"api/v1/login-codes", token, struct{}{}, &got)
	return got.Code
}

// signIn gives the window a secret without opening the address with the code.
func (p *Page) signIn(base, token string) {
	p.t.Helper()
	var got api.LoginSecret
	ask(p.t, base+"api/v1/logins", "", api.LoginBody{Code: LoginCode(p.t, base, token), Name: "a test"}, &got)
	script := fmt.Sprintf(`if (location.href.startsWith(%s)) localStorage.setItem('fairlead.secret', %s);`, quote(base), quote(got.Secret))
	p.do("sign in", func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	})
	p.signedIn[base] = true
}

// ask sends a request to a server as a program does.
func ask(t testing.TB, url, token string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s, %v", url, res.Status, err)
	}
}
