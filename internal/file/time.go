package file

import (
	"fmt"
	"strings"
	"time"
)

// ParseTime parses a time as other programs write it: RFC 3339 with any fraction, which includes the seed's
// isoformat()+"Z"; a space or a small t instead of T; and +00:00Z, which the same Python code gives for a
// time with a zone.
func ParseTime(text string) (time.Time, error) {
	norm := strings.ToUpper(strings.TrimSpace(text))
	if before, ok := strings.CutSuffix(norm, "+00:00Z"); ok {
		norm = before + "Z"
	}
	if len(norm) > 10 && norm[10] == ' ' {
		norm = norm[:10] + "T" + norm[11:]
	}
	at, err := time.Parse(time.RFC3339Nano, norm)
	if err != nil {
		return time.Time{}, fmt.Errorf("timestamp %.40q is not RFC 3339 (as 2025-10-15T22:39:14.372Z)", text)
	}
	return at.UTC(), nil
}

// FormatTime formats a time like seed 000: UTC, milliseconds, Z.
func FormatTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
