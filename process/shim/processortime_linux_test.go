package shim

import (
	"os/exec"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// TestProcessorTime: the time of a child counts, while it lives and after its parent has waited for it. A process that
// sleeps uses none, and of one that is gone nothing is known.
func TestProcessorTime(t *testing.T) {
	t.Parallel()
	busy := exec.CommandContext(t.Context(), "sh", "-c", "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); echo; exec sleep 1000")
	out, err := busy.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	used := func() time.Duration { is, _ := ProcessorTime(busy.Process.Pid); return is }
	if !wait.Poll(func() bool { return used() >= 2*tick }) {
		t.Fatalf("the child has used %v", used())
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // the child has ended
		t.Fatal(err)
	}
	if used() < 2*tick {
		t.Errorf("after its end the child has used %v", used())
	}
	_ = busy.Process.Kill()
	_ = busy.Wait()
	if is, known := ProcessorTime(busy.Process.Pid); known {
		t.Errorf("a process that is gone has used %v", is)
	}
}
