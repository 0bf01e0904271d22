package config

import (
	"strings"
	"testing"
)

// TestLimitsOfSessions: the limits of an agent's processes, and which of the team's an agent has.
func TestLimitsOfSessions(t *testing.T) {
	const agent = "\nagents: {a: {command: [x], limits: {%}}}"
	for _, test := range []struct {
		team, agent string
		want        Limits
		fault       string
	}{
		{
			"", "memory: 4G, processes: 500, disk: 20 GB, output: 1T, on_output: end",
			Limits{MemoryBytes: 4e9, Processes: 500, DiskBytes: 20e9, OutputBytes: 1e12, OnOutput: OutputEnds},
			"",
		},
		{"output: 2G, on_output: end, memory: 4G, processes: 3, disk: 1G", "", Limits{OutputBytes: 2e9, OnOutput: OutputEnds}, ""},
		{"output: 2G", "output: 0", Limits{OnOutput: OutputWaits}, ""},
		{"", "memory: 0, disk: 0", Limits{OnOutput: OutputWaits}, ""},
		{"", "memory: 63M", Limits{}, `"63M" is too small for a session; write 64M or more, or 0`},
		{"disk: 1M", "", Limits{}, `"1M" is too small for a session; write 16M or more, or 0`},
		{"", "memory: 4", Limits{}, "4 is not a size; write it like 500M, 20GB or 1T"},
		{"", "memory: 4g", Limits{}, "is not a size"},
		{"", "processes: -1", Limits{}, "the least is 0"},
		{"", "on_output: stop", Limits{}, "it is one of wait, end"},
	} {
		source := "version: 1\nteam: {limits: {" + test.team + "}}" + strings.Replace(agent, "%", test.agent, 1)
		conf, err := Parse(FileName, t.TempDir(), []byte(source), nil)
		switch {
		case test.fault != "":
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%s: %v, want %q", source, err, test.fault)
			}
		case err != nil:
			t.Errorf("%s: %v", source, err)
		case conf.Agents[0].Limits != test.want:
			t.Errorf("%s: %+v, want %+v", source, conf.Agents[0].Limits, test.want)
		}
	}
}
