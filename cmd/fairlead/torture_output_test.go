package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// countOutput compares, for each session that is over, what the agent kept in its ledger
// with what was kept of its output. A ledger has each line after it was said, so an agent
// that was killed may have said one more. Where we killed the shim only what was spooled
// is promised: what is there is right, it is no less than it was, and no less than the
// journal says.
func (l *load) countOutput() {
	open := map[string]bool{}
	for _, b := range l.census() {
		open[b.session] = true
	}
	sessions := filepath.Join(l.rig.dir, ".fairlead", "sessions")
	folders, err := os.ReadDir(sessions)
	if err != nil {
		l.t.Fatalf("round %d: %v", l.round, err)
	}
	for _, folder := range folders {
		id := folder.Name()
		journaled, over := l.ended[id]
		if l.checked[id] || open[id] || !over {
			continue
		}
		l.checked[id] = true
		spool, err := os.ReadFile(filepath.Join(sessions, id, "spool"))
		if err != nil && !os.IsNotExist(err) {
			l.t.Fatal(err)
		}
		before, killed := l.killed[id]
		if why := l.compare(id, spool, killed); why != "" {
			l.wrong(&l.tally.Output, "%s: %s", id, why)
		}
		switch has := int64(len(spool)); {
		case has < before:
			l.wrong(&l.tally.Output, "%s: %d bytes were spooled before its shim was killed, now %d", id, before, has)
		case has < journaled:
			l.wrong(&l.tally.Output, "%s: the journal says %d bytes, the spool has %d", id, journaled, has)
		case !killed && has != journaled:
			l.wrong(&l.tally.Output, "%s: the journal says %d bytes, the spool has %d, and its shim was not killed", id, journaled, has)
		}
		if _, err := os.Stat(filepath.Join(sessions, id, "exit.json")); err != nil && !killed && l.everBegan(id) {
			l.wrong(&l.tally.Other, "%s: nobody killed its shim, and how it ended is not known: %v; %s", id, err,
				l.left(filepath.Join(sessions, id)))
		}
	}
}

// aside are the folders of dead sessions of this name that a new journal has put aside, oldest
// first.
func (l *load) aside(id string) []string {
	folders, err := filepath.Glob(filepath.Join(l.rig.dir, ".fairlead", "sessions-aside", id+".*"))
	if err != nil {
		l.t.Fatal(err)
	}
	slices.SortFunc(folders, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return folders
}

// compare says what is wrong with one session's output.
func (l *load) compare(id string, spool []byte, shimKilled bool) string {
	ledger, err := os.ReadFile(filepath.Join(l.rig.dir, agentIn(id), "ledger-"+id))
	if err != nil && !os.IsNotExist(err) {
		return err.Error()
	}
	var said []string
	for _, folder := range l.aside(id) {
		earlier, err := os.ReadFile(filepath.Join(folder, "spool"))
		if err != nil && !os.IsNotExist(err) {
			return err.Error()
		}
		said = append(said, whole(saidLines(l.t, earlier))...)
	}
	said = append(said, whole(saidLines(l.t, spool))...)
	kept := whole(string(ledger))
	said, words := partition(said, id+" ")
	if slices.ContainsFunc(words, func(line string) bool { return strings.Contains(line, "cannot create ledger-") }) {
		return among(kept, said) // it counted on a disk that could not be written
	}
	n := min(len(said), len(kept))
	switch {
	case !slices.Equal(said[:n], kept[:n]):
		return fmt.Sprintf("the agent said %q, and what was kept is %q", kept, said)
	case len(said) > len(kept)+1:
		return fmt.Sprintf("%d lines were said and %d are there", len(kept), len(said))
	case len(said) < len(kept) && !shimKilled:
		return fmt.Sprintf("%d lines were said and only %d are there", len(kept), len(said))
	}
	return ""
}

// partition gives the lines that an agent counted, and those that its shell said of itself: of a child that was killed, of a
// file that it could not write.
func partition(lines []string, counted string) (said, words []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, counted) {
			said = append(said, line)
		} else {
			words = append(words, line)
		}
	}
	return said, words
}

// among wants each line of a ledger in what was said, in its order.
func among(kept, said []string) string {
	rest := said
	for _, line := range kept {
		i := slices.Index(rest, line)
		if i < 0 {
			return fmt.Sprintf("the agent said %q, and what was kept is %q", kept, said)
		}
		rest = rest[i+1:]
	}
	return ""
}

// whole gives the lines that have an end.
func whole(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	return lines[:len(lines)-1]
}

// everBegan says whether an agent was seen to be started for a session. A folder may have
// been made and nothing in it; and a start whose second record could not be written counts
// as lost, on purpose: it may have been.
func (l *load) everBegan(id string) bool {
	record, err := os.ReadFile(filepath.Join(l.rig.dir, ".fairlead", "sessions", id, "agent.json"))
	if err == nil && strings.Contains(string(record), `"step":"started"`) {
		return true
	}
	log, err := os.ReadFile(filepath.Join(l.rig.dir, ".fairlead", "sessions", id, "shim.log"))
	if err == nil && strings.Contains(string(log), "write the shim's record") {
		return false
	}
	starts, err := os.ReadFile(filepath.Join(l.rig.dir, agentIn(id), "starts"))
	return err == nil && slices.Contains(strings.Fields(string(starts)), id)
}

// left describes a session's start from its folder, for failure messages.
func (l *load) left(folder string) string {
	record, err := os.ReadFile(filepath.Join(folder, "agent.json"))
	if err != nil {
		return err.Error()
	}
	log, err := os.ReadFile(filepath.Join(folder, "shim.log"))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("its record is %s, its shim said %q", strings.TrimSpace(string(record)), log)
}
