package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/api/server"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/cli/probe"
	"github.com/fairlead-dev/fairlead/cli/questions"
	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/git/task"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/claudehook"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/notify"
)

const (
	logTailMax = 64 << 10    // of the transition log; much more than its longest line
	clockSlack = time.Second // usual corrections of the clock are smaller
	askDaemon  = 10 * time.Second
)

// lookAtDisk checks that there is room for the journal and agents' output.
func lookAtDisk(dir string) []Finding {
	free, _, err := file.DiskFree(dir)
	if err != nil {
		return []Finding{{About: "disk", What: "how much is free is not known: " + err.Error(), Do: "look with df"}}
	}
	if free < file.DiskFreeMin {
		return []Finding{{
			About: "disk", What: fmt.Sprintf("only %d MiB are free where fairlead keeps its state", free>>20),
			Do: "free some: the daemon stops when the disk is full, so that no answered order is lost",
		}}
	}
	return []Finding{{OK: true, About: "disk", What: fmt.Sprintf("%d MiB are free", free>>20)}}
}

// lookAtBudget compares what .fairlead takes with team.disk.
func lookAtBudget(ctx context.Context, a *cli.App, conf *config.Config) []Finding {
	if conf == nil {
		return nil
	}
	is, err := workspace.MeasureDisk(ctx, a.Dir, conf.Team.DiskBytes)
	switch {
	case err != nil:
		return []Finding{{About: "disk", What: err.Error(), Do: "make it readable"}}
	case is.Level() > 0:
		return []Finding{{OK: is.Level() < 2, About: "disk", What: is.String(), Do: workspace.WayOut}}
	}
	return []Finding{{OK: true, About: "disk", What: is.String()}}
}

// lookAtSockets checks the runtime folders of this user. Sockets of other workspaces are only
// counted; only this workspace's own are checked and removed.
func lookAtSockets(ctx context.Context, a *cli.App) []Finding {
	own, err := ownSockets(a)
	if err != nil {
		return []Finding{{About: "sockets", What: err.Error(), Do: "fix that, then run doctor again"}}
	}
	var findings []Finding
	mine, others := 0, 0
	for _, s := range shim.Sockets() {
		name := filepath.Base(s.Path)
		isSocket := strings.HasPrefix(name, "h-") || strings.HasPrefix(name, "d-")
		switch {
		case isSocket && !own[name]:
			others++
		case s.Fault != "":
			findings = append(findings,
				Finding{
					About: "sockets", What: s.Path + ": " + s.Fault,
					Do: "only its owner may have access: change its owner and mode, or remove it",
				})
		case s.Stale:
			findings = append(findings, Finding{
				About: "sockets", What: "no process listens on " + s.Path, Do: "`fairlead doctor --fix` removes it; it is harmless",
				Fix: func(context.Context) (string, error) { return "removed", s.Remove() },
			})
		default:
			mine++
		}
	}
	if len(findings) == 0 {
		return []Finding{{
			OK: true, About: "sockets",
			What: fmt.Sprintf("%d of this workspace, none stale, all ours alone; %d of others", mine, others),
		}}
	}
	return findings
}

// ownSockets are the names of the sockets of this workspace's daemon and shims.
func ownSockets(a *cli.App) (map[string]bool, error) {
	daemon, err := server.SocketPath(a.Dir)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{filepath.Base(daemon): true}
	folder := filepath.Join(a.Dir, ".fairlead", "sessions")
	names, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, entry := range names {
		name, err := shim.SocketOf(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		own[name] = true
	}
	return own, nil
}

// lookAtLog checks the end of a transition log: a daemon that was killed may leave an incomplete
// line, which the next one removes. A running daemon may be writing the line.
func lookAtLog(path, called string, written bool) []Finding {
	torn, err := tornAt(path)
	switch {
	case errors.Is(err, os.ErrNotExist) || written:
		return nil
	case err != nil:
		return []Finding{{About: "log", What: err.Error(), Do: "move " + path + " away; it is written anew from the journal"}}
	case torn < 0:
		return []Finding{{OK: true, About: "log", What: called + " ends with a whole line"}}
	}
	return []Finding{{
		About: "log", What: called + " ends in the middle of a line",
		Do: "`fairlead doctor --fix` cuts it off, and so does the next start; it is written again from the journal",
		Fix: func(context.Context) (string, error) {
			if cli.IsLocked(filepath.Join(filepath.Dir(filepath.Dir(path)), "lock")) {
				return "nothing was cut: a daemon has started meanwhile and does it", nil
			}
			return fmt.Sprintf("cut after byte %d", torn), os.Truncate(path, torn)
		},
	}}
}

// tornAt returns where an incomplete last line begins; -1 if the last line is complete.
func tornAt(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return -1, err
	}
	from := max(0, info.Size()-logTailMax)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return -1, err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	if end == 0 && from > 0 {
		return -1, fmt.Errorf("%s has a last line of more than %d bytes, which no transition has", path, logTailMax)
	}
	if end == len(text) {
		return -1, nil
	}
	return from + int64(end), nil
}

