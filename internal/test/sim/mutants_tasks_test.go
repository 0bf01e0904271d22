package sim

// ofTasks are faults in what tasks do with git.
var ofTasks = []mutant{
	{
		breaks: "a landing whose process died is done again",
		file:   "task/step.go", old: "if of != work {", new: "if of != \"\" {",
		pkg: "./task", run: "TestRandomOrders|TestLandKilled",
	},
	{
		breaks: "a snapshot has no untracked files",
		file:   "task/task.go", old: "!strings.HasSuffix(name, \"/\") && !t.copied(name) {", new: "name == \"\" && !t.copied(name) {",
		pkg: "./task", run: "TestRandomOrders",
	},
	{
		breaks: "a task lands in a checkout with changes",
		file:   "task/step.go", old: "files := worktree.Zeroed(dirty); len(files) > 0 {", new: "files := worktree.Zeroed(dirty); len(files) > 1000 {",
		pkg: "./task", run: "TestRandomOrders|TestLandBesideChanges",
	},
	{
		breaks: "an ignored file of the person is overwritten by a landing",
		file:   "task/step.go", old: "\"--no-overwrite-ignore\", ", new: "",
		pkg: "./task", run: "TestRandomOrders|TestLandOverIgnored",
	},
	{
		breaks: "the checks do not run on merged files",
		file:   "task/step.go", old: "		if !t.passed(tree) {\n", new: "		if tree == \"\" {\n",
		pkg: "./task", run: "TestRandomOrders|TestChecksOfMergedFiles",
	},
	{
		breaks: "other branches of a task's folder are removed with it",
		file:   "task/remove.go", old: "\"^refs/remotes/*\"}", new: "\"^refs/*\"}",
		pkg: "./task", run: "TestRandomOrders|TestRemoveKeeps",
	},
	{
		breaks: "a folder is made under its own name, so that a half one may be left",
		file:   "task/task.go", old: "	making := worktree.Aside(t.Tree, worktree.MakingSuffix)\n", new: "	making := t.Tree\n",
		pkg: "./task", run: "TestRandomOrders|TestMake",
	},
}
