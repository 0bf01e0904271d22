package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// AtFlag gives a command that reads the flag --at.
func (a *App) AtFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.at, "at", "",
		"show it as it was at a `moment`: a time (09:30, \"2026-11-24 09:30\"), how long ago (2h, 3d) or the number of a change")
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
		return "", &Coded{
			Code: ExitUsage,
			Err:  fmt.Errorf("%w, or the number of a change as `fairlead events` prints it", noTime("--at", text)),
		}
	}
	return at.UTC().Format(time.RFC3339Nano), nil
}

// daysMax is more than any journal has.
const daysMax = 36500

// noTime is the error for a text that TimeOf does not read.
func noTime(flag, text string) error {
	return fmt.Errorf("%s %q is not a time; write how long ago, as in 90m or 7d, a time as in 22:00, a date as in 2026-11-25, or today, yesterday or last-night", flag, text)
}

// The hours of the word last-night: from the evening of yesterday to the morning of today. The page has the same ones.
const (
	evening = 18
	morning = 8
)

// named is the span of a word such as yesterday, in the zone of now.
func named(word string, now time.Time) (from, to time.Time, ok bool) {
	at := func(day, hour int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+day, hour, 0, 0, 0, now.Location())
	}
	switch word {
	case "today":
		return at(0, 0), at(1, 0), true
	case "yesterday":
		return at(-1, 0), at(0, 0), true
	case "last-night", "last night":
		return at(-1, evening), at(0, morning), true
	}
	return time.Time{}, time.Time{}, false
}

// SpanOf reads --since and --until; empty: no such end. A word such as yesterday is its beginning for --since and its end
// for --until. A clock time for the end is the first one after the beginning, so that 22:00 to 07:00 is one night.
func SpanOf(since, until string, now time.Time) (from, to time.Time, err error) {
	var ok bool
	if since != "" {
		if from, ok = TimeOf(since, now); !ok {
			return from, to, noTime("--since", since)
		}
	}
	if until == "" {
		return from, to, nil
	}
	if _, to, ok = named(until, now); !ok {
		if to, ok = TimeOf(until, now); !ok {
			return from, to, noTime("--until", until)
		}
	}
	clock := strings.Contains(until, ":") && !strings.ContainsAny(until, "-T")
	if next := to.AddDate(0, 0, 1); clock && to.Before(from) && next.After(from) {
		to = next
	}
	if to.Before(from) {
		return from, to, fmt.Errorf("--until %s is before --since %s", until, since)
	}
	return from, to, nil
}

// TimeOf reads a time that a person wrote: how long ago, as in 90m or 7d; a date, with a time or without; a clock time, which
// is the last one that has been; or a word such as yesterday, which is its beginning. Without a zone it is in that of now.
// False: it is none of these.
func TimeOf(text string, now time.Time) (time.Time, bool) {
	text = strings.TrimSuffix(strings.TrimSpace(text), " ago")
	if from, _, ok := named(text, now); ok {
		return from, true
	}
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
	for _, layout := range []string{
		time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04",
		time.DateOnly,
	} {
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

// Days is a duration that may be given in days, which Go's durations do not support.
type Days time.Duration

func (d *Days) String() string {
	if *d == 0 {
		return ""
	}
	if at := time.Duration(*d); at%(24*time.Hour) != 0 {
		return at.String()
	}
	return strconv.Itoa(int(time.Duration(*d)/(24*time.Hour))) + "d"
}

// Type is the flag's type in help texts.
func (d *Days) Type() string { return "time" }

// daysMost keeps the multiplication from overflowing.
const daysMost = 100_000

// Set parses the flag.
func (d *Days) Set(text string) error {
	var at time.Duration
	var err error
	if number, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		if n, err = strconv.ParseFloat(number, 64); err == nil && n < daysMost {
			at = time.Duration(n * float64(24*time.Hour))
		}
	} else {
		at, err = time.ParseDuration(text)
	}
	if err != nil || at <= 0 {
		return errors.New("expected a time such as 30d or 12h")
	}
	*d = Days(at)
	return nil
}
