package prompts

import (
	"strings"
	"testing"
	"time"
)

// BenchmarkTurnPrompt measures a turn prompt with two hundred messages of a kilobyte.
func BenchmarkTurnPrompt(b *testing.B) {
	told := TurnInput{Channel: "reviews", Agent: "pm", Turn: 17, Members: []string{"coder", "pm"}, Waits: time.Minute}
	for n := range uint64(200) {
		told.Said = append(told.Said, TurnLine{N: n + 1, By: "coder", Text: strings.Repeat("Sixteen letters\n", 64)})
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(ForTurn(told)) < 200<<10 {
			b.Fatal("too little")
		}
	}
}
