package cli

import (
	"strings"
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	zone := time.FixedZone("x", 3600)
	now := time.Date(2026, 11, 25, 10, 30, 0, 0, zone)
	for text, want := range map[string]string{
		"12": "12", " 7 ": "7", "2h": "2026-11-25T07:30:00Z", "2d": "2026-11-23T09:30:00Z", "1d12h": "2026-11-23T21:30:00Z", "d": "",
		"99999999d": "", "90s ago": "2026-11-25T09:28:30Z",
		"09:15": "2026-11-25T08:15:00Z", "11:00": "2026-11-24T10:00:00Z", "10:30:00": "2026-11-25T09:30:00Z",
		"2026-11-24": "2026-11-23T23:00:00Z", "2026-11-24 09:30": "2026-11-24T08:30:00Z", "2026-11-24T09:30:05": "2026-11-24T08:30:05Z",
		"2026-11-24T09:30:00Z": "2026-11-24T09:30:00Z", "2026-11-24T09:30:00+02:00": "2026-11-24T07:30:00Z",
		"yesterday": "2026-11-23T23:00:00Z", "last-night": "2026-11-24T17:00:00Z", "today": "2026-11-24T23:00:00Z", "": "", "tomorrow": "",
		"-1": "", "-2h": "", "25:00": "", "2026-13-01": "", "9999999999999999999999": "",
	} {
		got, err := moment(text, now)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

// A night is named by two clock times or by a word, whether it is over or not.
func TestSpan(t *testing.T) {
	at := func(day, hour, min int) time.Time { return time.Date(2026, 11, day, hour, min, 0, 0, time.UTC) }
	for _, c := range []struct {
		since, until string
		now          time.Time
		from, to     time.Time
	}{
		{"22:00", "07:00", at(25, 9, 30), at(24, 22, 0), at(25, 7, 0)},
		{"22:00", "07:00", at(25, 5, 30), at(24, 22, 0), at(25, 7, 0)},
		{"last-night", "", at(25, 9, 30), at(24, 18, 0), time.Time{}},
		{"last-night", "last-night", at(25, 5, 30), at(24, 18, 0), at(25, 8, 0)},
		{"yesterday", "yesterday", at(1, 9, 30), at(0, 0, 0), at(1, 0, 0)},
		{"", "last night", at(25, 9, 30), time.Time{}, at(25, 8, 0)},
		{"2d", "today", at(25, 9, 30), at(23, 9, 30), at(26, 0, 0)},
	} {
		from, to, err := SpanOf(c.since, c.until, c.now)
		if err != nil || !from.Equal(c.from) || !to.Equal(c.to) {
			t.Errorf("%s to %s at %s: %s, %s, %v", c.since, c.until, c.now, from, to, err)
		}
	}
	for _, bad := range [][3]string{
		{
			"noon", "",
			`--since "noon" is not a time; write how long ago, as in 90m or 7d, a time as in 22:00, a date as in 2026-11-25, or today, yesterday or last-night`,
		},
		{"", "soon", `--until "soon" is not a time`},
		{"1h", "2h", "--until 2h is before --since 1h"},
		{"2026-11-25", "2026-11-24", "is before"},
	} {
		if _, _, err := SpanOf(bad[0], bad[1], at(25, 9, 30)); err == nil || !strings.Contains(err.Error(), bad[2]) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
