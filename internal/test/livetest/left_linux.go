package livetest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Left are the processes that this program started and that still live, with their command lines.
// They are known by their home folder, which nobody else has, whoever their parent is by now.
func (p Program) Left() []string {
	var left []string
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, dir := range all {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(kv []byte) bool { return string(kv) == "HOME="+p.Home }) {
			continue // gone meanwhile, or somebody else's
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(line) == 0 {
			continue // it has ended, and nobody has asked how
		}
		left = append(left, filepath.Base(dir)+" "+strings.ReplaceAll(strings.Trim(string(line), "\x00"), "\x00", " "))
	}
	return left
}
