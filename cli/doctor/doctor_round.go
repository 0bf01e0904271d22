package doctor

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/fairlead-dev/fairlead/cli"
)

const (
	VisitsAtOnce = 4               // starting programs; more at once would only slow each other down
	waitTick     = time.Second     // how often the waiting time on a terminal is updated
	waitShown    = time.Second / 5 // a faster answer is not announced, because the line would only flicker
)

// Visit is one check of doctor.
type Visit struct {
	About string // what the terminal says it waits for
	Free  bool   // it starts no program, and is not counted against VisitsAtOnce
	Look  func(ctx context.Context, say func(...Finding))
}

// Round makes all checks, a limited number of those that start programs at a time, and returns the
// findings in the order of the checks. The board gets each result at once.
func Round(ctx context.Context, visits []Visit, b *board) []Finding {
	places := make(chan struct{}, VisitsAtOnce)
	var all sync.WaitGroup
	for i, v := range visits {
		if v.Free {
			all.Go(func() { b.visit(ctx, i, v) })
		}
	}
	for i, v := range visits {
		if v.Free {
			continue
		}
		places <- struct{}{} // in the order of the list: a check that waits for another one comes after it
		all.Go(func() {
			defer func() { <-places }()
			b.visit(ctx, i, v)
		})
	}
	all.Wait()
	return b.end()
}

// board prints findings as they arrive. On a terminal each is printed at once, above a last line
// that says what is waited for; elsewhere they are printed in the order of the checks, each as soon
// as those before it are known.
type board struct {
	show func(Finding) // nil: nothing is printed
	hold func(Finding) bool
	Term io.Writer // nil: not a terminal
	Cols int

	mu    sync.Mutex
	begun time.Time
	about []string
	state []VisitState
	found [][]Finding
	told  []int // of the findings: how many were printed
	line  int   // characters of the current waiting line
	over  chan struct{}
	Gone  sync.WaitGroup
}

// VisitState is how far the check of one program is.
type VisitState int

const (
	VisitAhead VisitState = iota
	VisitUnderWay
	VisitDone
)

// Board makes the board for the output. Findings for which hold is true are not printed.
func Board(a *cli.App, visits []Visit, hold func(Finding) bool) *board {
	b := &board{hold: hold, begun: time.Now(), over: make(chan struct{})}
	b.state, b.found, b.told = make([]VisitState, len(visits)), make([][]Finding, len(visits)), make([]int, len(visits))
	for _, v := range visits {
		b.about = append(b.about, v.About)
	}
	if a.JSON {
		return b
	}
	b.show = func(f Finding) { PrintFinding(a, f) }
	if file, ok := a.Out.(*os.File); ok && cli.Tty(a.Out) {
		b.Term, b.Cols = a.Out, cli.ScreenWidth
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 { //nolint:gosec // a descriptor fits an int
			b.Cols = width
		}
		b.Gone.Go(b.Ticks)
	}
	return b
}

// Ticks updates the waiting line until it ends.
func (b *board) Ticks() {
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

func (b *board) visit(ctx context.Context, i int, v Visit) {
	b.mu.Lock()
	b.state[i] = VisitUnderWay
	b.mu.Unlock()
	v.Look(ctx, func(found ...Finding) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.found[i] = append(b.found[i], found...)
		b.tell()
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state[i] = VisitDone
	b.tell()
}

// tell prints the findings that can be printed now.
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
		if b.Term == nil && b.state[i] != VisitDone {
			return
		}
	}
	b.wait(time.Since(b.begun))
}

// wipe erases the waiting line with blanks, because not every terminal supports escape sequences.
func (b *board) wipe() {
	if b.line > 0 {
		fmt.Fprintf(b.Term, "\r%*s\r", b.line, "")
		b.line = 0
	}
}

// wait prints what is waited for, if the wait is long enough to be read.
func (b *board) wait(past time.Duration) {
	if b.Term == nil || past < waitShown {
		return
	}
	if text := UnderWay(b.about, b.state, past, b.Cols-1); text != "" {
		fmt.Fprint(b.Term, text)
		b.line = len([]rune(text))
	}
}

// UnderWay describes the running checks, in at most so many characters.
func UnderWay(about []string, state []VisitState, past time.Duration, width int) string {
	var under []string
	ahead := 0
	for i, s := range state {
		switch s {
		case VisitUnderWay:
			under = append(under, about[i])
		case VisitAhead:
			ahead++
		}
	}
	if len(under) == 0 {
		return ""
	}
	text := fmt.Sprintf("… %s, waits for %s", cli.Ago(past), strings.Join(under, ", "))
	if ahead > 0 {
		text += fmt.Sprintf("; %d to go", ahead)
	}
	return cli.Line(text, max(1, width))
}

// end erases the waiting line, and returns all findings in the order of the checks.
func (b *board) end() []Finding {
	close(b.over)
	b.Gone.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Term != nil {
		b.wipe()
	}
	var all []Finding
	for _, found := range b.found {
		all = append(all, found...)
	}
	return all
}
