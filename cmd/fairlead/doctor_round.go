package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	visitsAtOnce = 4               // programs that load: more of them only slow each other down
	waitTick     = time.Second     // how often a terminal is told how long it has waited
	waitShown    = time.Second / 5 // what is known sooner is not announced: it would only flicker
)

// visit is one place that doctor goes to.
type visit struct {
	about string // what is said to be waited for
	free  bool   // it starts no program, and waits for no place among those that do
	look  func(ctx context.Context, say func(...finding))
}

// round makes all visits, those that start programs so many at a time, and gives what was found
// in the order of the visits, whichever came back first. The board is told of each at once.
func round(ctx context.Context, visits []visit, b *board) []finding {
	places := make(chan struct{}, visitsAtOnce)
	var all sync.WaitGroup
	for i, v := range visits {
		if v.free {
			all.Go(func() { b.visit(ctx, i, v) })
		}
	}
	for i, v := range visits {
		if v.free {
			continue
		}
		places <- struct{}{} // in the order of the list: who waits for another one stands behind him
		all.Go(func() {
			defer func() { <-places }()
			b.visit(ctx, i, v)
		})
	}
	all.Wait()
	return b.end()
}

// board is where findings are put up as they come. On a terminal each is shown at once, with a last
// line that says what is waited for; elsewhere they stand in the order of the visits, each as soon as
// those before it are known.
type board struct {
	show func(finding) // nil: nobody looks on
	hold func(finding) bool
	term io.Writer // nil: no terminal
	cols int

	mu    sync.Mutex
	begun time.Time
	about []string
	state []visitState
	found [][]finding
	told  []int // of those found: how many were shown
	line  int   // characters of the waiting line that stands there
	over  chan struct{}
	gone  sync.WaitGroup
}

type visitState int

const (
	visitAhead visitState = iota
	visitUnderWay
	visitDone
)

// board shows findings as somebody who waits for them wants them. With hold it keeps those back
// that are shown otherwise at the end.
func (a *app) board(visits []visit, hold func(finding) bool) *board {
	b := &board{hold: hold, begun: time.Now(), over: make(chan struct{})}
	b.state, b.found, b.told = make([]visitState, len(visits)), make([][]finding, len(visits)), make([]int, len(visits))
	for _, v := range visits {
		b.about = append(b.about, v.about)
	}
	if a.json {
		return b
	}
	b.show = func(f finding) { a.printFinding(f) }
	if file, ok := a.out.(*os.File); ok && tty(a.out) {
		b.term, b.cols = a.out, screenWidth
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 { //nolint:gosec // a descriptor fits an int
			b.cols = width
		}
		b.gone.Go(b.ticks)
	}
	return b
}

// ticks keeps the waiting line true while nothing comes.
func (b *board) ticks() {
	first, tick := time.NewTimer(waitShown), time.NewTicker(waitTick)
	defer first.Stop()
	defer tick.Stop()
	for {
		select {
		case <-b.over:
			return
		case <-first.C:
		case <-tick.C:
		}
		b.mu.Lock()
		b.wipe()
		b.wait(time.Since(b.begun))
		b.mu.Unlock()
	}
}

func (b *board) visit(ctx context.Context, i int, v visit) {
	b.mu.Lock()
	b.state[i] = visitUnderWay
	b.mu.Unlock()
	v.look(ctx, func(found ...finding) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.found[i] = append(b.found[i], found...)
		b.tell()
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state[i] = visitDone
	b.tell()
}

// tell shows what may be shown by now.
func (b *board) tell() {
	if b.show == nil {
		return
	}
	b.wipe()
	for i := range b.found {
		for _, f := range b.found[i][b.told[i]:] {
			if b.hold == nil || !b.hold(f) {
				b.show(f)
			}
		}
		b.told[i] = len(b.found[i])
		if b.term == nil && b.state[i] != visitDone {
			return
		}
	}
	b.wait(time.Since(b.begun))
}

// wipe takes the waiting line away; by blanks, since not every terminal obeys more.
func (b *board) wipe() {
	if b.line > 0 {
		fmt.Fprintf(b.term, "\r%*s\r", b.line, "")
		b.line = 0
	}
}

// wait says what is waited for, where that takes long enough to be read.
func (b *board) wait(past time.Duration) {
	if b.term == nil || past < waitShown {
		return
	}
	if text := underWay(b.about, b.state, past, b.cols-1); text != "" {
		fmt.Fprint(b.term, text)
		b.line = len([]rune(text))
	}
}

// underWay words what is under way, in at most so many characters.
func underWay(about []string, state []visitState, past time.Duration, width int) string {
	var under []string
	ahead := 0
	for i, s := range state {
		switch s {
		case visitUnderWay:
			under = append(under, about[i])
		case visitAhead:
			ahead++
		}
	}
	if len(under) == 0 {
		return ""
	}
	text := fmt.Sprintf("… %s, waits for %s", ago(past), strings.Join(under, ", "))
	if ahead > 0 {
		text += fmt.Sprintf("; %d to go", ahead)
	}
	return line(text, max(1, width))
}

// end takes the waiting line away, and gives all findings in the order of the visits.
func (b *board) end() []finding {
	close(b.over)
	b.gone.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.term != nil {
		b.wipe()
	}
	var all []finding
	for _, found := range b.found {
		all = append(all, found...)
	}
	return all
}
