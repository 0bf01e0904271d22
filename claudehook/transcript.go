package claudehook

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

const (
	transcriptTail = 256 << 10 // bytes at the end of the program's transcript that are read
	thoughtMax     = 16 << 10  // bytes that dialogue.md keeps
)

// thought records what MAIN said and thought before it delegates, if the program's transcript has it by then
// (seed 002, Dialogue Recording). It is optional: if there is no transcript, or its format is unknown,
// nothing is recorded.
func (v *visit) thought() {
	c := v.session.Open
	if c == nil || v.Agent != "" || !filepath.IsAbs(v.Transcript) {
		return
	}
	tail, err := readTail(v.Transcript)
	if err != nil {
		return
	}
	if text := lastThought(tail); text != "" {
		_ = v.folder.Note(v.Now(), c.N, dispatch.Entry{Kind: dispatch.OfThought, Who: dispatch.Main, Text: cut(text, thoughtMax)})
	}
}

// readTail reads the end of a regular file.
func readTail(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // the error is only tested for nil
	}
	if !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // the error is only tested for nil
	}
	defer file.Close() //nolint:errcheck // it was only read
	from := max(0, info.Size()-transcriptTail)
	return io.ReadAll(io.NewSectionReader(file, from, transcriptTail)) //nolint:wrapcheck // the error is only tested for nil
}

// lastThought returns what the assistant thought and said since the last text by another speaker.
func lastThought(tail []byte) string {
	var parts []string
	for line := range bytes.Lines(tail) {
		var is struct {
			Type    string `json:"type"`
			Side    bool   `json:"isSidechain"` // a subagent's
			Message struct {
				Content json.RawMessage `json:"content"`
			} `json:"message"`
		}
		if json.Unmarshal(line, &is) != nil || is.Side {
			continue // the first line is incomplete
		}
		switch is.Type {
		case "user":
			parts = nil
		case "assistant":
			var blocks []struct {
				Type     string `json:"type"`
				Thinking string `json:"thinking"`
				Text     string `json:"text"`
			}
			if json.Unmarshal(is.Message.Content, &blocks) != nil {
				continue
			}
			for _, b := range blocks {
				if text := strings.TrimSpace(b.Thinking + b.Text); text != "" && (b.Type == "thinking" || b.Type == "text") {
					parts = append(parts, text)
				}
			}
		}
	}
	return strings.Join(parts, "\n\n")
}
