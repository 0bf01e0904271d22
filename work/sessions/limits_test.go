package sessions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/outside"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// TestLargest: nothing ends below the limits of the team, and above one the session that uses most of it, whatever it uses of others.
func TestLargest(t *testing.T) {
	uses := map[string]session.Use{
		"a-1": {MemoryBytes: 5e9, Processes: 3, DiskBytes: 1},
		"b-1": {MemoryBytes: 4e9, Processes: 90, DiskBytes: 2},
		"c-1": {MemoryBytes: 5e9, Processes: 4, DiskBytes: 3e9},
	}
	for _, test := range []struct {
		limits config.Limits
		id     string
		limit  session.Limit
	}{
		{config.Limits{}, "", ""},
		{config.Limits{MemoryBytes: 14e9, Processes: 97, DiskBytes: 4e9}, "", ""},
		{config.Limits{MemoryBytes: 13e9}, "a-1", session.LimitMemory}, // of two that are as large, always the same
		{config.Limits{Processes: 96}, "b-1", session.LimitProcesses},
		{config.Limits{DiskBytes: 2e9}, "c-1", session.LimitDisk},
	} {
		if id, limit := Largest(test.limits, uses); id != test.id || limit != test.limit {
			t.Errorf("%+v: %s %s, want %s %s", test.limits, id, limit, test.id, test.limit)
		}
	}
	if id, _ := Largest(config.Limits{MemoryBytes: 1}, nil); id != "" {
		t.Error(id)
	}
}

