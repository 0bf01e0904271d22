package sim

// ofTasks are faults in what tasks do with git.
var ofTasks = []mutant{
	{
		breaks: "a task lands on a base that has lost what it was shown on",
		file:   "git/task/asked.go", old: "tip); worktree.GitSaidNo(err) {", new: "tip); worktree.GitSaidNo(err) && tip == \"\" {",
		pkg: "./git/task", run: "TestLandsOnABaseThatHasChanged",
	},
	{
		breaks: "another tree lands than the one that was shown",
		file:   "git/task/asked.go", old: "case err == nil && is == t.Asked.Tree:", new: "case err == nil && is != \"\":",
		pkg: "./git/task", run: "TestLandsTheTreeOfTheQuestion",
	},
	{
		breaks: "a landing whose process died is done again",
		file:   "git/task/step.go", old: "if of == \"\" || of != t.Asked.Commit || commits(commit, on) != nil {", new: "if of != \"\" {",
		pkg: "./git/task", run: "TestRandomOrders|TestLandKilled",
	},
	{
		breaks: "a snapshot has no untracked files",
		file:   "git/task/task.go", old: "} else if !t.copied(name) {", new: "} else if name == \"\" && !t.copied(name) {",
		pkg: "./git/task", run: "TestRandomOrders",
	},
	{
		breaks: "a task lands in a checkout with changes",
		file:   "git/task/step.go", old: "	if len(files) > 0 {\n		return \"\", false,\n			&Blocked",
		new: "	if len(files) > 1000 {\n		return \"\", false,\n			&Blocked",
		pkg: "./git/task", run: "TestRandomOrders|TestLandBesideChanges",
	},
	{
		breaks: "an ignored file of the person is overwritten by a landing",
		file:   "git/task/step.go", old: " \"--no-overwrite-ignore\",", new: "",
		pkg: "./git/task", run: "TestRandomOrders|TestLandOverIgnored",
	},
	{
		breaks: "the checks do not run on merged files",
		file:   "git/task/step.go", old: "		if !t.passed(tree) {\n", new: "		if tree == \"\" {\n",
		pkg: "./git/task", run: "TestRandomOrders|TestChecksOfMergedFiles",
	},
	{
		breaks: "other branches of a task's folder are removed with it",
		file:   "git/task/remove.go", old: "if name != in.On && at[to] != commit {", new: "if name == \"\" && at[to] != commit {",
		pkg: "./git/task", run: "TestRandomOrders|TestRemoveKeeps",
	},
	{
		breaks: "a folder is made under its own name, so that a half one may be left",
		file:   "git/worktree/clone.go", old: "	making := Aside(c.Dir, MakingSuffix)\n", new: "	making := c.Dir\n",
		pkg: "./git/task", run: "TestRandomOrders|TestMake",
	},
}
