package main

import "slices"

// bench is one start of a test program.
type bench struct {
	section, pkg string
	bench        string // -test.bench
	time         string // -test.benchtime; empty: 200ms
	once         bool   // it takes long to prepare, so it runs in the first round only
	rows         []row
}

// row is one line of a table, of one benchmark.
type row struct {
	what   string
	bench  string  // as the test program prints it, without the number of processors
	figure string  // a metric
	beside string  // a metric: the ratio to a yardstick; empty: there is none
	aim    float64 // of the ratio; 0: none
	more   bool    // more is better
}

// table lists everything that is measured. The test of this package compares the names of
// benchmarks with the code. A row whose metric was renamed is printed as not measured.
func table() []bench {
	return slices.Concat(journalTable(), processTable(), runTable(), hostTable(), talkTable(), dispatchTable())
}

func journalTable() []bench {
	const section = "Requests and journal"
	return []bench{
		{section, "controller", `^BenchmarkCommands$/^disk=.0s$/^callers=(1|16|256)$`, "", false, []row{
			{"durable requests, 1 caller", "BenchmarkCommands/disk=+0s/callers=1", "commands/s", "commands/bare-sync", 0.8, true},
			{"16 callers", "BenchmarkCommands/disk=+0s/callers=16", "commands/s", "commands/bare-sync", 8, true},
			{"256 callers", "BenchmarkCommands/disk=+0s/callers=256", "commands/s", "commands/bare-sync", 28, true},
		}},
		{section, "controller", `^BenchmarkLoop$`, "", false, []row{
			{"the loop alone: a request", "BenchmarkLoop/commands", "best-µs/command", "", 0, false},
			{"the loop alone: a hand-off", "BenchmarkLoop/hand-offs", "best-µs/hand-off", "", 0, false},
		}},
		{section, "journal/sqlite", `^BenchmarkAppend$`, "", false, []row{
			{"the journal alone, 1 change at once", "BenchmarkAppend/changes=1", "changes/s", "of-bare", 0, true},
			{"16 changes at once", "BenchmarkAppend/changes=16", "changes/s", "of-bare", 0, true},
			{"256 changes at once", "BenchmarkAppend/changes=256", "changes/s", "of-bare", 0, true},
		}},
		{section, "journal/sqlite", `^BenchmarkRead$`, "", false, []row{
			{"read, decode and verify 100,000 changes", "BenchmarkRead", "ns/change", "times-bare", 0, false},
		}},
		{section, "journal/sqlite", `^BenchmarkReadRare$`, "", true, []row{
			{"one entity with two changes, of 1,000,000", "BenchmarkReadRare", "ns/op", "of-all", 0, false},
		}},
		{section, "controller", `^BenchmarkRecover$`, "", true, []row{
			{"recovery at 100,000 changes with a snapshot", "BenchmarkRecover", "ms/with-snapshot", "", 0, false},
			{"recovery at 100,000 changes without", "BenchmarkRecover", "ms/without", "without/bare", 2, false},
		}},
		{section, "controller", `^BenchmarkFlip$`, "", false, []row{
			{"a foreign write to the answer in the file", "BenchmarkFlip", "µs/flip", "flip/bare-sync", 6, false},
		}},
		{section, "api/server", `^BenchmarkFlip$`, "", false, []row{
			{"a request over the socket that opens a session", "BenchmarkFlip", "µs/flip", "flip/bare-sync", 2, false},
		}},
	}
}