// lookAtTruth compares the journal with the actual state: it asks the daemon if one runs, and makes
// a dry run of the recovery otherwise. own is the name of a host that does not lead.
func lookAtTruth(ctx context.Context, a *cli.App, conf *config.Config, own string) []Finding {
	client, err := a.Dial()
	if err == nil {
		defer client.Close()
		return truthByDaemon(ctx, a, client, own)
	}
	if cli.IsLocked(filepath.Join(a.Dir, ".fairlead", "lock")) {
		return nil // the finding about the daemon says so already
	}
	var findings []Finding
	if own == "" {
		plan, err := daemon.DryRun(ctx, a, conf)
		if err != nil {
			return []Finding{{About: "agents", What: "the result of a start is not known: " + err.Error(), Do: "fix that first"}}
		}
		for _, l := range plan.Lines {
			findings = append(findings, truthOf(l))
			if l.Session != "" {
				findings = append(findings, lookAtShim(ctx, a, l.Session))
			}
		}
	}
	j, done, err := offline.Journal(ctx, a.Dir)
	if own != "" && errors.Is(err, offline.ErrNoJournal) {
		return nil
	}
	if err != nil {
		return append(findings, Finding{About: "journal", What: err.Error(), Do: "run `fairlead doctor` again"})
	}
	findings = append(findings, lookAtHistory(ctx, a, j)...)
	if err := done(); err != nil {
		findings = append(findings, Finding{About: "journal", What: err.Error(), Do: "remove the copy by hand"})
	}
	return findings
}

// truthOf reports whether an agent's file and processes match the journal.
func truthOf(l view.PlanLine) Finding {
	about := "agent " + l.Agent
	var against []string
	for _, piece := range l.Why {
		if !piece.Holds {
			against = append(against, piece.Source+": "+piece.What)
		}
	}
	if len(against) == 0 {
		return Finding{OK: true, About: about, What: "its file and its processes match the journal"}
	}
	return Finding{
		About: about, What: "it differs from the journal: " + strings.Join(against, "; "),
		Do: "`fairlead up` records it; `fairlead up --plan` says what it would do",
	}
}

// truthByDaemon asks the daemon for its evidence about each agent. own is the name of a host that does not lead: that of files is of
// the leader's machine then.
func truthByDaemon(ctx context.Context, a *cli.App, client *apiclient.Client, own string) []Finding {
	ctx, cancel := context.WithTimeout(ctx, askDaemon)
	defer cancel()
	team, err := client.Agents(ctx)
	if err != nil {
		return []Finding{{About: "agents", What: "the daemon did not report their status: " + err.Error(), Do: "run doctor again"}}
	}
	var findings []Finding
	for _, agent := range team.Agents {
		about := "agent " + agent.Name
		for _, s := range agent.Sessions {
			findings = append(findings, lookAtSession(ctx, a, own, s))
		}
		if own != "" {
			continue
		}
		if agent.Doubt != "" {
			findings = append(findings,
				Finding{About: about, What: agent.Doubt, Do: "`fairlead why " + agent.Name + "` shows the evidence"})
		}
		why, err := client.Why(ctx, agent.Name)
		if err != nil {
			findings = append(findings, Finding{About: about, What: err.Error(), Do: "ask again"})
			continue
		}
		for _, piece := range why.Evidence {
			if piece.Source == "file" && !piece.Holds && agent.Loop != string(config.LoopForeign) {
				findings = append(findings,
					Finding{
						About: about, What: "its file does not match the journal: " + piece.What,
						Do: "run doctor again: the file may be in the middle of an update; then `fairlead why " + agent.Name + "`",
					})
			}
		}
	}
	page, err := client.Journal(ctx, apiclient.JournalQuery{Tail: 1})
	if err == nil && len(page.Changes) > 0 {
		findings = append(findings, lookAtClock(page.Changes[0].Time))
	}
	switch {
	case own != "":
		findings = append(findings,
			Finding{
				OK: true, About: "agents",
				What: "their files are on the leader's machine; `fairlead doctor` there compares them with the journal",
			})
	case len(findings) == 0:
		findings = append(findings, Finding{OK: true, About: "agents", What: "every file matches the journal"})
	}
	return findings
}

