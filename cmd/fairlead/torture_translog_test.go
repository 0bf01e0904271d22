package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
)

// logLine is what a line of the log of transitions and a change of the journal have in common.
type logLine struct {
	Seq    uint64 `json:"seq"`
	Entity string `json:"entity"`
	From   string `json:"from"`
	To     string `json:"to"`
	Row    string `json:"row"`
}

// countLog is the last look: the log of transitions tells each change of the journal once, in
// order (X6). The daemon writes it beside its work, so it has a moment for it.
func (l *load) countLog() {
	l.gate.Lock()
	defer l.gate.Unlock()
	all := l.journalTold()
	for began := time.Now(); ; pass(20 * time.Millisecond) {
		logged, err := logTold(l.state(filepath.Join("log", "transitions.jsonl")))
		why := differ(all, logged)
		if err != nil {
			why = err.Error()
		}
		if why == "" {
			return
		}
		if time.Since(began) > moment {
			l.wrong(&l.tally.Output, "the log of transitions: %s", why)
			return
		}
	}
}

// differ says where a log leaves the journal; what it tells beyond it came since.
func differ(journal, log []logLine) string {
	for i, is := range journal {
		switch {
		case i >= len(log):
			return fmt.Sprintf("it ends after %d lines, and the journal has %d changes", len(log), len(journal))
		case log[i] != is:
			return fmt.Sprintf("line %d tells %+v, and change %d is %+v", i+1, log[i], is.Seq, is)
		}
	}
	return ""
}

func (l *load) journalTold() (all []logLine) {
	l.t.Helper()
	after := uint64(0)
	for {
		ctx, cancel := contextFor(rigWait)
		page, err := l.client.Journal(ctx, apiclient.JournalQuery{After: after})
		cancel()
		if err != nil {
			l.t.Fatalf("read the journal: %v; %s", err, l.lastWords())
		}
		for _, ch := range page.Changes {
			all = append(all, logLine{ch.Seq, ch.Entity, ch.From, ch.To, ch.Row})
			after = ch.Seq
		}
		if len(page.Changes) == 0 {
			return all
		}
	}
}

// logTold reads a log with its full files, oldest first; a last line without an end is being
// written.
func logTold(path string) (all []logLine, err error) {
	full, err := filepath.Glob(path + ".*")
	if err != nil {
		return nil, err
	}
	until := func(name string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(name, path+"."))
		if err != nil {
			return -1 // kept aside: of a journal that was lost
		}
		return n
	}
	full = slices.DeleteFunc(full, func(name string) bool { return until(name) < 0 })
	slices.SortFunc(full, func(a, b string) int { return cmp.Compare(until(a), until(b)) })
	for _, name := range append(full, path) {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for line := range bytes.Lines(text) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				continue
			}
			var t logLine
			if err := json.Unmarshal(line, &t); err != nil {
				return nil, fmt.Errorf("%q is no line of it: %w", line, err)
			}
			all = append(all, t)
		}
	}
	return all, nil
}
