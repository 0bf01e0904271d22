package view

import (
	"slices"
	"time"
)

// moment is a time for a view: null where there is none.
func Moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// Some is the list, or an empty one for nil, so that JSON has [] and not null.
func Some(list []string) []string {
	if list == nil {
		return []string{}
	}
	return slices.Clone(list)
}