// lookAtSession checks the shim of an open session, if it is on this machine. own is the name of a host that does not lead.
func lookAtSession(ctx context.Context, a *cli.App, own string, s view.SessionView) Finding {
	if s.Host == own {
		return lookAtShim(ctx, a, s.ID)
	}
	where := "host " + s.Host
	if s.Host == "" {
		where = "the leader's machine"
	}
	return Finding{OK: true, About: "session " + s.ID, What: "it is on " + where + ", which has its folder"}
}

// lookAtShim checks the shim of an open session.
func lookAtShim(ctx context.Context, a *cli.App, session string) Finding {
	about := "session " + session
	s, err := shim.Look(ctx, filepath.Join(a.Dir, ".fairlead", "sessions", session))
	switch {
	case err != nil:
		return Finding{About: about, What: err.Error(), Do: "fix that, then run doctor again"}
	case s.Other != nil:
		return Finding{
			About: about, What: s.Silence,
			Do: "let it finish, end it (`fairlead why` says how), or run the version of Fairlead that started it",
		}
	case s.Phase == shim.Running && !s.Answers:
		return Finding{
			About: about, What: fmt.Sprintf("its shim (process %d, %s) does not answer: %s", s.ShimPID, s.Shim, s.Silence),
			Do: fmt.Sprintf("`kill -CONT %d` if it was stopped; if it hangs, kill it, and its agent is ended with it", s.ShimPID),
		}
	case s.Phase == shim.Running && (s.Agent == shim.Gone || s.Agent == shim.Reused):
		return Finding{
			About: about, What: fmt.Sprintf("its shim answers, and its process %d is gone", s.AgentPID),
			Do: "run doctor again: its end is being recorded",
		}
	case s.Phase == shim.Running:
		return Finding{
			OK: true, About: about,
			What: fmt.Sprintf("shim %d answers for process %d, and obeys epoch %d", s.ShimPID, s.AgentPID, s.Fence),
		}
	}
	return Finding{
		OK: true, About: about,
		What: "it is open in the journal, and its folder says " + string(s.Phase) + cli.OrNote(s.Why) + ": the daemon will record this",
	}
}

// lookAtHistory compares the whole journal with the clock, and with the folders of sessions.
func lookAtHistory(ctx context.Context, a *cli.App, j journal.Journal) []Finding {
	known, last := map[string]recordedEnd{}, time.Time{}
	for ch, err := range j.Read(ctx, journal.Query{}) {
		if err != nil {
			return []Finding{{About: "journal", What: err.Error(), Do: "see above"}}
		}
		if ch.Time.After(last) {
			last = ch.Time
		}
		var data struct {
			Session struct {
				ID string `json:"id"`
				recordedEnd
			} `json:"session"`
		}
		if ch.Machine == "session" && json.Unmarshal(ch.Data, &data) == nil {
			known[data.Session.ID] = data.Session.recordedEnd
		}
	}
	findings := []Finding{lookAtClock(last)}
	folder := filepath.Join(a.Dir, ".fairlead", "sessions")
	names, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return append(findings, Finding{About: "sessions", What: err.Error(), Do: "make it readable"})
	}
	for _, entry := range names {
		if end, is := known[entry.Name()]; is {
			findings = append(findings, lookAtSpool(filepath.Join(folder, entry.Name()), end)...)
		} else {
			findings = append(findings,
				Finding{
					About: "sessions", What: filepath.Join(folder, entry.Name()) + " belongs to no session in the journal",
					Do: "it is from another journal, or was copied there: move it away if no process uses it",
				})
		}
	}
	return findings
}

// lookAtClock compares the clock with the newest time in the journal.
func lookAtClock(last time.Time) Finding {
	if behind := time.Until(last); behind > clockSlack {
		return Finding{
			About: "clock", What: fmt.Sprintf("it is %s behind the newest change in the journal", cli.Ago(behind)),
			Do: "correct it; until then times continue from the journal's newest",
		}
	}
	return Finding{OK: true, About: "clock", What: "it is not behind the journal"}
}

const (
	foldersAbout = "task folders"
	foldersShown = 10 // the largest; the others are counted
)

// folder is the folder of a task that has ended.
type folder struct {
	task  *view.TaskView
	bytes int64
}

