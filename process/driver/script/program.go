package script

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// Program is a script without faults.
type Program struct {
	File     string    // the name given to Load or Parse
	Sessions []Session // at least one
	Cleanup  []Step    // steps of a cleanup session; empty: it says that there is nothing to tidy
	Turn     []Step    // steps of a session for channel turns; empty: like any other session
	Lead     []Step    // steps of a lead session; empty: like Turn
}

// Session is one of the lists of steps that a script can play.
type Session struct {
	Name  string
	Steps []Step
}

// Step is one step of a script: a verb and its options.
type Step struct {
	Verb         string
	Line, Column int

	Text    string            // of say, think, run, emit, fail, ask, hang
	Delay   time.Duration     // say, think: between words
	Sleep   time.Duration     // sleep
	Times   int               // emit
	Says    bool              // run: its output counts as the agent's own words
	Raw     bool              // run: its output is the agent's output, as it is
	Code    int               // fail
	Usage   change.Usage      // usage
	Tool    string            // ask
	Args    map[string]string // ask: the arguments of the tool
	Options []string          // ask
	Timeout time.Duration     // ask; 0: none
}

// loaded holds the last version of each script that was read: a daemon asks at every start of a session.
var loaded sync.Map // of *version, by path

type version struct {
	info    os.FileInfo
	program *Program
	err     error
}

// Load reads and checks a script file, unless it has not changed since the last time. A faulty script
// returns Faults. The program must not be changed.
func Load(path string) (*Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w; correct `script`, or write the file", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the script: %s is not a regular file", path)
	}
	if last, ok := loaded.Load(path); ok {
		if v := last.(*version); os.SameFile(v.info, info) && v.info.Size() == info.Size() &&
			v.info.ModTime().Equal(info.ModTime()) { //nolint:forcetypeassert // nothing else is stored
			return v.program, v.err
		}
	}
	source, err := io.ReadAll(io.LimitReader(f, scriptBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	program, err := Parse(filepath.Base(path), source)
	if time.Since(info.ModTime()) > time.Second { // a file that was just written may change again and keep its time
		loaded.Store(path, &version{info: info, program: program, err: err})
	}
	return program, err
}

// prompted returns the steps for a kind of session that takes prompts; empty: it has no steps of its
// own.
func (p *Program) prompted(kind driver.Kind) []Step {
	switch {
	case kind == driver.Lead && len(p.Lead) > 0:
		return p.Lead
	case kind == driver.Lead, kind == driver.Turn:
		return p.Turn
	}
	return nil
}

// Fault is one error in a script, with its position.
type Fault = file.Fault

// Faults lists the errors in a script, in the order of the file.
type Faults []Fault

func (f Faults) Error() string { return file.FaultLines(f) }
