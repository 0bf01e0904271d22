package view

import (
	"slices"
	"time"
)

// Moment returns a time for a view: nil, JSON's null, for the zero time.
func Moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// Some returns the list, or an empty one for nil, so that JSON has [] and not null.
func Some(list []string) []string {
	if list == nil {
		return []string{}
	}
	return slices.Clone(list)
}
