package sandbox

// unheldWords say what a row that is not held lets happen, as one sentence each. They are the words of `why`, of doctor, of the line
// after the ready line, and of doc/agents/permissions.md.
var unheldWords = map[Row]string{
	RowWrite:      "its program can write files outside of its folders",
	RowAttributes: "its program can change modes, owners, times and attributes of files outside of its folders",
	RowInside:     "its program can read and write folders inside its workspace that should be read-only or hidden",
	RowRead:       "its program can read files outside of its folders",
	RowNames:      "its program can look up names, sizes, modes and times of files outside of its folders",
	RowSocket:     "its program can connect to services of this machine",
	RowProcess:    "its program can see processes of this machine, and act on those of its user",
	RowGit:        "git reads its repository outside of a view",
	RowRoot:       "its program has rights that an ordinary user does not have",
	RowNetwork:    "its program can reach every host of the network",
}

// Unheld says what can happen where a wall does not hold the row.
func (r Row) Unheld() string { return unheldWords[r] }
