//go:build !linux

package shim

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

const tasksMore = 0

// sight sees nothing of a session's processes here.
type sight struct{}

type counts struct{ tasks int }

func (k *keeper) newSight() sight { return sight{} }

func (*sight) holdsTasks() bool { return false }

func (g *guard) confine(*keeper) {}

func (*sight) processes() counts { return counts{} }

func (*sight) mayExceed(counts, int64, time.Time) bool { return false }

func (*sight) about(counts) int64 { return 0 }

func (*sight) memory(counts, time.Time) int64 { return 0 }

func (*sight) deleted() int64 { return 0 }

func (*sight) written() (int64, bool) { return 0, false }

func childrenUsed() (largest int64, processor time.Duration) {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used) != nil {
		return 0, 0
	}
	return used.Maxrss, time.Duration(used.Utime.Nano() + used.Stime.Nano()) // bytes on macOS
}

func changedAt(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctimespec.Sec, st.Ctimespec.Nsec) }

func asVictims(start func()) { start() }

// EnterScope finds no cgroups on this system.
func EnterScope(string) (string, error) { return "", errors.New("there are no cgroups on this system") }

// group is the cgroup of a session. This system has no cgroups.
type group struct{}

func makeGroup(string, string, spawn.Limits) (*group, error) { return nil, nil }

func (*group) attach(*syscall.SysProcAttr) (*os.File, error) { return nil, errors.ErrUnsupported }

func (*group) holdsTasks(spawn.Limits) bool { return false }

func (*group) refuses() bool { return false }

func (*group) ended() session.Limit { return "" }

func (*group) remove() {}
