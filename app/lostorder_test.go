package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/files/agentstate"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// lostOrderRounds is how many orders the torture gives; FAIRLEAD_LOST_ORDERS sets another number.
func lostOrderRounds() int {
	if n, err := strconv.Atoi(os.Getenv("FAIRLEAD_LOST_ORDERS")); err == nil && n > 0 {
		return n
	}
	return testsize.Pick(60, 1000, 3000)
}

// reporter is the loop of seed 000 inside of the test, without its sessions: it reports what the file asks for, and writes
// `setBy: agent` each time. Between its read and its write it takes as long as the test says.
type reporter struct {
	path  string
	pause atomic.Int64 // nanoseconds between a read and the write
	over  chan struct{}
	wrote chan struct{} // one for each write
}

func (r *reporter) read() map[string]any {
	for {
		state := map[string]any{}
		if text, err := os.ReadFile(r.path); err == nil && json.Unmarshal(text, &state) == nil {
			return state
		}
		wait.Pause(time.Millisecond)
	}
}

func (r *reporter) run(fail func(error)) {
	for {
		select {
		case <-r.over:
			return
		default:
		}
		state := r.read()
		was := state["current_state"]
		wait.Pause(time.Duration(r.pause.Load()))
		state["current_state"], state["setBy"] = state["desired_state"], "agent"
		state["timestamp"] = time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
		text, err := json.MarshalIndent(state, "", "  ")
		if err == nil && was != state["current_state"] {
			err = os.WriteFile(r.path, text, 0o644)
			select {
			case r.wrote <- struct{}{}:
			default:
			}
		}
		if err != nil {
			fail(err)
			return
		}
		wait.Pause(2 * time.Millisecond)
	}
}

// SPEC C10, F3, F4: an order that was acknowledged while a foreign loop reports is not lost, in thousands of tries with real files
// on a busy machine. FAIRLEAD_LOST_ORDERS sets their number, FAIRLEAD_LOST_ORDERS_SEED repeats one run.
func TestNoOrderIsLostToAReport(t *testing.T) {
	t.Parallel()
	rounds, seed := lostOrderRounds(), uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("FAIRLEAD_LOST_ORDERS_SEED"), 10, 64); err == nil {
		seed = n
	}
	const loops = 8 // at once: they are each other's load
	w := newWorld(t, agentsYAML(loops), nil)
	var over atomic.Bool
	defer over.Store(true)
	for range testsize.Pick(0, 2, 2) {
		go func() {
			for !over.Load() { // load
			}
		}()
	}
	var given atomic.Int64
	var group sync.WaitGroup
	for i := range loops {
		agent := fmt.Sprint("a", i)
		group.Go(func() { raceOrders(t, w, agent, rand.New(rand.NewPCG(seed, uint64(i))), rounds/loops+1, &given) })
	}
	group.Wait()
	t.Logf("%d orders during reports, none lost (FAIRLEAD_LOST_ORDERS_SEED=%d)", given.Load(), seed)
}

func agentsYAML(n int) string {
	text := "version: 1\nagents:\n"
	for i := range n {
		text += fmt.Sprintf("  a%d: {driver: exec, loop: foreign, description: a foreign loop, workspace: a%d}\n", i, i)
	}
	return text
}

// raceOrders orders one loop now this and now that, each time around its report of the order before.
func raceOrders(t *testing.T, w *world, agent string, rnd *rand.Rand, rounds int, given *atomic.Int64) {
	loop := &reporter{path: filepath.Join(w.dir, agent, agentstate.FileName), over: make(chan struct{}), wrote: make(chan struct{}, 1)}
	var ran sync.WaitGroup
	defer ran.Wait()
	defer close(loop.over)
	order := func(word string) bool {
		_, err := w.engine.Agents.Command(context.Background(), human, agent, word, "order "+word)
		if err != nil {
			t.Error(err)
		}
		return err == nil
	}
	if !order("pause") {
		return
	}
	ran.Go(func() { loop.run(func(err error) { t.Error(err) }) })
	for range rounds {
		if t.Failed() {
			return
		}
		loop.pause.Store(rnd.Int64N(int64(12 * time.Millisecond)))
		select {
		case <-loop.wrote:
		default:
		}
		if !order("run_once") {
			return
		}
		if rnd.IntN(2) == 0 { // the report is on its way, or just written
			select {
			case <-loop.wrote:
			case <-time.After(waitMax):
				t.Error("the loop does not report")
				return
			}
		}
		wait.Pause(time.Duration(rnd.Int64N(int64(25 * time.Millisecond))))
		if !order("continuous") {
			return
		}
		given.Add(1)
		stands := wait.Poll(func() bool {
			a, err := w.engine.Status.Agent(context.Background(), agent)
			return err == nil && a.DesiredState == "continuous" && a.CurrentState == "continuous" && fileDesires(loop.path, "continuous")
		})
		if !stands {
			a, err := w.engine.Status.Agent(context.Background(), agent)
			text, _ := os.ReadFile(loop.path)
			t.Errorf("the order is lost: the API says %s and %s (%v), the file says\n%s", a.DesiredState, a.CurrentState, err, text)
			return
		}
		if !order("pause") {
			return
		}
		w.quietly(agent, func(a view.AgentView) bool { return a.CurrentState == "pause" })
	}
}

func fileDesires(path, word string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	state, err := agentstate.Parse(text)
	return err == nil && state.DesiredState == word
}

// quietly waits for a condition on an agent, from any goroutine.
func (w *world) quietly(agent string, ok func(view.AgentView) bool) {
	if !wait.Poll(func() bool { a, err := w.engine.Status.Agent(context.Background(), agent); return err == nil && ok(a) }) {
		w.t.Errorf("%s does not do as the test needs", agent)
	}
}
