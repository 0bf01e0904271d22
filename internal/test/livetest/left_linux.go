package livetest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Left returns the processes that this program started and that still run, with their command lines.
// It identifies them by their home folder, which no other process uses, because their parent may
// have changed.
func (p Program) Left() []string {
	var left []string
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, dir := range all {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil ||
			!slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(kv []byte) bool { return string(kv) == "HOME="+p.Home }) {
			continue // it has ended, or belongs to another program
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(line) == 0 {
			continue // it has ended and was not waited for
		}
		left = append(left, filepath.Base(dir)+" "+strings.ReplaceAll(strings.Trim(string(line), "\x00"), "\x00", " "))
	}
	return left
}
