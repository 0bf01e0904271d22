package codex

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// rolloutTailBytes is how much of a record's end is read. Totals are written after every request,
// and between two of them there is at most one answer of a model and the output of one tool.
const rolloutTailBytes = 4 << 20

var threadID = regexp.MustCompile(`^[0-9A-Za-z-]{8,64}$`)

// usedBefore returns what a thread has used so far according to codex's own record; false if there
// is none. The record is an internal file of the program, so only the first usage report of a
// resumed conversation depends on it.
func usedBefore(env []string, thread string) (driver.Usage, bool) {
	tail, err := recordOf(env, thread)
	if err != nil {
		return driver.Usage{}, false
	}
	return lastTotal(tail)
}

// modelOf returns the model of a thread's last answer according to codex's own record; empty if it does
// not say. `codex exec --json` never names the model.
func modelOf(env []string, thread string) string {
	tail, err := recordOf(env, thread)
	if err != nil {
		return ""
	}
	return lastModel(tail)
}

// recordOf returns the end of a thread's record.
func recordOf(env []string, thread string) ([]byte, error) {
	home := codexHome(env)
	if home == "" || !threadID.MatchString(thread) {
		return nil, os.ErrNotExist
	}
	files, err := filepath.Glob(filepath.Join(home, "sessions", "*", "*", "*", "rollout-*-"+thread+".jsonl"))
	if err != nil || len(files) == 0 {
		return nil, os.ErrNotExist
	}
	return readTail(files[len(files)-1])
}

// codexHome is the folder in which codex keeps its records.
func codexHome(env []string) (dir string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case name == "CODEX_HOME" && filepath.IsAbs(value):
			return value
		case name == "HOME" && filepath.IsAbs(value):
			dir = filepath.Join(value, ".codex")
		}
	}
	return dir
}

func readTail(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	if info.Size() > rolloutTailBytes {
		if _, err := f.Seek(-rolloutTailBytes, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, rolloutTailBytes))
}

// backwards calls see with each line of a record that contains a word, the last one first, until it
// returns false.
func backwards(record []byte, word string, see func(line []byte) (more bool)) {
	for len(record) > 0 {
		start := bytes.LastIndexByte(bytes.TrimRight(record, "\n"), '\n') + 1
		line := record[start:]
		record = record[:start]
		if bytes.Contains(line, []byte(word)) && !see(line) {
			return
		}
	}
}

// lastModel returns the model that the last answer in a record was asked from.
func lastModel(record []byte) (model string) {
	backwards(record, `"turn_context"`, func(line []byte) bool {
		var says struct {
			Type    string `json:"type"`
			Payload struct {
				Model string `json:"model"`
			} `json:"payload"`
		}
		if json.Unmarshal(line, &says) != nil || says.Type != "turn_context" {
			return true
		}
		model = adapter.OneLine(says.Payload.Model)
		return false
	})
	return model
}

// lastTotal returns the last total in a record.
func lastTotal(record []byte) (used driver.Usage, known bool) {
	backwards(record, `"token_count"`, func(line []byte) bool {
		var says struct {
			Payload struct {
				Type string `json:"type"`
				Info *struct {
					Total *usage `json:"total_token_usage"`
				} `json:"info"`
			} `json:"payload"`
		}
		if json.Unmarshal(line, &says) != nil || says.Payload.Type != "token_count" || says.Payload.Info == nil ||
			says.Payload.Info.Total == nil {
			return true
		}
		total := says.Payload.Info.Total
		used, known = driver.Usage{InputTokens: total.Input.Count(), OutputTokens: total.Output.Count()}, true
		return false
	})
	return used, known
}
