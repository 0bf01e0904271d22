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

func Some(list []string) []string {
	if list == nil {
		return []string{}
	}
	return slices.Clone(list)
}
