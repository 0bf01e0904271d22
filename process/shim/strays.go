package shim

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	sweepPatience = 10 * time.Second      // a process that survives SIGKILL longer hangs in the kernel
	sweepSlice    = 20 * time.Millisecond // between two reads of the process table
)

// Strays finds the processes with a workspace's mark whose session has no living shim. There should
// be none.
func Strays(workspace string) ([]Process, error) {
	all, err := processes()
	if err != nil {
		return nil, fmt.Errorf("look for strays: %w", err)
	}
	return straysIn(all, workspaceHash(workspace)+"."), nil
}

func straysIn(all []Process, prefix string) []Process {
	held := map[string]bool{}
	var found []Process
	for _, p := range all {
		if p.zombie {
			continue
		}
		env := environOf(p.PID)
		if mark, ok := envValue(env, shimVar); ok {
			held[mark] = true
		}
		for _, mark := range marksIn(env) {
			if session, ok := strings.CutPrefix(mark, prefix); ok {
				p.Session = session
				found = append(found, p)
				break
			}
		}
	}
	strays := found[:0]
	for _, p := range found {
		if !held[prefix+p.Session] {
			strays = append(strays, p)
		}
	}
	return without(all, strays, os.Getpid())
}

// EndStrays ends all strays of a workspace and their descendants, and returns those that were ended.
// The error names processes that did not end.
func EndStrays(ctx context.Context, workspace string) ([]Process, error) {
	return endAll(ctx, func(all []Process) []Process {
		return withDescendants(all, straysIn(all, workspaceHash(workspace)+"."))
	})
}

// endTree ends what a dead shim has left of its agent's tree.
func endTree(ctx context.Context, r *agentRecord) ([]Process, error) {
	if r.BootID != bootID() {
		return nil, nil // no process survives a reboot
	}
	return endAll(ctx, func(all []Process) []Process {
		var tree []Process
		for _, p := range all {
			if p.PID == r.AgentPID && p.Start == r.AgentStart && !p.zombie {
				tree = append(tree, p)
			}
		}
		tree = join(tree, marked(all, r.Mark, r.ShimStart))
		for i := range tree {
			tree[i].Session = r.Session
		}
		return withDescendants(all, tree)
	})
}

// endAll sends SIGKILL to the processes that find returns, until it returns none.
func endAll(ctx context.Context, find func(all []Process) []Process) (ended []Process, err error) {
	for deadline := time.Now().Add(sweepPatience); ; {
		all, err := processes()
		if err != nil {
			return ended, err
		}
		rest := without(all, find(all), os.Getpid())
		if len(rest) == 0 {
			return ended, nil
		}
		signalAll(rest, syscall.SIGKILL)
		ended = join(ended, rest)
		if time.Now().After(deadline) {
			return ended,
				fmt.Errorf("process %d (%s) does not end on SIGKILL: it hangs in the kernel; see what it waits for, or restart the machine",
					rest[0].PID, rest[0].Command)
		}
		if ctx.Err() != nil {
			return ended, context.Cause(ctx)
		}
		waitGone(ctx, rest[0].PID, rest[0].Start, sweepSlice)
	}
}
