package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Event is one event of a stream.
type Event struct {
	Name string // empty if only the id has changed
	ID   string // the newest id; empty if there was none yet
	Data []byte
}

// ReadEvents reads server-sent events until the stream ends (io.EOF, or the error that broke it) or
// take returns false (nil). heard is called for every line, so that pings count as well.
func ReadEvents(r io.Reader, heard func(), take func(Event) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), EventBytesMax)
	var now Event
	data, moved := false, false
	for lines.Scan() {
		heard()
		line := bytes.TrimSuffix(lines.Bytes(), []byte{'\r'})
		if len(line) == 0 {
			if (data || moved) && !take(now) {
				return nil
			}
			now = Event{ID: now.ID}
			data, moved = false, false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "event":
			now.Name = string(value)
		case "id":
			now.ID, moved = string(value), true
		case "data":
			if data {
				now.Data = append(now.Data, '\n')
			}
			now.Data = append(now.Data, value...)
			data = true
			if len(now.Data) > EventBytesMax {
				return fmt.Errorf("an event of more than %d bytes: %w", EventBytesMax, bufio.ErrTooLong)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}

// EventBytesMax is the largest event that ReadEvents accepts, in bytes: a change has at most
// 1 MiB of data, and JSON may make it longer.
const EventBytesMax = 8 << 20
