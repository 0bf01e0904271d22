package adapter_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// TestDiesWithItsAdapter checks that a program does not outlive a killed adapter, even if it
// ignores the end of its input.
func TestDiesWithItsAdapter(t *testing.T) {
	cmd := exec.Command(os.Args[0], adapter.Verb, "plain", "--name", "coder", "--session", "coder-1", "--", os.Args[0], programVerb, "pid")
	cmd.Stdin = strings.NewReader(string(speech.Order{Type: speech.OrderStart, Text: "who are you?"}.Encode()))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _, _ = io.Copy(io.Discard, out) }()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var said driver.Fact
	if err != nil || json.Unmarshal(line, &said) != nil || said.Text == "" {
		t.Fatalf("it said %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var stat []byte
	if !wait.Poll(func() bool {
		var err error
		stat, err = os.ReadFile("/proc/" + said.Text + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}) {
		if pid, err := strconv.Atoi(said.Text); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		t.Fatalf("the program %s still runs: %s", said.Text, stat)
	}
}
