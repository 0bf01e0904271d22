package policy

import "testing"

// What a repository's configuration may name, and which of it git runs when it only reads.
func TestGitProgram(t *testing.T) {
	for _, c := range []struct{ config, program, hooks string }{
		{"", "", ""},
		{"[core]\n\tbare = false\n[user]\n\tname = x\n", "", ""},
		{"[core]\nfsmonitor = true\n", "", ""},
		{"[core]\nfsmonitor = ./x\n", "core.fsmonitor", ""},
		{"[CORE] FSMonitor=./x", "core.fsmonitor", ""},
		{"[core]\nfsmonitor \\\n = ./x\n", "core.fsmonitor", ""},
		{"[diff \"a b\"]\n\ttextconv = cat\n", "diff.textconv", ""},
		{"[diff.old]\ncommand = x", "diff.command", ""},
		{"[filter \"x\"]\nclean = x\n", "filter.clean", ""},
		{"[include]\npath = x\n", "include", ""},
		{"[includeIf \"gitdir:x\"]\npath = x\n", "includeif", ""},
		{"[pager]\nlog = false\n", "", ""},
		{"[pager]\nlog = ./x\n", "pager.log", ""},
		{"[gpg \"ssh\"]\nprogram = x\n", "gpg.program", ""},
		{"[core]\n\thooksPath = .husky/_\n", "", ".husky/_"},
		{"[core]\n\thooksPath = ~/x\n", "core.hookspath", ""},
		{"[core]\n\thooksPath = .husky # ours\n", "core.hookspath", ""},
		{"\ufeff[core]\nfsmonitor = ./x\n", "core.fsmonitor", ""},
		{"[diff \"a]b\"]\r\n\ttextconv = x\r\n", "diff.textconv", ""},
		{"[remote \"origin\"]\nurl = x\nfetch = y\n[branch \"main\"]\nremote = origin\n", "", ""},
	} {
		if program, hooks := gitProgram(c.config); program != c.program || hooks != c.hooks {
			t.Errorf("%q names %q, hooks %q; it should %q, %q", c.config, program, hooks, c.program, c.hooks)
		}
	}
}
