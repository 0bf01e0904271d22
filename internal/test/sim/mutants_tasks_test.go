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
		file:   "git/task/move.go", old: "	if len(files) == 0 {\n		return nil", new: "	if len(files) < 1000 {\n		return nil",
		pkg: "./git/task", run: "TestRandomOrders|TestLandBesideChanges",
	},
	{
		breaks: "an ignored file of the person is overwritten by a landing",
		file:   "git/task/moveback.go", old: "	if len(f.Files) == 0 {\n", new: "	if len(f.Files) < 1000 {\n",
		pkg: "./git/task", run: "TestRandomOrders|TestLandOverIgnored",
	},
	{
		breaks: "what a killed landing has left in the checkout stays",
		file:   "git/task/step.go", old: "	if err := t.repair(ctx); err != nil {\n", new: "	if err := error(nil); err != nil {\n",
		pkg: "./git/task", run: "TestMoveKilled",
	},
	{
		breaks: "the lock of another git process is removed",
		file:   "git/task/move.go", old: "os.SameFile(mine, its)", new: "mine != its",
		pkg: "./git/task", run: "TestMoveWaitsForLocks",
	},
	{
		breaks: "a file that the person has changed since a killed landing is overwritten",
		file:   "git/task/moveback.go", old: "	return map[bool]int{true: there}[is], err", new: "	return map[bool]int{true: there, false: there}[is], err",
		pkg: "./git/task", run: "TestMoveTakenBack",
	},
	{
		breaks: "a branch moves while it is rebased",
		file:   "git/task/held.go", old: "== ref {\n			return \"a rebase\"", new: "== branch {\n			return \"a rebase\"",
		pkg: "./git/task", run: "TestHalfDoneIsNotMoved",
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