func processTable() []bench {
	const section = "Processes"
	return []bench{
		{section, "controller", `^BenchmarkDeath$`, "", false, []row{
			{"death of an agent to its event, process tree ended and synced", "BenchmarkDeath", "µs/death-known", "death/bare-wait", 0, false},
		}},
		{section, "controller", `^BenchmarkRestart$`, "", false, []row{
			{"a killed continuous agent to its next session, 1 ms back-off included", "BenchmarkRestart", "ms/restart", "restart/bare-restart", 0, false},
		}},
		{section, "shim", `^Benchmark(Start|Done)$`, "", false, []row{
			{"start of a session's process with its shim", "BenchmarkStart", "ns/op", "", 0, false},
			{"death of an agent, up to the shim", "BenchmarkDone", "mean-ms", "", 0, false},
		}},
		{section, "cmd/fairlead", `^Benchmark(Version|Up)$`, "1s", true, []row{
			{"`fairlead version`", "BenchmarkVersion", "ms/version", "version/empty-program", 2.5, false},
			{"`fairlead up` to ready", "BenchmarkUp", "ms/ready", "ready/empty-program", 0, false},
			{"memory of the daemon, three idle agents", "BenchmarkUp", "MB-resident", "", 0, false},
		}},
		{section, "cmd/fairlead-hook", `^BenchmarkHook$`, "1s", true, []row{
			{"`fairlead-hook` outside a dispatch", "BenchmarkHook", "ms/outside", "empty-programs/outside", 2, false},
			{"`fairlead-hook`, allowed", "BenchmarkHook", "ms/allowed", "empty-programs/allowed", 2, false},
			{"`fairlead-hook`, denied and recorded", "BenchmarkHook", "ms/denied", "empty-programs/denied", 2, false},
			{"`fairlead hook`, the whole program", "BenchmarkHook", "ms/fairlead-allowed", "empty-programs/fairlead-allowed", 2, false},
		}},
		{section, "driver/adapter", `^BenchmarkHop$`, "", false, []row{
			{"an update of a program through its adapter", "BenchmarkHop", "µs/update", "of-straight", 2.5, false},
		}},
		{section, "driver/acp", `^BenchmarkHear$`, "", false, []row{
			{"a chunk of an ACP answer, pipe to event", "BenchmarkHear", "ns/chunk", "times-reading-it", 0, false},
		}},
	}
}

func runTable() []bench {
	const section = "Runs"
	return []bench{
		{section, "controller", `^BenchmarkRunSteps$/^chain=100$`, "1x", false, []row{
			{"a step that only reports, 100 in a row", "BenchmarkRunSteps/chain=100", "ms/step", "x-bare", 0, false},
			{"synced appends for a step", "BenchmarkRunSteps/chain=100", "appends/step", "", 0, false},
		}},
		{section, "controller", `^BenchmarkRunWrapper$`, "1x", true, []row{
			{"twenty steps with a trivial Python wrapper", "BenchmarkRunWrapper", "s/run", "x-seed's-tool", 50, true},
		}},
		{section, "controller", `^BenchmarkRunResume$`, "1x", false, []row{
			{"resume a run of 10,000 steps at its last", "BenchmarkRunResume", "ms/resume", "resume/bare-decode", 0, false},
		}},
	}
}

func hostTable() []bench {
	const section = "Hosts"
	return []bench{
		{section, "cmd/fairlead", `^BenchmarkHostStep$`, "3x", true, []row{
			{"a no-op step of a run with a checkout, on another host", "BenchmarkHostStep", "ms/step-on-a-host", "host/here", 0, false},
		}},
		{section, "cluster/remote", `^BenchmarkTrees$`, "5x", false, []row{
			{"the files of a step that changes nothing", "BenchmarkTrees/changes=nothing", "ms/step", "", 0, false},
			{"the files of a step that changes a file", "BenchmarkTrees/changes=a-file", "ms/step", "", 0, false},
		}},
		{section, "cluster/remote", `^Benchmark(Output|Line)$`, "9x", false, []row{
			{"output of a session on a host, 64 MiB", "BenchmarkOutput", "MB/s-host", "host/here", 0, false},
			{"a line of it, printed to read", "BenchmarkLine", "ms/line-host", "host/here", 0, false},
		}},
	}
}

