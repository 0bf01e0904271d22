package livetest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/livetest"
)

// TestWay checks that connections to other machines are refused and recorded, and that addresses on
// this machine can be reached through the proxy.
func TestWay(t *testing.T) {
	t.Parallel()
	w := livetest.Watch(t)
	proxy, err := url.Parse(w.URL)
	if err != nil {
		t.Fatal(err)
	}
	here := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	t.Cleanup(here.Close)
	plain := &http.Transport{Proxy: http.ProxyURL(proxy)}
	secure, ok := here.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the test server's client has another transport than it used to")
	}
	secure = secure.Clone()
	secure.Proxy = http.ProxyURL(proxy)
	t.Cleanup(plain.CloseIdleConnections)
	t.Cleanup(secure.CloseIdleConnections)

	get := func(by *http.Transport, address string) (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := by.RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer got.Body.Close()
		b, err := io.ReadAll(got.Body)
		return got.Status + " " + string(b), err
	}
	if got, err := get(secure, here.URL); err != nil || got != "200 OK here" {
		t.Errorf("what is here: %q, %v", got, err)
	}
	if got, err := get(plain, "http://example.test/a"); err != nil || got != "403 Forbidden " {
		t.Errorf("what is not: %q, %v", got, err)
	}
	if got, err := get(secure, "https://example.test/b"); err == nil {
		t.Errorf("what is not, in secret: %q", got)
	}
	want := []string{"GET http://example.test/a HTTP/1.1", "CONNECT example.test:443 HTTP/1.1"}
	if got := w.Tried(); !slices.Equal(got, want) {
		t.Errorf("noted are %q, want %q", got, want)
	}
}
