package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// AtFlag gives a command that reads the flag --at.
func (a *App) AtFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.at, "at", "", "show it as it was at a `moment`: a time (09:30, \"2026-11-24 09:30\"), how long ago (2h, 3d) or the number of a change")
	return cmd
}

// moment is a moment as the API reads it: the number of a change, or a time with its zone.
func moment(text string, now time.Time) (string, error) {
	text = strings.TrimSpace(text)
	if seq, err := strconv.ParseUint(text, 10, 63); err == nil {
		return strconv.FormatUint(seq, 10), nil
	}
	at, ok := TimeOf(text, now)
	if !ok {
		return "", &Coded{Code: ExitUsage, Err: fmt.Errorf("--at %q is no moment; give a time such as 09:30 or \"2026-11-24 09:30\", a duration such as 2h, or the number of a change as `fairlead events` prints it", text)}
	}
	return at.UTC().Format(time.RFC3339Nano), nil
}

// daysMax is more than any journal has.
const daysMax = 36500

// TimeOf reads a time that a person wrote: how long ago, as in 90m or 7d; a date, with a time or without; or a time, which
// is the last one that has been. Without a zone it is in that of now. False: it is none of these.
func TimeOf(text string, now time.Time) (time.Time, bool) {
	text = strings.TrimSuffix(strings.TrimSpace(text), " ago")
	if n, rest, is := strings.Cut(text, "d"); is {
		days, err := strconv.ParseUint(n, 10, 32)
		ago, rested := time.ParseDuration(cmp.Or(rest, "0s"))
		if err == nil && rested == nil && days <= daysMax && ago >= 0 {
			return now.AddDate(0, 0, -int(days)).Add(-ago), true
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, true
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		clock, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
		if at.After(now) {
			at = at.AddDate(0, 0, -1)
		}
		return at, true
	}
	return time.Time{}, false
}
