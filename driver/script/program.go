package script

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/driver"
)

// Program is a script that was read and found without fault.
type Program struct {
	File        string // as it was named to Load or Parse
	Description string
	Seed        uint64        // of every random choice
	Pace        time.Duration // rest after each step, so that people can follow
	Stubborn    bool          // SIGTERM is ignored
	Random      bool          // which session is played is drawn; else they take turns
	Sessions    []Session     // at least one
	Cleanup     []Step        // what a cleanup session plays; empty: it says that there is nothing to tidy
	Turn        []Step        // what a talk in channels plays; empty: a session like any other
	Lead        []Step        // what a session of the one that leads plays; empty: what a talk in channels does
}

// Session is one of the things a script can play from beginning to end.
type Session struct {
	Name  string
	Steps []Step
}

// Step is one step of a script: a verb with what it needs, and guards. Which
// fields a verb uses stands in the table of verbs.
type Step struct {
	Verb         string
	Line, Column int

	Every  int     // only in sessions whose number is a multiple; 0: in all
	Chance float64 // how likely it is played; 1 where nothing is said

	Text     string // say, think, run, spawn, fail, ask, expect_prompt, emit, hang: the words
	File     string // write, append, edit, count: in the workspace
	Content  string
	Replace  string
	With     string
	All      bool
	Chunk    int               // say, think: characters in a piece; 0: a word
	Delay    time.Duration     // say, think: between pieces; run: between tries
	From, To time.Duration     // sleep: drawn between them
	Limit    time.Duration     // run, ask, expect_prompt: then it is given up
	Tries    int               // run
	MayFail  bool              // run
	Quiet    bool              // run
	Says     bool              // run: what it prints is the agent's own words
	Code     int               // fail
	Signal   string            // crash
	Mode     string            // spawn
	Holds    bool              // spawn: keeps the agent's output open
	N        int               // count, repeat
	Rate     float64           // count: lines a second; 0: as fast as it goes
	Bytes    []byte            // emit
	Deaf     bool              // hang: not even an order or SIGTERM ends it
	Tool     string            // ask
	Args     map[string]string // ask: what the tool is to be called with
	Options  []string          // ask
	Tokens   [2]int64          // usage: in, out
	CostUSD  float64           // usage
	Steps    []Step            // repeat, ask (allowed)
	Else     []Step            // ask (denied), on (else)
	Choices  [][]Step          // one_of
	Cases    []Case            // on
}

// Case is what is played where a prompt contains something.
type Case struct {
	Containing string
	Steps      []Step
}

// Load reads and checks a script file. A script with faults is a Faults.
func Load(path string) (*Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w; correct `script`, or write the file", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the script: %s is no regular file", path)
	}
	source, err := io.ReadAll(io.LimitReader(f, scriptBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	return Parse(filepath.Base(path), source)
}

// talk is what a kind of session plays that is told one thing after the other; empty: nothing of
// its own.
func (p *Program) talk(kind driver.Kind) []Step {
	switch {
	case kind == driver.Lead && len(p.Lead) > 0:
		return p.Lead
	case kind == driver.Lead, kind == driver.Turn:
		return p.Turn
	}
	return nil
}

// pick says which session number n plays.
func (p *Program) pick(n int, draw func(int) int) Session {
	if p.Random {
		return p.Sessions[draw(len(p.Sessions))]
	}
	return p.Sessions[(max(n, 1)-1)%len(p.Sessions)]
}