// TestLimitWords: the words name the key that has to be raised.
func TestLimitWords(t *testing.T) {
	agent := func(l config.Limits) *config.Agent { return &config.Agent{Name: "coder", Limits: l} }
	for _, test := range []struct {
		own, team config.Limits
		exit      session.Exit
		want      string
	}{
		{
			config.Limits{MemoryBytes: 4e9},
			config.Limits{},
			session.Exit{Limit: session.LimitMemory, Use: session.Use{MemoryBytes: 42e8}},
			"limits.memory of coder was reached: its processes had 4.2 GB of memory",
		},
		{config.Limits{MemoryBytes: 4e9}, config.Limits{MemoryBytes: 3e9}, session.Exit{Limit: session.LimitMemory}, "team.limits.memory was reached"},
		{config.Limits{}, config.Limits{DiskBytes: 3e9}, session.Exit{Limit: session.LimitDisk}, "team.limits.disk was reached"},
		{
			config.Limits{Processes: 5},
			config.Limits{Processes: 50},
			session.Exit{Limit: session.LimitProcesses, Use: session.Use{Processes: 5}},
			"limits.processes of coder was reached: it had 5 processes and threads",
		},
		{
			config.Limits{Processes: 5},
			config.Limits{Processes: 50},
			session.Exit{Limit: session.LimitProcesses, OfTeam: true},
			"team.limits.processes was reached",
		},
		{
			config.Limits{},
			config.Limits{},
			session.Exit{Limit: session.LimitOutput, SpoolBytes: 1e9},
			"limits.output of coder was reached: it has written 1.0 GB of output",
		},
		{
			config.Limits{DiskBytes: 5},
			config.Limits{DiskBytes: 50},
			session.Exit{Limit: session.LimitFreeDisk, OfTeam: true},
			"the free disk was almost used up, and its folders grew fastest: ",
		},
	} {
		if got := LimitWords(agent(test.own), test.team, test.exit); !strings.HasPrefix(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// TestLimitsOf: a session has the lower one of its agent's limit and the team's.
func TestLimitsOf(t *testing.T) {
	got := LimitsOf(&config.Agent{Limits: config.Limits{MemoryBytes: 5, Processes: 7, OutputBytes: 9, OnOutput: config.OutputEnds}},
		config.Limits{MemoryBytes: 4, Processes: 8, DiskBytes: 6})
	if want := (spawn.Limits{Memory: 4, Processes: 7, Disk: 6, Output: 9, EndAtOutput: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRoom: a machine on which this test runs has room.
func TestRoom(t *testing.T) {
	if free, all, known := freeMemory(); known && (free <= 0 || free > all) {
		t.Errorf("%d bytes of %d are free", free, all)
	}
	if why := Room(t.TempDir())(); why != "" {
		t.Error(why)
	}
}

// TestAwaitedDisk: a small disk has room for sessions until little of it is left, and the words name what is missing.
func TestAwaitedDisk(t *testing.T) {
	for _, test := range []struct{ free, all, needs uint64 }{
		{free: 300e6, all: 500e9},
		{free: 200e6, all: 500e9, needs: 256e6},
		{free: 60e6, all: 96e6},
		{free: 0, all: 96e6, needs: 6e6},
	} {
		want := ""
		if test.needs > 0 {
			want = fmt.Sprintf("waits for disk: %s are free where /repo is, and a session needs %s", file.Size(int64(test.free)), file.Size(int64(test.needs)))
		}
		if got := awaitedDisk("/repo", test.free, test.all); got != want {
			t.Errorf("%+v: %q, want %q", test, got, want)
		}
	}
}

// TestDiskLevel: growth is measured before starts wait for the disk, and a session is ended before the disk is full, the sooner the
// faster it fills.
func TestDiskLevel(t *testing.T) {
	const second = time.Second
	for _, test := range []struct {
		all, before, free uint64
		want              diskLevel
	}{
		{500e9, 300e9, 300e9, diskEnough},
		{500e9, 257e6, 257e6, diskEnough},
		{500e9, 255e6, 255e6, diskNear},
		{500e9, 127e6, 127e6, diskLow},
		{500e9, 100e6, 120e6, diskLow}, // it is not enough yet
		{500e9, 5e9, 4e9, diskNear},    // full in 4 s
		{500e9, 3e9, 2e9, diskNear},
		{500e9, 2e9, 1e9, diskLow}, // full at the next look
		{96e6, 7e6, 7e6, diskEnough},
		{96e6, 5e6, 5e6, diskNear},
		{96e6, 2e6, 2e6, diskLow},
		{0, 0, 0, diskEnough}, // a file system without a size
	} {
		free := test.before
		f := &lowDisk{look: func() (uint64, uint64, error) { return free, test.all, nil }}
		f.level(time.Unix(0, 0).Add(second))
		free = test.free
		if got, left := f.level(time.Unix(0, 0).Add(2 * second)); got != test.want || test.all > 0 && left != int64(test.free) {
			t.Errorf("%+v: level %d with %d bytes", test, got, left)
		}
	}
	if low, start := uint64(startDisk/lowShare), uint64(startDisk); low >= start {
		t.Error("a session may start and is ended at once")
	}
	f := &lowDisk{look: func() (uint64, uint64, error) { return 0, 0, errors.New("gone") }}
	if got, _ := f.level(time.Unix(1, 0)); got != diskEnough {
		t.Error("it acts on a disk that it does not see")
	}
}

// TestFastest: the session that grows fastest is ended, and none that fills what is left slowly.
func TestFastest(t *testing.T) {
	for _, test := range []struct {
		free int64
		want string
	}{{60e6, "b-1"}, {600e6, ""}, {300e6, ""}, {0, "b-1"}} {
		grows := map[string]int64{"a-1": 1e6, "b-1": 5e6, "c-1": 5e6, "d-1": 0}
		if got := Fastest(test.free, grows); got != test.want {
			t.Errorf("%d bytes are free: %q, want %q", test.free, got, test.want)
		}
	}
	if got := Fastest(0, map[string]int64{"a-1": 0}); got != "" {
		t.Error("ended without growth: " + got)
	}
}

// filler is a session of a team whose disk is watched.
type filler struct {
	sessionhost.Process
	rate  int64
	ended []session.Limit
}

func (f *filler) Growth(context.Context) (int64, error) { return f.rate, nil }

func (f *filler) EndAt(_ context.Context, l session.Limit) error {
	f.ended = append(f.ended, l)
	return nil
}

// TestHoldDisk: of two sessions that fill the disk, one ends, and the next one only after the first has had the time to end. Without
// one that fills it, the log says so once.
func TestHoldDisk(t *testing.T) {
	var log strings.Builder
	fast, slow := &filler{rate: 9e6}, &filler{rate: 7e6}
	c := New(nil, outside.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	c.procs = map[string]sessionhost.Process{"fast-1": fast, "slow-1": slow}
	free := uint64(200e6)
	f := &lowDisk{look: func() (uint64, uint64, error) { return free, 500e9, nil }}
	hold := func() { c.holdDisk(t.Context(), f) }
	hold()
	if len(fast.ended)+len(slow.ended) > 0 {
		t.Fatal("a session ends while enough disk is free")
	}
	free = 100e6
	hold()
	hold()
	if len(fast.ended) != 1 || fast.ended[0] != session.LimitFreeDisk || len(slow.ended) > 0 {
		t.Fatalf("%v, %v", fast.ended, slow.ended)
	}
	fast.rate, f.after = 0, time.Time{}
	hold()
	if len(fast.ended) != 1 || len(slow.ended) != 1 {
		t.Fatalf("%v, %v", fast.ended, slow.ended)
	}
	slow.rate, f.after = 0, time.Time{}
	hold()
	hold()
	if n := strings.Count(log.String(), "no session fills it"); n != 1 || len(slow.ended) != 1 {
		t.Errorf("%d times in %s", n, &log)
	}
}
