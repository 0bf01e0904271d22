package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// tryWord makes the verb try what a sandbox must deny, instead of entering one.
const tryWord = "--try"

// probePatience bounds a probe, which takes some milliseconds.
const probePatience = 10 * time.Second

// Probe starts this program in a sandbox and makes it try: writing inside must work, every known way of
// writing outside must fail, and nothing outside may have changed. It starts the program twice, so keep the
// result. main, or TestMain, must call Intercept.
func Probe(ctx context.Context) error {
	if _, why := Supported(); why != "" {
		return errors.New(why)
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's own file, to probe the sandbox: %w", err)
	}
	dir, err := os.MkdirTemp("", "fairlead-sandbox-")
	if err != nil {
		return fmt.Errorf("make a folder to probe the sandbox in: %w; set TMPDIR to one that can be written", err)
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fmt.Errorf("probe the sandbox: %w", err)
	}
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := errors.Join(os.Mkdir(in, 0o700), os.Mkdir(out, 0o700), os.WriteFile(filepath.Join(out, keptFile), []byte(keptText), 0o600)); err != nil {
		return fmt.Errorf("probe the sandbox: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	exe = strings.TrimSuffix(exe, " (deleted)") // Linux adds this to the path of a replaced program; the new one will do
	argv := Wrap(exe, []string{exe, Verb, tryWord, in, out}, Box{Write: []string{in}})
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("probe the sandbox: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return untouched(in, out)
}

const (
	keptFile = "kept"
	keptText = "as it was\n"
	madeFile = "made"
)

// untouched checks from outside that the attempts had no effect.
func untouched(in, out string) error {
	if _, err := os.Stat(filepath.Join(in, madeFile)); err != nil {
		return fmt.Errorf("probe the sandbox: what was written inside is not there: %w", err)
	}
	kept := filepath.Join(out, keptFile)
	names, err := os.ReadDir(out)
	text, err2 := os.ReadFile(kept)
	info, err3 := os.Stat(kept)
	if err := errors.Join(err, err2, err3); err != nil {
		return fmt.Errorf("the sandbox does not hold: look at what was outside: %w", err)
	}
	if len(names) != 1 || string(text) != keptText || info.Mode().Perm() != 0o600 {
		return errors.New("the sandbox does not hold: what was outside has changed")
	}
	return nil
}

// tryAll runs inside: the one operation that must work, and those that must not.
func tryAll(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s takes a folder inside and one outside", tryWord)
	}
	in, out := args[0], args[1]
	made, kept := filepath.Join(in, madeFile), filepath.Join(out, keptFile)
	if err := os.WriteFile(made, []byte("inside\n"), 0o600); err != nil {
		return fmt.Errorf("writing inside does not work: %w", err)
	}
	if _, err := os.ReadFile(kept); err != nil {
		return fmt.Errorf("reading outside does not work: %w", err)
	}
	for _, a := range []struct {
		what string
		err  error
	}{
		{"made a file outside", os.WriteFile(filepath.Join(out, "new"), nil, 0o600)},
		{"made a folder outside", os.Mkdir(filepath.Join(out, "folder"), 0o700)},
		{"opened a file outside for writing", openToWrite(kept)},
		{"truncated a file outside", os.Truncate(kept, 0)},
		{"made a link outside", os.Symlink(in, filepath.Join(out, "link"))},
		{"gave a file outside a second name inside", os.Link(kept, filepath.Join(in, "second"))},
		{"moved a file out", os.Rename(made, filepath.Join(out, "moved"))},
		{"moved a file in", os.Rename(kept, filepath.Join(in, "moved"))},
		{"changed the mode of a file outside", os.Chmod(kept, 0o644)},
		{"removed a file outside", os.Remove(kept)},
	} {
		if a.err == nil {
			return fmt.Errorf("the sandbox does not hold: it %s", a.what)
		}
	}
	return nil
}

func openToWrite(p string) error {
	f, err := os.OpenFile(p, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