// lookAtFolders names the folders of tasks that are done or dropped. They are no fault: something was changed in one
// after it was shown, it has a repository inside, or a person has restored it.
func lookAtFolders(ctx context.Context, a *cli.App) []Finding {
	all, err := knownRuns(ctx, a)
	if err != nil {
		return []Finding{{About: foldersAbout, What: "which tasks have ended is not known: " + err.Error(), Do: "run doctor again"}}
	}
	return foldersOf(ctx, all)
}

func foldersOf(ctx context.Context, all []view.RunView) []Finding {
	var left []folder
	for i := range all {
		t := all[i].Task
		if t == nil || t.Status != view.TaskDone && t.Status != view.TaskDropped {
			continue
		}
		entries, err := os.ReadDir(t.Worktree)
		if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
			continue
		}
		bytes, err := file.DiskUse(ctx, t.Worktree)
		if err != nil {
			return []Finding{{
				About: foldersAbout, What: fmt.Sprintf("the folder of %s, %s, cannot be measured: %v", t.ID, t.Worktree, err),
				Do: "make it readable, or remove it when you have looked at it",
			}}
		}
		left = append(left, folder{t, bytes})
	}
	slices.SortFunc(left, func(a, b folder) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.task.ID, b.task.ID)) })
	var findings []Finding
	for _, f := range left[:min(len(left), foldersShown)] {
		findings = append(findings, Finding{
			OK: true, About: foldersAbout,
			What: fmt.Sprintf("%s is %s, and its folder is still there: %s, %s", f.task.ID, f.task.Status, f.task.Worktree,
				file.Size(f.bytes)),
			Do: fmt.Sprintf("`fairlead drop %s` removes it; its content stays under refs/fairlead/tasks/%s, and `fairlead task restore %s` brings it back", f.task.ID, f.task.ID, f.task.ID),
		})
	}
	if more := left[min(len(left), foldersShown):]; len(more) > 0 {
		sum := int64(0)
		for _, f := range more {
			sum += f.bytes
		}
		findings = append(findings,
			Finding{
				OK: true, About: foldersAbout, What: fmt.Sprintf("%d more are still there, with %s", len(more), file.Size(sum)),
				Do: "drop the largest ones, then run doctor again",
			})
	}
	return findings
}

// knownRuns are all runs; none where no daemon has ever run.
func knownRuns(ctx context.Context, a *cli.App) ([]view.RunView, error) {
	r, err := a.OpenToRead(ctx)
	if none := (*apiclient.NoDaemon)(nil); errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := r.Runs.List(ctx)
	return all, errors.Join(err, r.Close())
}

// checkPrograms finds the agent programs in the PATH, and probes those that no agent of the file uses. No conversation is
// started. A problem with an unused program is not a fault. met waits for what the checks of the agents have found.
func checkPrograms(agents []config.Agent, met func() []Finding) []Check {
	found := setup.FindPrograms(os.Getenv("PATH"))
	if len(found) == 0 {
		none := Finding{OK: true, About: "programs", What: "no agent program that is known is in the PATH; doc/agents names them"}
		return []Check{{"programs", func(context.Context) []Finding { return []Finding{none} }}}
	}
	var checks []Check
	for _, p := range found {
		checks = append(checks, Check{"program " + p.Name, func(ctx context.Context) []Finding {
			if Uses(agents, met, p) {
				return nil
			}
			return []Finding{lookAtProgram(ctx, p)}
		}})
	}
	return checks
}

// Uses reports whether a program is an agent's, which its own check has started. It waits for those checks only if an agent may
// use it.
func Uses(agents []config.Agent, met func() []Finding, p setup.FoundProgram) bool {
	mayBe := func(agent config.Agent) bool {
		return agent.Driver == p.Driver && (len(agent.Command) == 0 || filepath.Base(agent.Command[0]) == p.File)
	}
	return slices.ContainsFunc(agents, mayBe) &&
		slices.ContainsFunc(met(), func(f Finding) bool { return f.Program != nil && f.Program.Path == p.Path })
}