func talkTable() []bench {
	const section = "Channels, crew and feed"
	return []bench{
		{section, "controller", `^BenchmarkHandOff$/^channels=1$`, "", false, []row{
			{"a hand-off, last word to the next agent, 1 channel of 3 agents", "BenchmarkHandOff/channels=1/agents=3", "µs/hand-off", "hand-off/bare-sync", 1.5, false},
			{"1 channel of 100 agents", "BenchmarkHandOff/channels=1/agents=100", "µs/hand-off", "hand-off/bare-sync", 1.5, false},
		}},
		{section, "controller", `^BenchmarkHandOff$/^channels=1000$`, "", true, []row{
			{"1,000 channels of 3 agents", "BenchmarkHandOff/channels=1000/agents=3", "µs/hand-off", "hand-off/bare-sync", 0, false},
			{"1,000 channels of 100 agents", "BenchmarkHandOff/channels=1000/agents=100", "µs/hand-off", "hand-off/bare-sync", 0, false},
		}},
		{section, "api/server", `^BenchmarkHandOff$`, "", false, []row{
			{"a hand-off over HTTP, two requests included", "BenchmarkHandOff", "µs/hand-off", "hand-off/bare-sync", 0, false},
		}},
		{section, "controller", `^Benchmark(TurnsAtOnce|Say)$`, "", false, []row{
			{"hand-offs in 256 channels at once", "BenchmarkTurnsAtOnce", "hand-offs/s", "hand-offs/bare-sync", 28, true},
			{"messages of people, in 64 channels", "BenchmarkSay", "messages/s", "messages/bare-sync", 0, true},
		}},
		{section, "controller", `^Benchmark(Report|Import|Transcript|Page)$`, "", false, []row{
			{"a report about eight members, lead to page", "BenchmarkReport", "µs/report-seen", "report-seen/bare-sync", 0, false},
			{"a report about eight members, to the files", "BenchmarkReport", "µs/report-in-files", "report-in-files/bare-sync", 0, false},
			{"import of eight documents", "BenchmarkImport", "µs/import-of-8", "import-of-8/bare-sync", 0, false},
			{"newest page of a transcript of 100,000 messages", "BenchmarkTranscript", "µs/newest-page", "newest-page/bare-read-of-100", 0, false},
			{"newest page of a channel with 100,000 entries", "BenchmarkPage", "µs/page", "", 0, false},
		}},
		{section, "api/server", `^Benchmark(Watchers|Crew)$`, "", false, []row{
			{"an event to the last of 1,000 watchers", "BenchmarkWatchers", "ms-median", "x-bare", 1.3, false},
			{"the crew over the API", "BenchmarkCrew", "µs/team", "team/bare", 0, false},
		}},
		{section, "api/caller", `^BenchmarkWhoAsks$`, "", false, []row{
			{"identify the sender of a TCP request", "BenchmarkWhoAsks", "ns/op", "", 0, false},
		}},
	}
}

func dispatchTable() []bench {
	const section = "Dispatch and permissions"
	return []bench{
		{section, "controller", `^BenchmarkFolderLine$`, "", false, []row{
			{"a line that another program wrote, to feed and journal", "BenchmarkFolderLine", "µs/line-seen", "line-seen/bare-sync", 0, false},
		}},
		{section, "dispatchfolder", `^Benchmark(Input|Session|Judge)$`, "", false, []row{
			{"an input: lock, decide, four or five synced files", "BenchmarkInput", "µs/input", "times-a-synced-line", 0, false},
			{"read the state of a folder with 10,000 lines", "BenchmarkSession", "µs/session", "times-of-10-lines", 0, false},
			{"read the state and judge a shell command", "BenchmarkJudge", "ns/op", "", 0, false},
		}},
		{section, "policy", `^Benchmark(Judge|Answer)$`, "", false, []row{
			{"judge a shell command, short", "BenchmarkJudge/short", "ns/op", "", 0, false},
			{"judge a shell command, long", "BenchmarkJudge/long", "ns/op", "", 0, false},
			{"answer a question of three commands by patterns", "BenchmarkAnswer", "ns/op", "", 0, false},
		}},
		{section, "rank", `^BenchmarkRank$`, "", false, []row{
			{"rank 1,000 descriptions", "BenchmarkRank", "ns/op", "", 0, false},
		}},
	}
}
