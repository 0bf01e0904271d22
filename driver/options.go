package driver

import (
	"slices"
	"strings"
)

// AllowMore is the kind of an option that may allow more than this one call. It is not a plain yes:
// only a person chooses it.
const AllowMore = "allow_more"

// Unambiguous returns the options of a question with one option for each ID, because an answer is
// only an ID. Options with the same ID and kind are one. If all of them allow, the effect of the
// answer may be the widest of theirs, so the option is AllowMore. If one of them rejects or has an
// unknown kind, the ID says both yes and no, and the option is dropped.
func Unambiguous(options []Option) []Option {
	var all []Option
	for _, o := range options {
		i := slices.IndexFunc(all, func(had Option) bool { return had.ID == o.ID })
		if i < 0 {
			all = append(all, o)
			continue
		}
		had := &all[i]
		if o.Label != "" && !slices.Contains(strings.Split(had.Label, " / "), o.Label) {
			had.Label = strings.TrimPrefix(had.Label+" / "+o.Label, " / ")
		}
		switch {
		case had.Kind == o.Kind:
		case strings.HasPrefix(had.Kind, "allow") && strings.HasPrefix(o.Kind, "allow"):
			had.Kind = AllowMore
		case strings.HasPrefix(had.Kind, "reject") && strings.HasPrefix(o.Kind, "reject"):
			had.Kind = "reject_once"
		default:
			had.Kind = bothKinds
		}
	}
	return slices.DeleteFunc(all, func(o Option) bool { return o.Kind == bothKinds })
}

const bothKinds = "\x00" // different from every kind that a program can send
