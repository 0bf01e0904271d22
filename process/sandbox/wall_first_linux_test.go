package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReportIsOfTheFirstProcess checks that a program in a view has no descriptor beside its standard streams, whatever process 1 was
// started with, and that no program there says how another has ended, or ends process 1.
func TestReportIsOfTheFirstProcess(t *testing.T) {
	const (
		forge = `for f in /proc/1/fd/* /proc/1/task/*/fd/* /proc/self/fd/* /proc/$PPID/fd/3 /dev/fd/[3-9]; do case $f in */[012]) ;; *) { echo '{"status":0}' > $f; } 2>/dev/null;; esac; done
for n in 3 4 5 6 7 8 9; do { eval "echo '{\"status\":0}' >&$n"; } 2>/dev/null; done; `
		open    = `for n in 3 4 5 6 7 8 9; do [ ! -e /proc/self/fd/$n ] || [ /proc/self/fd/$n -ef /proc/self/exe ] || echo open $n; done; cat /dev/fd/4/secret /proc/self/fd/5 2>/dev/null; `
		signals = `for s in HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD CONT STOP TSTP TTIN TTOU URG WINCH IO KILL; do kill -s $s 1 2>/dev/null; done; `
		faults  = `for s in SEGV ABRT TRAP BUS ILL FPE SYS XCPU; do kill -s $s 1; done; `
	)
	for name, c := range map[string]struct {
		command string
		exit    int // of the program; 0: it was killed
	}{
		"nothing":                   {"exit 9", 9},
		"forged reports":            {forge + "exit 9", 9},
		"descriptors":               {open + "exit 9", 9},
		"signals":                   {signals + "exit 9", 9},
		"signals of a fault":        {faults + "exit 9", 9},
		"a stop of its own group":   {"trap '' TERM; kill -s TERM 0; exit 9", 9},
		"all processes of the view": {"(kill -9 -1); sleep 600", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newViewed(t)
			v.view.Report = 3
			argv, err := WrapView(os.Args[0], []string{"sh", "-c", c.command}, v.view)
			if err != nil {
				t.Fatal(err)
			}
			said, theirs, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer said.Close()
			secret := filepath.Join(v.out, "secret")
			err = os.WriteFile(secret, []byte("the secret\n"), 0o600)
			folder, err2 := os.Open(v.out)
			file, err3 := os.OpenFile(secret, os.O_RDWR, 0)
			if err := errors.Join(err, err2, err3); err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			defer file.Close()
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			var out strings.Builder
			cmd.SysProcAttr, cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = v.view.Attr(), []*os.File{theirs, folder, file}, &out, &out
			cmd.SysProcAttr.Setsid = true // a shim does, too
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			theirs.Close()
			report, err := io.ReadAll(said)
			end := cmd.Wait()
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(report)), "\n")
			var started Started
			if err := json.Unmarshal([]byte(lines[0]), &started); err != nil || started.Error != "" || started.PID == 0 {
				t.Fatalf("%q: %v; %v: %s", report, err, end, out.String())
			}
			var ended Ended
			if len(lines) != 2 {
				t.Fatalf("the reports are %q", lines)
			}
			ws := syscall.WaitStatus(0)
			if err := json.Unmarshal([]byte(lines[1]), &ended); err == nil {
				ws = syscall.WaitStatus(ended.Status)
			}
			if c.exit != 0 && ws.ExitStatus() != c.exit || c.exit == 0 && !ws.Signaled() {
				t.Errorf("the end is %v, want %d", ws, c.exit)
			}
			if said := out.String(); strings.Contains(said, "open ") || strings.Contains(said, "secret") {
				t.Errorf("it has other descriptors: %s", said)
			}
		})
	}
}

// TestFirstProcessHasNoRights waits until no thread of process 1 is root's. A program with the C library keeps rights over the user
// namespace of an ordinary user there.
func TestFirstProcessHasNoRights(t *testing.T) {
	v := newViewed(t)
	if v.view.Users {
		t.Skip("the first process is an ordinary user's")
	}
	out, err := v.shell(`while grep -h -e '^Uid:.*[[:space:]]0[[:space:]]' -e '^CapPrm:.*[1-9a-f]' /proc/1/task/*/status; do :; done >/dev/null; grep -h -e Uid -e CapEff -e CapPrm /proc/1/task/*/status; ls /proc/1/fd /proc/1/root/ 2>&1`)
	if err == nil || !strings.Contains(out, "Permission denied") || !strings.Contains(out, "CapPrm") {
		t.Errorf("%v: %s", err, out)
	}
}
