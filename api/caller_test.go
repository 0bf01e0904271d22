package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

const askAsVar = "FAIRLEAD_TEST_ASK" // the folder whose daemon the child asks

// X10: who runs in a session of ours reads, and orders others about, and not itself.
func TestNobodyReleasesHimself(t *testing.T) {
	if dir := os.Getenv(askAsVar); dir != "" {
		askAsAgent(t, dir)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says which process is at the other end")
	}
	s := serve(t)
	dir, err := realDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(dir))
	// The shell between sheds the mark: its parent still has it.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `env -u FAIRLEAD_MARK "$0" -test.run='^TestNobodyReleasesHimself$' -test.v; exit $?`, os.Args[0])
	cmd.Env = append(os.Environ(), askAsVar+"="+dir, "FAIRLEAD_MARK="+hex.EncodeToString(sum[:8])+".coder-17")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := `agent coder: reviewer continuous ""|agent coder: hold true ""`
	if got := strings.Join(s.fake.orders, "|"); got != want {
		t.Errorf("orders: %s", got)
	}
}

func askAsAgent(t *testing.T, dir string) {
	c, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, release := c.Release(t.Context(), "")
	_, itself := c.Command(t.Context(), Start, "coder", "")
	for what, err := range map[string]error{"release": release, "itself": itself, "down": c.Down(t.Context(), true)} {
		var refused *Refused
		if !errors.As(err, &refused) || refused.Refusal.Row != "X10" || !strings.Contains(err.Error(), "coder-17") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, read := c.Team(t.Context())
	_, other := c.Command(t.Context(), Start, "reviewer", "")
	_, held := c.Hold(t.Context(), "")
	if err := errors.Join(read, other, held); err != nil {
		t.Error(err)
	}
}
