package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// state is a path in the folder where fairlead keeps its own.
func (l *load) state(name string) string { return filepath.Join(l.rig.dir, ".fairlead", name) }

var journalFiles = []string{"journal.db", "journal.db-wal"}

// copied is what the journal's files held.
func (l *load) copied() map[string][]byte {
	all := map[string][]byte{}
	for _, name := range journalFiles {
		text, err := os.ReadFile(l.state(name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			l.t.Fatal(err)
		}
		if err == nil {
			all[name] = text
		}
	}
	return all
}

// putBack restores the journal's files from a copy. Their index in shared memory is made anew.
func (l *load) putBack(all map[string][]byte) {
	_ = os.Remove(l.state("journal.db-shm"))
	for _, name := range journalFiles {
		_ = os.Remove(l.state(name))
		if text, ok := all[name]; ok {
			l.must(os.WriteFile(l.state(name), text, 0o600))
		}
	}
}

// rewound has what was read of the journal forgotten: its end may have changed.
func (l *load) rewound() {
	l.after = 0
	clear(l.known)
	clear(l.ended)
	clear(l.found)
}

// upOrNot starts the daemon on a damaged journal. Where it will not, it must say so and
// leave the files alone; they are put back and it must come.
func (l *load) upOrNot(what string, sound map[string][]byte) {
	damaged := l.copied()
	said, err := l.rig.tryUp()
	l.rewound()
	switch {
	case err == nil && l.goesOn():
		return
	case err == nil && !l.torn:
		l.diedOf("journal")
	case err == nil: // shims have obeyed a daemon that this journal has forgotten
		l.diedOf("the shim has obeyed")
	case l.torn:
		l.exitsWithWords(said, err, "the shim has obeyed")
	default:
		l.exitsWithWords(said, err, "journal")
	}
	if l.torn {
		l.torn = false
		l.putBack(sound)
		l.up()
		return
	}
	for name, text := range l.copied() {
		if !bytes.Equal(text, damaged[name]) {
			l.wrong(&l.tally.Other, "%s: it was refused, and %s changed all the same", what, name)
		}
	}
	l.putBack(sound)
	l.up()
}

// goesOn says whether the daemon is there to stay: one that finds out only later that its
// journal lacks its end has to stop.
func (l *load) goesOn() bool {
	for began := time.Now(); time.Since(began) < 200*time.Millisecond; pass(10 * time.Millisecond) {
		if l.hasGone() {
			return false
		}
	}
	return true
}

// flipBit flips one bit of the journal while no daemon runs. Agents continue meanwhile.
func flipBit(l *load) {
	l.rig.kill()
	sound := l.copied()
	name := journalFiles[l.rnd.IntN(2)]
	text := bytes.Clone(sound[name])
	if len(text) == 0 {
		l.up()
		return
	}
	at, bit := l.rnd.IntN(len(text)), l.rnd.IntN(8)
	text[at] ^= 1 << bit
	l.must(os.WriteFile(l.state(name), text, 0o600))
	_ = os.Remove(l.state("journal.db-shm"))
	l.damaged = fmt.Sprintf("bit %d of byte %d of the %d in %s was turned over", bit, at, len(text), name)
	l.upOrNot(l.damaged, sound)
}

// tearTail cuts the end of the journal's log off, as a disk does that lied about its syncs.
// What was acknowledged there is gone, and no promise covers that; all else must hold.
func tearTail(l *load) {
	l.rig.kill()
	sound := l.copied()
	info, err := os.Stat(l.state("journal.db-wal"))
	l.must(err)
	cut := min(info.Size(), 1+l.rnd.Int64N(1<<l.rnd.IntN(18))) // small ones too
	l.must(os.Truncate(l.state("journal.db-wal"), info.Size()-cut))
	l.damaged, l.torn = fmt.Sprintf("%d bytes of %d were cut off the log", cut, info.Size()), true
	l.upOrNot(l.damaged, sound)
}

// removeFile removes one file while no daemon runs.
func removeFile(l *load) {
	l.rig.kill()
	sound := l.copied()
	names := []string{
		"journal.db", "journal.db-wal", "journal.db-shm", "journal", "daemon.json", "token", "lock", ".gitignore", "log",
		"agent_state.json",
	}
	name := names[l.rnd.IntN(len(names))]
	l.damaged = name + " was removed"
	switch name {
	case "journal":
		for _, file := range append(journalFiles, "journal.db-shm") {
			_ = os.Remove(l.state(file))
		}
		l.torn = true
		l.upOrNot(l.damaged, sound)
	case "journal.db-wal":
		_ = os.Remove(l.state(name))
		l.torn = true
		l.upOrNot(l.damaged, sound)
	case "journal.db":
		l.must(os.Remove(l.state(name)))
		l.upOrNot(l.damaged, sound)
	case "agent_state.json":
		agent := tortureAgents[l.rnd.IntN(len(tortureAgents))]
		_ = os.Remove(filepath.Join(l.rig.dir, agent, name))
		l.up()
		l.mu.Lock()
		l.wants[agent].any = true // C21: it is pause now, unless it was written again
		l.mu.Unlock()
	default:
		l.must(os.RemoveAll(l.state(name)))
		l.up()
	}
	pass(l.upTo(50 * time.Millisecond))
}
