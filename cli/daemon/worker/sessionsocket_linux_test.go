package worker

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// What comes through the socket of a session is that session's for the leader, whatever the program writes into its request. The socket of
// the folder still says which process it is.
func TestSocketOfASession(t *testing.T) {
	const forged = `{"session":"coder-18","seen":true}`
	got := make(chan http.Header, 1)
	dir := t.TempDir()
	d, _ := hostAt(t, dir, connect(t, renews(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Clone() })), noShims{})
	own := filepath.Join(t.TempDir(), "fairlead")
	if err := d.sockets.Open("coder-17", own); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(own, "socket"))
	}}
	t.Cleanup(transport.CloseIdleConnections)
	mine, ofAll := &http.Client{Transport: transport}, bySocket(t, dir)
	for name, change := range map[string]func(*http.Request){
		"nothing":           func(*http.Request) {},
		"a header":          func(r *http.Request) { r.Header.Set(wire.CallerField, forged) },
		"two headers":       func(r *http.Request) { r.Header[wire.CallerField] = []string{forged, forged} },
		"the name of it":    func(r *http.Request) { r.Header.Set("Connection", wire.CallerField) },
		"another's session": func(r *http.Request) { r.URL.RawQuery = "session=coder-18" },
	} {
		for _, c := range []struct {
			from *http.Client
			want wire.Caller
		}{{mine, wire.Caller{Session: "coder-17", Own: true}}, {ofAll, wire.Caller{Seen: true}}} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://b"+api.Base+"/hold", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			change(r)
			answer, err := c.from.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			var is wire.Caller
			if values := (<-got).Values(wire.CallerField); len(values) != 1 || json.Unmarshal([]byte(values[0]), &is) != nil ||
				is != c.want {
				t.Errorf("%s: the leader reads %q, want %+v", name, values, c.want)
			}
		}
	}
	answer, err := mine.Post("http://b"+downPath, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusConflict {
		t.Errorf("the session ends the daemon of its host: %s", answer.Status)
	}
}
