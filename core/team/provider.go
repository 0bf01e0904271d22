package team

import "time"

// Provider is what a program says about a provider that does not answer. It tries again by itself and says why it has to; the session goes
// on meanwhile, and the state is only shown.
type Provider struct {
	Code  string    `json:"code,omitempty"` // a driver.ProviderCode; empty: it answers again
	Why   string    `json:"why,omitempty"`  // in the program's words
	Since time.Time `json:"since,omitzero"` // of the first report with this code
}

// Next is a report at a time as it is kept, after what held before (nil: the provider answered); nil: there is no report. cut makes a
// short line of a text.
func (s *Provider) Next(was *Provider, at time.Time, cut func(string) string) *Provider {
	switch {
	case s == nil:
		return nil
	case s.Code == "":
		return &Provider{}
	case was != nil && was.Code == s.Code:
		at = was.Since
	}
	return &Provider{Code: cut(s.Code), Why: cut(s.Why), Since: at.UTC()}
}

// Standing is what holds after a report; nil: the provider answers.
func (s *Provider) Standing() *Provider {
	if s.Code == "" {
		return nil
	}
	return s
}
