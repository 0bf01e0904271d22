package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

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
