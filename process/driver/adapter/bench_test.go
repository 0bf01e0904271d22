package adapter_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// BenchmarkHop measures the cost that the adapter adds to an update: 5,000 of them from one program,
// read directly and as events, alternately.
func BenchmarkHop(b *testing.B) {
	const updates = 5000
	order := speech.Order{Type: speech.OrderStart, Text: "go"}.Encode()
	read := func(argv []string, want string) time.Duration {
		began := time.Now()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin = bytes.NewReader(order)
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		n := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if bytes.Contains(lines.Bytes(), []byte(want)) {
				n++
			}
		}
		if _ = cmd.Wait(); n != updates {
			b.Fatalf("%d updates, want %d", n, updates)
		}
		return time.Since(began)
	}
	program := []string{os.Args[0], programVerb, "fast"}
	through := append([]string{os.Args[0], adapter.Verb, "plain", "--name", "coder", "--session", "coder-1", "--"}, program...)
	var straight, hopped time.Duration
	for b.Loop() {
		straight += read(program, `"say"`)
		hopped += read(through, `"said"`)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64((hopped-straight).Microseconds())/float64(b.N*updates), "µs/update")
	b.ReportMetric(float64(hopped)/float64(straight), "of-straight")
}

var benchEvent = driver.Fact{
	Kind: driver.ToolCalled, Tool: "Write", Text: "Write a.txt",
	Args: speech.Args(map[string]string{"file_path": "/w/a.txt", "content": "hello\n"}), Raw: []byte(`{"jsonrpc":"2.0","method":"x"}`),
}

// eventLine returns the event as the adapter writes it.
func eventLine() driver.Line {
	var out bytes.Buffer
	speech.NewWriter(&out).Tell(benchEvent)
	return driver.Line{Bytes: bytes.TrimSpace(out.Bytes()), End: int64(out.Len())}
}

// BenchmarkSpeech measures writing and parsing an event.
func BenchmarkSpeech(b *testing.B) {
	b.Run("tell", func(b *testing.B) {
		w := speech.NewWriter(io.Discard)
		for b.Loop() {
			w.Tell(benchEvent)
		}
	})
	b.Run("understand", func(b *testing.B) {
		line := eventLine()
		for b.Loop() {
			if speech.Fact(line).Kind != driver.ToolCalled {
				b.Fatal("not understood")
			}
		}
	})
}
