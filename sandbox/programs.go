package sandbox

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// scriptDepthMax bounds interpreters that are scripts themselves.
const scriptDepthMax = 3

// Programs returns the files of programs in PATH, by their names or absolute paths, with everything that must
// be executable to start them: the interpreters of scripts, and the loaders of the others. Each is absolute
// and resolved, as [Box.Execute] needs it. A name that is not found is left out. Folders of PATH that are not
// absolute, or below one of not, are skipped, because an agent may have put a program there.
func Programs(names, not []string) []string {
	s := search{seen: map[string]bool{}}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && !slices.Contains(s.path, dir) && !slices.ContainsFunc(not, func(n string) bool { return below(dir, n) }) {
			s.path = append(s.path, dir)
		}
	}
	for _, name := range names {
		s.add(name, 0)
	}
	return s.found
}

// search collects program files.
type search struct {
	path  []string
	found []string
	seen  map[string]bool
}

func (s *search) add(name string, depth int) {
	if s.seen[name] {
		return // a loader, of most programs
	}
	s.seen[name] = true
	file := name
	if !filepath.IsAbs(name) {
		file = ""
		for _, dir := range s.path {
			if p := filepath.Join(dir, name); notExecutable(p) == nil {
				file = p
				break
			}
		}
	}
	file, err := filepath.EvalSymlinks(file)
	if err != nil || file != name && s.seen[file] || notExecutable(file) != nil {
		return
	}
	s.seen[file] = true
	s.found = append(s.found, file)
	if name == "git" { // it starts itself under its other name
		for _, lib := range []string{"../lib/git-core/git", "../libexec/git-core/git"} {
			s.add(filepath.Join(filepath.Dir(file), lib), depth)
		}
	}
	if depth < scriptDepthMax {
		for _, more := range interpreters(file) {
			s.add(more, depth+1)
		}
	}
}

// interpreters returns what the kernel executes to start a file: names for env, or paths.
func interpreters(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	var head [4096]byte // a loader's name is in the first page
	n, _ := io.ReadFull(f, head[:])
	if loader := loaderOf(head[:n]); loader != "" {
		return []string{loader}
	}
	first, _, _ := bytes.Cut(head[:n], []byte("\n"))
	script, is := bytes.CutPrefix(first, []byte("#!"))
	words := strings.Fields(string(script))
	switch {
	case !is || len(words) == 0:
		return nil
	case len(words) > 1 && filepath.Base(words[0]) == "env":
		return []string{words[0], words[len(words)-1]}
	}
	return words[:1]
}

// loaderOf returns the interpreter that a program of 64 bits names; empty: none.
func loaderOf(page []byte) string {
	var head elf.Header64
	if _, err := binary.Decode(page, binary.LittleEndian, &head); err != nil || string(head.Ident[:4]) != elf.ELFMAG {
		return ""
	}
	for i := range uint64(head.Phnum) {
		var prog elf.Prog64
		at := head.Phoff + i*uint64(head.Phentsize)
		if at >= uint64(len(page)) {
			return ""
		}
		if _, err := binary.Decode(page[at:], binary.LittleEndian, &prog); err != nil {
			return ""
		}
		if end := prog.Off + prog.Filesz; elf.ProgType(prog.Type) == elf.PT_INTERP && prog.Off < end && end <= uint64(len(page)) {
			return string(bytes.TrimRight(page[prog.Off:end], "\x00"))
		}
	}
	return ""
}

func notExecutable(p string) error {
	info, err := os.Stat(p)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder", p)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable (chmod +x)", p)
	}
	return nil
}

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
