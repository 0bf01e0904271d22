package sim

// ofHistory are faults that Fairlead had once, or that a script found which takes long and now runs in `.ci/run scripts` only. A test
// of the README's command finds each of them.
var ofHistory = []mutant{
	{
		breaks: "a forge's final refusal is tried again, because its text has a number behind a colon",
		file:   "git/forge/program.go", old: "`|\\b(?:returned error|status code|(?:GET|HEAD|POST|PUT|PATCH|DELETE) \\S+): (5\\d\\d)\\b`)",
		new: "`|: (5\\d\\d)\\b`)",
		pkg: "./git/forge", run: "TestWords",
	},
	{
		breaks: "a bug in a handler ends a command that reads without a daemon",
		file:   "api/client/client.go", old: "			err = errAborted\n", new: "			panic(bug)\n",
		pkg: "./api/client", run: "TestPanicOfAHandlerInThisProcess",
	},
	{
		breaks: "the end of a dispatch removes the entry of another open one",
		file:   "files/dispatchfolder/register.go", old: "err == nil && path == f.path {", new: "err == nil && path != \"\" {",
		pkg: "./files/dispatchfolder", run: "TestTheEndOfADispatchLeavesAnothersEntry",
	},
	{
		breaks: "the sum of a day begins anew when the day moves back",
		file:   "core/team/usage.go", old: "	if u.Day < day {", new: "	if u.Day != day {",
		pkg: "./core/team", run: ".",
	},
	{
		breaks: "an edit in the tick of a projection's write is lost",
		file:   "files/exchange/watch.go", old: "	return there == o.nowID && o.nowRead.UnixNano()-there.Mtime >= int64(time.Second)\n",
		new: "	_ = time.Second\n	return there == o.nowID\n",
		pkg: "./files/exchange", run: "TestProjection|TestWrite|TestWhatOthers",
	},
	{
		breaks: "merge says that a task went back to its agent while it is about to be shown to the person",
		file:   "cli/tasks/review.go", old: " || r.Task.Status == view.TaskChecking && r.Task.Why != \"\"", new: "",
		pkg: "./cli/tasks", run: "TestWentBack",
	},
	{
		breaks: "a task that was refused leaves a ref in the repository",
		file:   "git/task/task.go", old: "			_, fault := t.ask(context.WithoutCancel(ctx), nil, \"update-ref\", \"-d\", t.Ref())\n",
		new: "			_, fault := t.ask(context.WithoutCancel(ctx), nil, \"version\")\n",
		pkg: "./git/task", run: "TestMake",
	},
	{
		breaks: "data that is no UTF-8 changes in the journal's archive",
		file:   "engine/journal/line.go", old: "	if utf8.Valid(c.Data) {", new: "	if utf8.Valid(nil) {",
		pkg: "./engine/journal/sqlite", run: "TestCompact",
	},
	{
		breaks: "a byte order mark makes another program's file unreadable",
		file:   "internal/file/json.go", old: "bytes.TrimPrefix(b, []byte(\"\\xef\\xbb\\xbf\"))", new: "bytes.TrimPrefix(b, nil)",
		pkg: "./files/runstate", run: "TestByteOrderMarks",
	},
	{
		breaks: "of a name that occurs twice in a report the last value counts",
		file:   "internal/file/content.go", old: "jsontext.AllowDuplicateNames(c.LastCounts))\n", new: "jsontext.AllowDuplicateNames(true))\n",
		pkg: "./files/runstate", run: "Report",
	},
	{
		breaks: "a task that waits for its branch names only the tasks that land at the moment",
		file:   "work/runs/taskstatus.go", old: "other != id && k.Status == state.Landing && r.RepoDir", new: "other != id && r.RepoDir",
		pkg: "./work/runs", run: "TestLandsAfter", long: "tasks_order",
	},
	{
		breaks: "a comment on a line of a file that the task has deleted is refused",
		file:   "git/task/comments.go", old: "		content, err = t.ask(ctx, nil, \"cat-file\", \"blob\", commit+\":\"+file)\n		old = true\n",
		new: "		old = true\n",
		pkg: "./git/task", run: "TestLine", long: "tasks_trouble",
	},
	{
		breaks: "a folder comes back from its oldest snapshot and not from its newest",
		file:   "git/task/history.go", old: "	i := len(all) - 1\n", new: "	i := min(0, len(all)-1)\n",
		pkg: "./git/task", run: "TestRestore", long: "tasks_review",
	},
	{
		breaks: "a file with lines of a conflict with the base is offered once the agent has committed it",
		file:   "git/task/base.go", old: "		case marked:\n			open[name] = true\n", new: "		case marked && open[name]:\n",
		pkg: "./git/task", run: "TestMarkersAreNotOffered|TestOtherConflicts", long: "tasks_conflict",
	},
	{
		breaks: "on GitLab the comment of a person who is no member reaches the agent",
		file:   "git/forge/gitlab.go", old: "			may[n.Author.ID] = false\n", new: "			may[n.Author.ID] = true\n",
		pkg: "./git/forge", run: "TestGitLab", long: "tasks-gitlab",
	},
	{
		breaks: "on GitLab the comment of a member who may not write to the project reaches the agent",
		file:   "git/forge/gitlab.go", old: "member.Level >= developer", new: "member.Level >= 0",
		pkg: "./git/forge", run: "TestGitLab",
	},
	{
		breaks: "scripts of package.json count as nothing that runs",
		file:   "core/governing/parts.go", old: "		\"type\",\n	}, object},", new: "		\"type\", \"scripts\",\n	}, object},",
		pkg: "./core/governing", run: "TestDiffers|TestMixedFiles", long: "governing-files",
	},
	{
		breaks: "compact moves also what is younger than it was told",
		file:   "engine/journal/sqlite/archive.go", old: "		if !c.Time.Before(before) {", new: "		if before.IsZero() && !c.Time.Before(before) {",
		pkg: "./engine/journal/sqlite", run: "TestCompactBefore", long: "compact",
	},
	{
		breaks: "tracked state files of agents stop a task from landing",
		file:   "git/task/ownfile.go", old: "	return slices.Contains(t.Homes, path.Clean(\"./\"+dir)) &&", new: "	return slices.Contains(t.Homes, dir+\"/\") &&",
		pkg: "./git/task", run: "TestOwnFiles", long: "init-git",
	},
	{
		breaks: "doctor calls a program for pull requests signed in that is not",
		file:   "cli/doctor/look.go", old: "	who, err := f.SignedIn(ctx)\n	if err != nil {", new: "	who, err := f.SignedIn(ctx)\n	if err != nil && who != \"\" {",
		pkg: "./cli/doctor", run: "TestForge", long: "doctor-forge",
	},
	{
		breaks: "doctor names the folders of tasks that go on",
		file:   "cli/doctor/look.go", old: "t == nil || t.Status != view.TaskDone && t.Status != view.TaskDropped {", new: "t == nil {",
		pkg: "./cli/doctor", run: "TestFolders", long: "doctor-folders",
	},
}
