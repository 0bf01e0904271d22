package sessions

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/spawn"
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
