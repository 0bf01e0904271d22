package shell

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/read/view"
)

func TestMain(m *testing.M) {
	sandbox.Intercept()
	os.Exit(m.Run())
}

// In each kind of view the command writes inside and not outside, and its exit code, its streams and its lock are as they should be.
func TestStart(t *testing.T) {
	if _, why := sandbox.Supported(); why != "" {
		t.Skip(why)
	}
	kinds := map[string]sandbox.Ability{"by Landlock": {By: sandbox.ByLandlock}}
	if can := sandbox.Abilities(); can.By == sandbox.ByNamespaces {
		kinds["by namespaces"] = can
	}
	for name, can := range kinds {
		t.Run(name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for p := base; p != "/tmp" && p != "/"; p = filepath.Dir(p) {
				_ = os.Chmod(p, 0o755) // root's program in a view is another user
			}
			inside, home := filepath.Join(base, "inside"), filepath.Join(base, "home")
			for _, dir := range []string{inside, home, filepath.Join(base, "shell")} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			v := can.Apply(sandbox.View{
				Dir: inside, Home: home, Temp: home,
				Places: []sandbox.Place{{Path: inside, Access: sandbox.Write}},
			})
			s := view.Shell{
				Dir: inside, View: string(encode.JSON(v)), Lock: filepath.Join(base, "shell", "lock"), Made: filepath.Join(base, "made"),
				Env: []string{"PATH=" + os.Getenv("PATH"), "GIVEN=given"},
			}
			var out, errs bytes.Buffer
			a := &cli.App{In: strings.NewReader("typed\n"), Out: &out, Err: &errs}
			script := fmt.Sprintf(`read line; echo "$line $GIVEN"; pwd; echo mine > mine; echo x > %s/outside; exit 5`, base)
			code, err := start(a, s, []string{"sh", "-c", script})
			if code != 5 || err != nil || out.String() != "typed given\n"+inside+"\n" {
				t.Errorf("%d, %v: %s%s", code, err, &out, &errs)
			}
			if text, err := os.ReadFile(filepath.Join(inside, "mine")); err != nil || string(text) != "mine\n" {
				t.Errorf("inside is written: %q, %v", text, err)
			}
			if _, err := os.Lstat(filepath.Join(base, "outside")); err == nil {
				t.Error("outside was written")
			}
			lock, err := os.Open(s.Lock)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
				t.Errorf("the lock is held after the end: %v", err)
			}
		})
	}
}
