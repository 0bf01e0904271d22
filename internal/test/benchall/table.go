package main

// bench is one start of a test program.
type bench struct {
	pkg   string
	bench string // -test.bench
	time  string // -test.benchtime; empty: 200ms
	once  bool   // it takes long, so it runs in the first round only
	rows  []row
}

// row is one line of the table, of one benchmark.
type row struct {
	what   string
	bench  string  // as the test program prints it, without the number of processors
	figure string  // a metric
	beside string  // a metric: the ratio to a yardstick; empty: there is none
	aim    float64 // of the ratio, or of the figure if there is none
	more   bool    // more is better
}

// table has every aim of doc/performance.md. The test of this package compares the names of benchmarks with the code. A row
// whose metric was renamed is printed as not measured.
func table() []bench {
	return []bench{
		{"app", `^BenchmarkCommands$`, "", false, []row{
			{"durable commands, 1 caller", "BenchmarkCommands/callers=1", "commands/s", "commands/bare-sync", 0.55, true},
			{"16 callers", "BenchmarkCommands/callers=16", "commands/s", "commands/bare-sync", 3, true},
			{"256 callers", "BenchmarkCommands/callers=256", "commands/s", "commands/bare-sync", 8, true},
		}},
		{"app", `^BenchmarkFlip$`, "", false, []row{
			{"flip in the file to the answer in the file", "BenchmarkFlip", "µs/flip", "flip/bare-sync", 6, false},
		}},
		{"api/server", `^BenchmarkFlip$`, "", false, []row{
			{"order over the socket to its answer", "BenchmarkFlip", "µs/flip", "flip/bare-sync", 4, false},
		}},
		{"app", `^BenchmarkHandOff$`, "", false, []row{
			{"turn hand-off, 3 agents", "BenchmarkHandOff/agents=3", "µs/hand-off", "hand-off/bare-sync", 2, false},
			{"turn hand-off, 100 agents", "BenchmarkHandOff/agents=100", "µs/hand-off", "hand-off/bare-sync", 3, false},
		}},
		{"app", `^BenchmarkDeath$`, "", false, []row{
			{"death of an agent to its event", "BenchmarkDeath", "ms/death-known", "", 5, false},
		}},
		{"cmd/fairlead", `^BenchmarkRun$`, "1x", true, []row{
			{"20 steps that do nothing, `fairlead run`, no daemon", "BenchmarkRun", "ms/run", "", 760, false},
		}},
		{"cmd/fairlead", `^BenchmarkUp$`, "1x", true, []row{
			{"daemon ready", "BenchmarkUp", "ms/ready", "", 60, false},
			{"memory of the daemon at rest", "BenchmarkUp", "MB-resident", "", 45, false},
		}},
		{"cmd/fairlead-hook", `^BenchmarkHook$`, "1s", true, []row{
			{"hook, allowed, in empty Go programs", "BenchmarkHook", "ms/allowed", "empty-programs/allowed", 5, false},
			{"hook, denied and recorded", "BenchmarkHook", "ms/denied", "empty-programs/denied", 5, false},
		}},
		{"process/proxy", `^BenchmarkStream$`, "1x", false, []row{
			{"stream through the proxy, throughput", "BenchmarkStream", "throughput/direct-tunnel", "", 0.9, true},
			{"the same with a key", "BenchmarkStream", "throughput/direct-key", "", 0.9, true},
			{"stream through the proxy, later first byte", "BenchmarkStream", "ms/first-byte-more-tunnel", "", 2, false},
			{"the same with a key", "BenchmarkStream", "ms/first-byte-more-key", "", 2, false},
		}},
		{"cmd/fairlead", `^BenchmarkLists$`, "1x", true, []row{
			{"`ps` with 200 agents and 1,000 tasks", "BenchmarkLists", "ms/ps", "", 60, false},
			{"`tasks`", "BenchmarkLists", "ms/tasks", "", 60, false},
			{"`inbox`", "BenchmarkLists", "ms/inbox", "", 60, false},
		}},
		{"internal/test/uitest", `^BenchmarkLoad$`, "1x", true, []row{
			{"page: first paint on loopback", "BenchmarkLoad", "ms/first-paint", "", 300, false},
			{"page: requests of a cold load", "BenchmarkLoad", "requests", "", 12, false},
			{"page: slow 3G to the first card", "BenchmarkLoad", "s/slow-3G", "", 5, false},
		}},
		{"cmd/fairlead", `^BenchmarkTaskStart$`, "3x", true, []row{
			{"start of a task, 100,000 files", "BenchmarkTaskStart", "ms/task-start", "", 2000, false},
			{"the same beside `git worktree add`", "BenchmarkTaskStart", "ms/worktree-add", "task-start/worktree-add", 0, false},
			{"disk of a task there, without what all share", "BenchmarkTaskStart", "MB-of-a-task", "", 0, false},
			{"disk that all tasks share", "BenchmarkTaskStart", "MB-shared-by-tasks", "", 0, false},
			{"disk of a worktree", "BenchmarkTaskStart", "MB-of-a-worktree", "", 0, false},
		}},
		{"cmd/fairlead", `^BenchmarkTasks$`, "3x", true, []row{
			{"12 tasks with an agent of 10 ms, beside git in a shell", "BenchmarkTasks", "ms/twelve-tasks", "twelve-tasks/shell", 0, false},
		}},
		{"app", `^BenchmarkRecover$`, "1x", true, []row{
			{"start from a snapshot at 1,000,000 changes", "BenchmarkRecover", "ms/with-snapshot", "", 300, false},
		}},
		{"cmd/fairlead", `^BenchmarkAll$`, "1x", true, []row{
			{"200 agents: start all", "BenchmarkAll", "ms/start-all", "", 4000, false},
			{"200 agents: down", "BenchmarkAll", "ms/down-now", "", 2000, false},
			{"memory of a shim", "BenchmarkAll", "MB-of-a-shim", "", 6, false},
		}},
		{"cmd/fairlead", `^BenchmarkBuild$`, "1x", true, []row{
			{"size of the stripped program", "BenchmarkBuild", "MB-stripped", "", 45, false},
			{"build from an empty cache", "BenchmarkBuild", "s/build", "", 90, false},
		}},
	}
}
