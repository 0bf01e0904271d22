package api

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// ancestorsMax bounds the walk; no tree of processes is as deep by itself.
const ancestorsMax = 128

// ancestry is a process and those above it, each by its number and the moment it began, so
// that a number used again is another process. It is whole where the walk came to the top:
// the first process, or one of another user that we may not see.
func ancestry(pid int) (chain []life, whole bool) {
	for range ancestorsMax {
		is, parent, err := lifeOf(pid)
		if err != nil {
			return chain, len(chain) > 0 && errors.Is(syscall.Kill(pid, 0), syscall.EPERM)
		}
		chain = append(chain, is)
		if parent <= 1 {
			return chain, true
		}
		pid = parent
	}
	return chain, false
}

// living is the process alone: each order asks, and those above it are as many files more.
func living(pid int) (is life, ok bool) {
	is, _, err := lifeOf(pid)
	return is, err == nil
}

// lifeOf reads /proc/PID/stat: the name in brackets may hold anything, so what counts stands
// behind the last bracket. A process that has ended and waits for its parent is none.
func lifeOf(pid int) (is life, parent int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return life{}, 0, err
	}
	return parseStat(pid, text)
}

func parseStat(pid int, text []byte) (is life, parent int, err error) {
	const state, ppid, began = 0, 1, 19 // places behind the name, as proc(5) counts them less three
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= began || len(fields[state]) != 1 {
		return life{}, 0, fmt.Errorf("read /proc/%d/stat: not as the kernel writes it", pid)
	}
	if c := fields[state][0]; c == 'Z' || c == 'X' {
		return life{}, 0, os.ErrProcessDone
	}
	if parent, err = strconv.Atoi(string(fields[ppid])); err == nil && parent < 0 {
		err = strconv.ErrRange
	}
	if err != nil {
		return life{}, 0, fmt.Errorf("read the parent in /proc/%d/stat: %w", pid, err)
	}
	start, err := strconv.ParseUint(string(fields[began]), 10, 64)
	if err != nil {
		return life{}, 0, fmt.Errorf("read the start in /proc/%d/stat: %w", pid, err)
	}
	return life{pid: pid, began: start}, parent, nil
}
