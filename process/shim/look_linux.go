package shim

import (
	"bytes"
	"os"
	"strconv"
)

// isStopped says whether a process was stopped by a signal or a debugger.
func isStopped(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	shut := bytes.LastIndexByte(line, ')') // the command before it may hold anything
	return shut >= 0 && shut+2 < len(line) && (line[shut+2] == 'T' || line[shut+2] == 't')
}
