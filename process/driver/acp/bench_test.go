package acp

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// BenchmarkHear measures the handling of one message chunk, from the program's pipe to the event,
// compared with parsing its JSON once.
func BenchmarkHear(b *testing.B) {
	const chunks = 5000
	line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"some words of an answer "}}}}`
	var heard, read time.Duration
	for b.Loop() {
		began := time.Now()
		orders := make(chan speech.Order, 1)
		orders <- speech.Order{Type: speech.OrderStart, Text: "go"}
		stage := adapter.NewStage(speech.NewWriter(counter{}), "/work/repo", nil)
		stage.Orders, stage.Starts = orders, startFake(func(f *fake) {
			f.greeted()
			p := f.expect("session/prompt")
			for range chunks {
				f.print("%s", line)
			}
			f.result(p, `{"stopReason":"end_turn"}`)
			f.next()
		})
		part := adapter.Part{Kind: "acp", What: driver.Work, Command: []string{"/bin/fake"}, Dir: "/work/repo"}
		if stop := adapter.Perform(b.Context(), Driver{}, part, stage); !stop.OK {
			b.Fatalf("%+v", stop)
		}
		heard += time.Since(began)
		began = time.Now()
		for range chunks {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				b.Fatal(err)
			}
		}
		read += time.Since(began)
	}
	b.ReportMetric(float64(heard.Nanoseconds())/float64(b.N*chunks), "ns/chunk")
	b.ReportMetric(float64(heard)/float64(read), "times-reading-it")
}

type counter struct{}

func (counter) Write(b []byte) (int, error) { return len(b), nil }
