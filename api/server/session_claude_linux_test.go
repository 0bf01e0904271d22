package server

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/process/claudehook"
)

// X10: what an agent program's shell starts does not end the program's session, over either listener, also
// where it hides what it is.
func TestNobodyEndsItsProgramsSession(t *testing.T) {
	if url := os.Getenv(askPortVar); url != "" {
		endFromInside(t, url, os.Getenv(askAsVar))
		return
	}
	if claudehook.Within(os.Getpid()) {
		t.Skip("an agent runs this itself")
	}
	s := serve(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	f := sessionAt(t, s.dir, "quay", dispatch.Setup{Host: dispatch.Claude, Program: "s1"})
	dir, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c",
		`env -u CLAUDECODE "$0" -test.run='^TestNobodyEndsItsProgramsSession$' -test.v; exit $?`, os.Args[0])
	cmd.Env = append(os.Environ(), askPortVar+"="+s.url, askTokenVar+"="+testToken, askAsVar+"="+dir, "CLAUDECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if is, err := f.Session(); err != nil || is.Phase == dispatch.Closed {
		t.Fatalf("%+v, %v", is.Now, err)
	}
	s.want(t, 200, "POST", "/api/v1/dispatch/quay/end", `{}`) // a person
}

func endFromInside(t *testing.T, url, dir string) {
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := client.Post[api.DispatchView](t.Context(), c, "/dispatch/quay/end", api.NoteBody{Note: ""}); err == nil ||
		!strings.Contains(err.Error(), "X10") {
		t.Errorf("over the socket: %v", err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/dispatch/quay/end", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv(askTokenVar))
	req.Header.Set("Content-Type", "application/json")
	resp, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusConflict || !strings.Contains(string(text), "X10") {
		t.Errorf("over the port: %d %s", resp.StatusCode, text)
	}
}