func lookAtProgram(ctx context.Context, p setup.FoundProgram) Finding {
	f := Finding{
		OK: true, About: "program " + p.Name,
		Program: &probe.Program{
			Name: p.Title, Path: p.Path, Driver: p.Driver, Command: p.Command, MCP: []string{}, Warnings: []string{},
			Ran: p.Ran, Page: "doc/agents/" + p.Page,
		},
	}
	if !probe.Can(p.Driver) {
		f.What = fmt.Sprintf("%s is %s: found, not known", p.Path, p.Title)
		if f.Do = p.Hint; f.Do == "" {
			f.Do = "this build has no driver for it; see " + f.Program.Page
		}
		return f
	}
	f.Program.Known = true
	reply, err := probe.Ask(ctx, probe.Request{Driver: p.Driver, Name: p.Name, Command: append([]string{p.Path}, p.Command[1:]...)}, nil)
	if err == nil && reply.Fault != "" {
		err = fmt.Errorf("%s", probe.WithoutAgent(reply.Fault, p.Name))
	}
	if err != nil {
		f.What = fmt.Sprintf("%s is %s by its name, and did not answer as one: %s", p.Path, p.Title, err)
		f.Do = "start it once by hand; " + f.Program.Page + " says what it needs"
		f.Program.Warnings = append(f.Program.Warnings, err.Error())
		return f
	}
	f.Program.Take(reply.Found)
	f.What = f.Program.Words()
	f.Do = strings.Join(f.Program.Warnings, "; ")
	return f
}

const (
	hooksAbout = "Claude Code hooks"
	hooksShown = 10 // the others are counted
)

// lookAtHooks names the hooks that Claude Code calls for shell commands beside Fairlead's, if these are installed.
func lookAtHooks(dir string) (findings []Finding) {
	home, _ := os.UserHomeDir() // none: hooks of the user are not found
	others, installed := claudehook.Hook{Env: os.Getenv, Home: home}.Beside(dir)
	if !installed {
		return nil
	}
	for _, other := range others[:min(len(others), hooksShown)] {
		findings = append(findings, Finding{
			OK: true, About: hooksAbout,
			What: "beside Fairlead's, " + cli.Plain(other.String()) +
				" is called for shell commands and could replace them, so MAIN gives only plain commands",
			Do: "if it never replaces a command, name it in fairlead.yaml, in dispatch.hooks",
		})
	}
	if more := len(others) - hooksShown; more > 0 {
		findings = append(findings, Finding{OK: true, About: hooksAbout, What: fmt.Sprintf("and %d more", more)})
	}
	if len(others) == 0 {
		findings = append(findings,
			Finding{
				OK: true, About: hooksAbout,
				What: "no other hook that fairlead.yaml does not name in dispatch.hooks is called for shell commands",
			})
	}
	return findings
}

// lookAtNotices says which targets of notices cannot be reached. A daemon knows; without one only the addresses are
// read. Nothing is sent.
func lookAtNotices(ctx context.Context, a *cli.App, conf *config.Config) []Finding {
	if len(conf.Notify.Targets) == 0 {
		return nil
	}
	if client, err := a.Dial(); err == nil {
		defer client.Close()
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if targets, err := client.NoticeTargets(asking); err == nil {
			var findings []Finding
			for i := range targets {
				t := &targets[i]
				f := Finding{
					OK: t.State != "failing", About: "notices", What: t.Name + " (" + t.Kind + ") gets notices",
					Do: "`fairlead notify test " + t.Name + "` tries it",
				}
				if !f.OK {
					f.What = t.Name + " (" + t.Kind + "): " + questions.FailingWords(t)
				}
				findings = append(findings, f)
			}
			return findings
		}
	}
	var findings []Finding
	for i := range conf.Notify.Targets {
		t := &conf.Notify.Targets[i]
		f := Finding{OK: true, About: "notices", What: t.Name + " has an address; `fairlead notify test` tries it while Fairlead runs"}
		address, err := t.Address(os.LookupEnv)
		if err == nil {
			_, err = notify.Open(address)
		}
		if err != nil {
			f = Finding{
				About: "notices", What: "notify.targets." + t.Name + " " + err.Error(),
				Do: "correct fairlead.yaml, or the variable or file that it refers to",
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// lookAtForge says whether the program for pull requests and issues is there and signed in. The answer needs the
// network, so it is asked only if the configuration needs it.
func lookAtForge(ctx context.Context, a *cli.App, conf *config.Config) Finding {
	f, err := task.ForgeOf(ctx, task.Task{Repo: a.Dir, Remote: conf.Tasks.Remote})
	if err != nil {
		return Finding{About: "pull requests", What: err.Error(), Do: "tasks.land and tasks.from of fairlead.yaml need it"}
	}
	who, err := f.SignedIn(ctx)
	if err != nil {
		return Finding{About: "pull requests", What: err.Error(), Do: fmt.Sprintf("`%s auth status` says more", f.Program())}
	}
	return Finding{OK: true, About: "pull requests", What: fmt.Sprintf("%s is signed in as %s", f.Program(), who)}
}
