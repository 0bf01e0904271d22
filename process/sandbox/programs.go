package sandbox

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// scriptDepthMax bounds interpreters that are scripts themselves.
const scriptDepthMax = 3

// Programs returns the files of programs in PATH, by their names or absolute paths, with everything that must
// be executable to start them: the interpreters of scripts, and the loaders of the others. Each is absolute
// and resolved, as [View.Execute] needs it. A name that is not found is left out. Folders of PATH that are not
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

// probePatience bounds a probe, which takes some milliseconds.
const probePatience = 10 * time.Second

func openToWrite(p string) error {
	f, err := os.OpenFile(p, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
