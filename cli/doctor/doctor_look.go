package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/api/server"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/journal"
	"github.com/fairlead-dev/fairlead/shim"
	"github.com/fairlead-dev/fairlead/view"
	"github.com/fairlead-dev/fairlead/workspace"
)

const (
	diskFreeMin = 1 << 30     // bytes; below it one talkative session fills the disk
	logTailMax  = 64 << 10    // of the transition log; much more than its longest line
	clockSlack  = time.Second // usual corrections of the clock are smaller
	askDaemon   = 10 * time.Second
)

// lookAtDisk checks that there is room for the journal and agents' output.
func lookAtDisk(dir string) []Finding {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return []Finding{{About: "disk", What: "how much is free is not known: " + err.Error(), Do: "look with df"}}
	}
	free := st.Bavail * uint64(st.Bsize) //nolint:gosec,unconvert // a block has a positive size; its type differs between systems
	if free < diskFreeMin {
		return []Finding{{About: "disk", What: fmt.Sprintf("only %d MiB are free where fairlead keeps its state", free>>20), Do: "free some: the daemon stops when the disk is full, so that no answered order is lost"}}
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
	for _, s := range shim.Sockets(ctx) {
		name := filepath.Base(s.Path)
		isSocket := strings.HasPrefix(name, "h-") || strings.HasPrefix(name, "d-")
		switch {
		case isSocket && !own[name]:
			others++
		case s.Fault != "":
			findings = append(findings, Finding{About: "sockets", What: s.Path + ": " + s.Fault, Do: "only its owner may have access: change its owner and mode, or remove it"})
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
		return []Finding{{OK: true, About: "sockets", What: fmt.Sprintf("%d of this workspace, none stale, all ours alone; %d of others", mine, others)}}
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
		About: "log", What: called + " ends in the middle of a line", Do: "`fairlead doctor --fix` cuts it off, and so does the next start; it is written again from the journal",
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
// a dry run of the recovery otherwise.
func lookAtTruth(ctx context.Context, a *cli.App, conf *config.Config) []Finding {
	client, err := a.Dial()
	if err == nil {
		defer client.Close()
		return truthByDaemon(ctx, a, client)
	}
	if cli.IsLocked(filepath.Join(a.Dir, ".fairlead", "lock")) {
		return nil // the finding about the daemon says so already
	}
	var findings []Finding
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
	j, done, err := offline.Journal(ctx, a.Dir)
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
	return Finding{About: about, What: "it differs from the journal: " + strings.Join(against, "; "), Do: "`fairlead up` records it; `fairlead up --plan` says what it would do"}
}

// truthByDaemon asks the daemon for its evidence about each agent.
func truthByDaemon(ctx context.Context, a *cli.App, client *apiclient.Client) []Finding {
	ctx, cancel := context.WithTimeout(ctx, askDaemon)
	defer cancel()
	team, err := client.Agents(ctx)
	if err != nil {
		return []Finding{{About: "agents", What: "the daemon did not report their status: " + err.Error(), Do: "run doctor again"}}
	}
	var findings []Finding
	for _, agent := range team.Agents {
		about := "agent " + agent.Name
		if agent.Doubt != "" {
			findings = append(findings, Finding{About: about, What: agent.Doubt, Do: "`fairlead why " + agent.Name + "` shows the evidence"})
		}
		for _, s := range agent.Sessions {
			findings = append(findings, lookAtShim(ctx, a, s.ID))
		}
		why, err := client.Why(ctx, agent.Name)
		if err != nil {
			findings = append(findings, Finding{About: about, What: err.Error(), Do: "ask again"})
			continue
		}
		for _, piece := range why.Evidence {
			if piece.Source == "file" && !piece.Holds && agent.Loop != string(config.LoopForeign) {
				findings = append(findings, Finding{About: about, What: "its file does not match the journal: " + piece.What, Do: "run doctor again: the file may be in the middle of an update; then `fairlead why " + agent.Name + "`"})
			}
		}
	}
	page, err := client.Journal(ctx, apiclient.JournalQuery{Tail: 1})
	if err == nil && len(page.Changes) > 0 {
		findings = append(findings, lookAtClock(page.Changes[0].Time))
	}
	if len(findings) == 0 {
		findings = append(findings, Finding{OK: true, About: "agents", What: "every file matches the journal"})
	}
	return findings
}

// lookAtShim checks the shim of an open session.
func lookAtShim(ctx context.Context, a *cli.App, session string) Finding {
	about := "session " + session
	s, err := shim.Look(ctx, filepath.Join(a.Dir, ".fairlead", "sessions", session))
	switch {
	case err != nil:
		return Finding{About: about, What: err.Error(), Do: "fix that, then run doctor again"}
	case s.Phase == shim.Running && !s.Answers:
		return Finding{About: about, What: fmt.Sprintf("its shim (process %d, %s) does not answer: %s", s.ShimPID, s.Shim, s.Silence), Do: fmt.Sprintf("`kill -CONT %d` if it was stopped; if it hangs, kill it, and its agent is ended with it", s.ShimPID)}
	case s.Phase == shim.Running && (s.Agent == shim.Gone || s.Agent == shim.Reused):
		return Finding{About: about, What: fmt.Sprintf("its shim answers, and its process %d is gone", s.AgentPID), Do: "run doctor again: its end is being recorded"}
	case s.Phase == shim.Running:
		return Finding{OK: true, About: about, What: fmt.Sprintf("shim %d answers for process %d, and obeys epoch %d", s.ShimPID, s.AgentPID, s.Fence)}
	}
	return Finding{OK: true, About: about, What: "it is open in the journal, and its folder says " + string(s.Phase) + cli.OrNote(s.Why) + ": the daemon will record this"}
}

// lookAtHistory compares the whole journal with the clock, and with the folders of sessions.
func lookAtHistory(ctx context.Context, a *cli.App, j journal.Journal) []Finding {
	known, last := map[string]bool{}, time.Time{}
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
			} `json:"session"`
		}
		if ch.Machine == "session" && json.Unmarshal(ch.Data, &data) == nil {
			known[data.Session.ID] = true
		}
	}
	findings := []Finding{lookAtClock(last)}
	folder := filepath.Join(a.Dir, ".fairlead", "sessions")
	names, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return append(findings, Finding{About: "sessions", What: err.Error(), Do: "make it readable"})
	}
	for _, entry := range names {
		if !known[entry.Name()] {
			findings = append(findings, Finding{About: "sessions", What: filepath.Join(folder, entry.Name()) + " belongs to no session in the journal", Do: "it is from another journal, or was copied there: move it away if no process uses it"})
		}
	}
	return findings
}

// lookAtClock compares the clock with the newest time in the journal.
func lookAtClock(last time.Time) Finding {
	if behind := time.Until(last); behind > clockSlack {
		return Finding{About: "clock", What: fmt.Sprintf("it is %s behind the newest change in the journal", cli.Ago(behind)), Do: "correct it; until then times continue from the journal's newest"}
	}
	return Finding{OK: true, About: "clock", What: "it is not behind the journal"}
}
