package server

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const (
	askPortVar  = "FAIRLEAD_TEST_PORT"
	askTokenVar = "FAIRLEAD_TEST_TOKEN"
)

// X10 over the port: an agent can read the token, and it gives itself no orders for that. Who is in no
// session may.
func TestNobodyReleasesHimselfOverThePort(t *testing.T) {
	if url := os.Getenv(askPortVar); url != "" {
		askOverPort(t, url)
		return
	}
	s := serve(t)
	dir, err := realDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(dir))
	cmd := exec.CommandContext(t.Context(), "sh", "-c",
		`env -u FAIRLEAD_MARK "$0" -test.run='^TestNobodyReleasesHimselfOverThePort$' -test.v; exit $?`, os.Args[0])
	cmd.Env = append(os.Environ(), askPortVar+"="+s.url, askTokenVar+"="+testToken,
		"FAIRLEAD_MARK="+hex.EncodeToString(sum[:8])+".coder-17")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.Join(s.sup.changes(t), "|"); got != `agent coder: team/team X8 held` {
		t.Errorf("orders: %s", got)
	}
	s.want(t, 200, "POST", "/api/v1/unhold", `{}`) // a person, over the same listener
	if got := s.sup.changes(t)[1]; !strings.HasPrefix(got, "human ") {
		t.Errorf("a person's order: %s", got)
	}
}

func askOverPort(t *testing.T, url string) {
	for path, want := range map[string]int{"unhold": 409, "down": 409, "crew/sleep": 409, "hold": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/"+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+os.Getenv(askTokenVar))
		req.Header.Set("Content-Type", "application/json")
		resp, err := plain.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || want == 409 && !strings.Contains(string(text), "coder-17") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}
