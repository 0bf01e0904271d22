package server

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Parts of a request that an error repeats are shown as plain text, to the client and in logs.
func TestWhatIsShownBackIsText(t *testing.T) {
	s := serve(t)
	for _, evil := range []string{"\u009b31m", "\x1b]0;owned\x07", "a\u202eb", "\u0085", strings.Repeat("x", 5000)} {
		req := s.request(t, "GET", "/api/v1/agents/"+url.PathEscape(evil), map[string]string{"Authorization": "Bearer " + testToken})
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		text := string(shown)
		if resp.StatusCode < 400 || resp.StatusCode >= 500 {
			t.Errorf("%.20q: %d", evil, resp.StatusCode)
		}
		if strings.ContainsAny(text, "\u009b\x1b\x07\u202e\u0085") || len(text) > 4096 {
			t.Errorf("%.20q is shown back as it is: %.300q", evil, text)
		}
	}
}
