package scriptmodel

import (
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/internal/encode"
)

// events writes server-sent events until the client disconnects.
type events struct {
	w          http.ResponseWriter
	gone, over <-chan struct{} // the program disconnected; the test has ended
	letGo      <-chan struct{}
}

// send writes one event. Data that is not a text is written as JSON.
func (e *events) send(name string, v any) {
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	text, ok := v.(string)
	if !ok {
		text = string(encode.JSON(v))
	}
	fmt.Fprintf(e.w, "data: %s\n\n", text)
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}

// speak writes the text of an answer in pieces, and reports whether the client is still connected.
func (e *events) speak(a answer, piece func(text string)) bool {
	for i, text := range a.pieces() {
		if i > 0 && !e.wait(a.pause) {
			return false
		}
		piece(text)
	}
	if a.hold {
		select {
		case <-e.letGo:
			if a.after != "" {
				piece(a.after)
			}
		case <-e.gone:
			return false
		case <-e.over:
			return false
		}
	}
	return true
}

// wait waits for a duration, and reports whether the client is still connected.
func (e *events) wait(d time.Duration) bool {
	if d == 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-e.gone:
	case <-e.over:
	}
	return false
}
