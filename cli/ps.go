package cli

import (
	"time"
)

// ClockAt is a time as the clock on the wall shows it, with the day where it is not today.
func ClockAt(at time.Time) string {
	at = at.Local()
	if now := time.Now(); at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return at.Format("Mon 15:04")
	}
	return at.Format("15:04")
}

// OrNote is a note, or a short text that says there is none.
func OrNote(note string) string {
	if note == "" {
		return ""
	}
	return " (" + Line(note, 60) + ")"
}
