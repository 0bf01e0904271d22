package acp

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/lazy"
)

// The protocol has no code for a rate limit of the provider. Programs report it as an error in their
// own words; these patterns were observed or are documented.
var (
	limitWords = lazy.Regexp(`(?i)rate[ _-]?limit|too many requests|(usage|session|weekly|hourly|daily) limit|quota (exceeded|exhausted)|exceeded your current quota|resource_exhausted|(status|error|http|code)\W{0,4}(code\W{0,4})?429\b`)
	waitWords  = lazy.Regexp(`(?i)(?:retry|try again|reset\w*|wait)\D{0,20}?(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b`)
	untilWords = lazy.Regexp(`\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)`)
	signIn     = lazy.Regexp(`(?i)auth|sign.?in|log.?in|api.?key|credential`)
)

// waitMax is the longest wait that is accepted. Weekly limits are the longest known ones.
const waitMax = 8 * 24 * time.Hour

// rateLimit reports whether an error is a provider's rate limit, and until when it applies; zero:
// unknown.
func rateLimit(e *rpcError, now time.Time) (until time.Time, limited bool) {
	data := string(e.Data)
	of := objectOf(e.Data)
	status, _ := of.number("status")
	if code, ok := of.number("statusCode"); ok {
		status = code
	}
	if status != 429 && e.Code != 429 && !limitWords().MatchString(e.Message+" "+data) {
		return time.Time{}, false
	}
	for _, name := range []string{"retry_after", "retryAfter", "retry-after", "retryAfterSeconds"} {
		if seconds, ok := number(of[name]); ok {
			return believed(now, now.Add(time.Duration(seconds*float64(time.Second)))), true
		}
	}
	for _, name := range []string{"resets_at", "resetsAt", "reset_at", "resetAt"} {
		if seconds, ok := number(of[name]); ok {
			if seconds > 1e12 { // it is in milliseconds
				seconds /= 1e3
			}
			return believed(now, time.Unix(int64(seconds), 0).UTC()), true
		}
	}
	text := e.Message + " " + data
	if at, err := time.Parse(time.RFC3339, untilWords().FindString(text)); err == nil {
		return believed(now, at.UTC()), true
	}
	if found := waitWords().FindStringSubmatch(text); found != nil {
		n, err := strconv.ParseFloat(found[1], 64)
		if err == nil && n < 1e9 {
			return believed(now, now.Add(time.Duration(n*float64(unit(found[2]))))), true
		}
	}
	return time.Time{}, true
}

func unit(word string) time.Duration {
	switch word = strings.ToLower(word); {
	case strings.HasPrefix(word, "ms"), strings.HasPrefix(word, "milli"):
		return time.Millisecond
	case strings.HasPrefix(word, "m"):
		return time.Minute
	case strings.HasPrefix(word, "h"):
		return time.Hour
	}
	return time.Second
}

// number decodes a number, also from a string.
func number(raw json.RawMessage) (float64, bool) {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	return n, err == nil && n >= 0 && n < 1e14
}

// believed returns until if it is plausible: not in the past and within waitMax. Otherwise it
// returns zero.
func believed(now, until time.Time) time.Time {
	if until.Before(now) || until.After(now.Add(waitMax)) {
		return time.Time{}
	}
	return until.UTC().Truncate(time.Second)
}
