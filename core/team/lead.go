package team

import (
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/workflow"
)

// FilesHere says that the newest files of a run are on the machine that leads. Those of a run that began on another one are there
// only when they have arrived, or when a person lets the run go on without them (workflow.ReleaseAsked).
type FilesHere struct{}

// Led says which host led before the present one.
type Led struct {
	Before string `json:"before"`
	Since  uint64 `json:"since"` // the first epoch of the present one
}

// setTeamTo takes in a change of the team. If another host leads from now on, the state has the paths of that one.
func (t *Team) setTeamTo(set *TeamSet) {
	before, at := t.Leader, t.Root
	t.Hold, t.Stopping, t.Epoch, t.BootID, t.Limits = set.Hold, set.Stopping, set.Epoch, set.BootID, set.Limits
	t.Pool.Places, t.Leader, t.Root, t.Config, t.Governing = set.Places, set.Leader, set.Root, set.Config, set.Governing
	var move FolderMove
	if at != "" && set.Root != "" && at != set.Root {
		move = FolderMove{From: at, To: set.Root}
	}
	if before == set.Leader || set.Leader == "" {
		before = ""
	}
	if before != "" {
		t.Led = Led{before, t.Epoch}
		branchesOn(&t.Hosts, before, true)
		branchesOn(&t.Hosts, t.Leader, false)
	}
	if before != "" || move != (FolderMove{}) {
		movedTeam{t, move, before}.all()
	}
}

// branchesOn notes whether a host may have branches of the team that the leader lacks.
func branchesOn(t *host.Hosts, name string, may bool) {
	if h := t.Hosts[name]; h != nil && h.Branches != may {
		next := *h
		next.Branches = may
		t.Hosts[name] = &next
	}
}

// movedTeam is a team that another host leads than before, or that is in another folder.
type movedTeam struct {
	*Team
	FolderMove
	before string // the host that led; empty: the same one leads
}

func (t movedTeam) all() {
	for _, id := range t.RunIDs() {
		r, note := t.Runs[id], t.Notes[id]
		_, inside := t.Path(r.RepoDir)
		switch {
		case t.before == "":
		case note.Away == t.Leader:
			note.Away = ""
		case note.Away == "" && (hasFiles(r, note) || t.From != "" && !inside):
			note.Away = t.before
		}
		workflow.EachPath(r, t.Of)
		if how := t.JSON(note.Settings.How); how != t.Notes[id].Settings.How || note.Away != t.Notes[id].Away {
			note.Settings.How = how
			put(&t.Notes, id, note)
		}
	}
	usage := t.RunUsage
	t.RunUsage = nil
	for _, repo := range slices.Sorted(maps.Keys(usage)) {
		to := t.Of(repo)
		put(&t.RunUsage, to, t.RunUsage[to].With(usage[repo]))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Dispatches)) {
		f := *t.Dispatches[name]
		f.Path = t.Of(f.Path)
		t.Dispatches[name] = &f
	}
	for _, name := range t.Names() {
		t.agent(t.Agents[name])
	}
	for key, s := range t.Pool.Sessions {
		next := *s
		next.Launch = s.Launch.Moved(t.FolderMove, t.before, t.Leader)
		t.Pool.Sessions[key] = &next
	}
}

// agent moves what is known of an agent's sessions.
func (t movedTeam) agent(a *Agent) {
	for _, s := range a.Sessions() {
		next := *s
		next.Launch = s.Launch.Moved(t.FolderMove, t.before, t.Leader)
		a.setOpen(s.Slot, &next)
	}
	a.Conversations = maps.Clone(a.Conversations)
	for purpose, c := range a.Conversations {
		next := *c
		next.Launch = c.Launch.Moved(t.FolderMove, t.before, t.Leader)
		a.Conversations[purpose] = &next
	}
}

// hasFiles reports whether a run has a folder of its own, or may have written something that it needs.
func hasFiles(r *workflow.Run, note RunMeta) bool {
	return r.Status() != workflow.IsCompleted &&
		(note.Settings.OwnFolder || slices.ContainsFunc(r.Steps, func(p workflow.Progress) bool { return p.N > 0 }))
}

// filesHere lets a run go on that began on another machine. A person who releases it lets it go on with the files that are here.
func (d *decision) filesHere(id, trigger string) error {
	note := d.team.Notes[id]
	if note.Away == "" {
		return &table.Refusal{
			Subject: "run " + id, Event: trigger, State: "noted", Row: "H7",
			Reason: "its files are on the machine that leads",
		}
	}
	d.note(id, "H7", trigger, NoteSet{Settings: note.Settings, Waived: note.Waived, LookAt: note.LookAt, Here: true})
	return nil
}
