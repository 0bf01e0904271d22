package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api"
)

// These run in a user and mount namespace of their own; what is mounted there is gone with it.

func (k *torture) mount(words ...string) {
	k.t.Helper()
	if out, err := exec.Command("mount", words...).CombinedOutput(); err != nil {
		k.t.Fatalf("mount %v: %v: %s", words, err, out)
	}
}

// unmount takes it from the tree at once; who has something open there keeps that.
func (k *torture) unmount(place string) {
	if out, err := exec.Command("umount", "-l", place).CombinedOutput(); err != nil {
		k.t.Errorf("unmount %s: %v: %s", place, err, out)
	}
}

// newBoot is killAll on a machine that afterwards reports a reboot. An agent's file that was being written
// is then torn, which sets no desired state.
func newBoot(k *torture) {
	id := filepath.Join(k.t.TempDir(), "boot_id")
	boot := func() {
		b := make([]byte, 16)
		_, _ = rand.Read(b) // it never fails
		text := fmt.Sprintf("%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		if err := os.WriteFile(id, []byte(text), 0o600); err != nil {
			k.t.Fatal(err)
		}
	}
	boot()
	k.mount("--bind", id, "/proc/sys/kernel/random/boot_id")
	underLoad(func(l *load) {
		l.gate.Lock() // a person and a foreign program end with the machine, too
		l.killEverybody()
		boot()
		agent := tortureAgents[l.rnd.IntN(len(tortureAgents))]
		path := filepath.Join(l.rig.dir, agent, "agent_state.json")
		if info, err := os.Stat(path); err == nil && agent != scribbled && info.Size() > 1 {
			l.must(os.Truncate(path, l.rnd.Int64N(info.Size()-1)))
		}
		l.gate.Unlock()
		l.up()
	})(k)
}

// diskBytes is room for a hundred rounds of sessions, and not too much to fill.
const diskBytes = "96m"

// fullDisk fills the disk below the team's feet: all of it, or only where fairlead keeps its own.
func fullDisk(k *torture) {
	all := k.rounds
	for _, where := range []string{".", ".fairlead"} {
		k.rounds = all / 2
		if where == "." {
			k.rounds = all - all/2
		}
		dir, err := filepath.EvalSymlinks(k.t.TempDir())
		if err != nil {
			k.t.Fatal(err)
		}
		disk := filepath.Join(dir, where)
		if err := os.MkdirAll(disk, 0o755); err != nil {
			k.t.Fatal(err)
		}
		k.mount("-t", "tmpfs", "-o", "mode=755,size="+diskBytes, "tmpfs", disk)
		k.t.Cleanup(func() { k.unmount(disk) })
		l := k.work(newRigIn(k.t, dir, tortureFiles()))
		l.again(func(l *load) { l.fillAndFree(filepath.Join(disk, "filler")) })
		l.rest()
	}
	k.rounds = all
}

func (l *load) fillAndFree(filler string) {
	l.fill(filler)
	pass(l.upTo(400 * time.Millisecond))
	if l.rnd.IntN(3) == 0 && !l.hasGone() { // and then it is killed and started on a full disk
		l.rig.kill()
		if said, err := l.rig.tryUp(); err != nil {
			l.exitsWithWords(said, err, "space")
		}
	}
	if l.rig.daemon != nil && l.hasGone() {
		l.diedOf("space")
	}
	l.must(os.Remove(filler))
	l.recovered("space")
}

// fill takes all there is, to the last byte.
func (l *load) fill(path string) {
	f, err := os.Create(path)
	l.must(err)
	defer f.Close()
	for chunk := make([]byte, 1<<20); len(chunk) > 0; {
		n, err := f.Write(chunk)
		switch {
		case errors.Is(err, syscall.ENOSPC):
			chunk = chunk[:len(chunk)/2]
		case err != nil:
			l.t.Fatal(err, n)
		}
	}
}

// hasGone says whether the daemon has ended by itself.
func (l *load) hasGone() bool {
	_, _, start := statOf(l.rig.daemon.Process.Pid)
	return start == ""
}

// diedOf wants a daemon that has ended by itself to have said why.
func (l *load) diedOf(words ...string) {
	err := l.rig.daemon.Wait()
	said := l.rig.heard.String()
	l.rig.daemon = nil
	if err == nil {
		l.wrong(&l.tally.Other, "the daemon went away as if all were well; it said: %s", said)
		return
	}
	l.exitsWithWords(said, err, words...)
}

// recovered expects a working daemon again: the same one, or a new one after the old one ended with a message.
func (l *load) recovered(words ...string) {
	if l.rig.daemon != nil {
		err := l.orderOnce()
		if err == nil {
			return
		}
		for began := time.Now(); !l.hasGone(); pass(10 * time.Millisecond) {
			if time.Since(began) > moment {
				l.wrong(&l.tally.Other, "the daemon neither works nor ends: %v", err)
				l.rig.kill()
				break
			}
		}
		if l.rig.daemon != nil {
			l.diedOf(words...)
		}
	}
	l.up()
}

// orderOnce gives an order while no other goroutine does, and returns the error if it was refused.
func (l *load) orderOnce() error {
	l.gate.Lock()
	defer l.gate.Unlock()
	ctx, cancel := contextFor(moment)
	defer cancel()
	if _, err := l.client.Command(ctx, api.Start, "ada", "after the disk was mended"); err != nil {
		l.wants["ada"].perhaps = append(l.wants["ada"].perhaps, "continuous")
		return err
	}
	l.wants["ada"] = &wish{desired: "continuous"}
	return nil
}

// readOnlyDisk takes the right to write away below a running team: what it has open stays
// open, and nothing new can be made.
func readOnlyDisk(k *torture) {
	underLoad(func(l *load) {
		places := []string{".", ".fairlead", ".fairlead/sessions", "ada", "bob"}
		place := filepath.Join(l.rig.dir, places[l.rnd.IntN(len(places))])
		l.damaged = strings.TrimPrefix(place, l.rig.dir) + " could not be written"
		l.mountReadOnly(place)
		pass(l.upTo(400 * time.Millisecond))
		if l.rnd.IntN(2) == 0 && !l.hasGone() {
			l.rig.kill()
			if said, err := l.rig.tryUp(); err != nil {
				l.exitsWithWords(said, err, "writable")
			}
		}
		if l.rig.daemon != nil && l.hasGone() {
			l.diedOf("read-only")
		}
		l.mount("-o", "remount,bind,rw", place) // for processes with open files there
		l.unmount(place)
		l.recovered("read-only")
	})(k)
}

// mountReadOnly mounts a folder over itself, read-only. That takes two steps: if a process opens a file for
// writing between them, the first one is undone and repeated.
func (l *load) mountReadOnly(place string) {
	for began := time.Now(); ; pass(time.Millisecond) {
		l.mount("--bind", place, place)
		out, err := exec.Command("mount", "-o", "remount,bind,ro", place).CombinedOutput()
		if err == nil {
			return
		}
		l.unmount(place)
		if time.Since(began) > rigWait {
			l.t.Fatalf("%s cannot be made read-only: %v: %s", place, err, out)
		}
	}
}
