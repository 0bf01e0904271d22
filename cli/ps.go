package cli

import (
	"time"
)

// ClockAt formats a local time, with the date if it is not today.
func ClockAt(at time.Time) string {
	at = at.Local()
	if now := time.Now(); at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return at.Format("Mon 15:04")
	}
	return at.Format("15:04")
}

// OrNote is a note in parentheses, or nothing.
func OrNote(note string) string {
	if note == "" {
		return ""
	}
	return " (" + Line(note, 60) + ")"
}
