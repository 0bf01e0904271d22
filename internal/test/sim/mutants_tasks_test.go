package sim

// ofTasks are faults in the machine of tasks and in what they do with git.
var ofTasks = []mutant{
	{
		breaks: "the result of an earlier job counts",
		file:   "core/task/decide.go", old: "return t.ended(in), in.N != t.N || t.Job == Nothing", new: "return t.ended(in), t.Job == Nothing",
		pkg: "./core/task", run: "Test",
	},
	{
		breaks: "an answer to an earlier question counts",
		file:   "core/task/decide.go", old: "return in.Subject().Event, in.N != t.N || t.Job != Approve", new: "return in.Subject().Event, t.Job != Approve",
		pkg: "./core/task", run: "Test",
	},
	{
		breaks: "a task lands while its question is open",
		file:   "core/task/decide.go", old: "if event == Tried && t.Job != Nothing {", new: "if event == Tried && t.N == 0 {",
		pkg: "./core/task", run: "Test",
	},
	{
		breaks: "a task that is resumed at its landing lands without a question",
		file:   "core/task/decide.go", old: "Approve: ToShow, Land: ToShow, Merged: ToShow,", new: "Approve: ToShow, Land: NeedsRoom, Merged: ToShow,",
		pkg: "./core/task", run: "Test",
	},
	{
		breaks: "a person's request counts towards the limit of rounds",
		file:   "core/task/decide.go", old: "		v.Counted = 0\n", new: "		v.Counted *= 1\n",
		pkg: "./core/task", run: "Test",
	},
	{
		breaks: "checks send a task back without a limit",
		file:   "core/task/decide.go", old: "t.Counted >= t.RoundsMax:", new: "t.Counted > 10*t.RoundsMax:",
		pkg: "./core/task", run: "Test",
	},
	{
		breaks: "the failure of a landing stays after it is approved again",
		file:   "core/task/decide.go", old: "		v.Failure, v.Why = Failure{}, \"\"\n", new: "		v.Why = \"\"\n",
		pkg: "./core/task", run: "Test",
	},
	{
		breaks: "an approval does not include the governing files that it named",
		file:   "core/task/decide.go", old: "Governing: answer.Governing, At: d.at}", new: "At: d.at}",
		pkg: "./core/task", run: "Test",
	},
	{
		breaks: "a task waits for one that was dropped as for one that has landed",
		file:   "core/team/task.go", old: "if len(t.BlockedBy(id)) == 0 {", new: "if len(t.BlockedBy(id)) >= 0 {",
		pkg: "./core/team", run: "Task",
	},
	{
		breaks: "the question of a task stays open when it goes on",
		file:   "core/team/task.go", old: "ok && k.Job != task.Approve && p.State == workflow.Waiting {", new: "ok && k.Job == task.Nothing && p.State == workflow.Running {",
		pkg: "./core/team", run: "Task",
	},
	{
		breaks: "a look at a task's files writes all of them",
		file:   "git/task/task.go", old: "in.Files(ctx, nil, \"update-index\", \"-q\", \"--refresh\")", new: "in.Files(ctx, nil, \"ls-files\")",
		pkg: "./git/task", run: "TestPictureWritesWhatIsNew",
	},
	{
		breaks: "an empty folder stays in the place of a file after a killed landing",
		file:   "git/task/moveback.go", old: "removeEmpty(path) == nil:", new: "path == \"\":",
		pkg: "./git/task", run: "TestMoveTakenBack",
	},
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
