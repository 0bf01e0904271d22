package driver_test

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
)

// TestUnambiguous checks that an ID of two options means the stricter one, or cannot be chosen.
func TestUnambiguous(t *testing.T) {
	for given, want := range map[string]string{
		"":                             "",
		"y=allow_once n=reject_once":   "y=allow_once n=reject_once",
		"x=allow_once x=allow_once":    "x=allow_once",
		"x=allow_once x=allow_always":  "x=allow_more",
		"x=allow_always x=reject_once": "",
		"x=reject_once x=allow_once y=allow_once x=allow_once": "y=allow_once",
		"x=reject_always x=reject_once":                        "x=reject_once",
		"x=later x=allow_once":                                 "",
		"x=later x=later":                                      "x=later",
	} {
		var options []driver.Option
		for word := range strings.FieldsSeq(given) {
			id, kind, _ := strings.Cut(word, "=")
			options = append(options, driver.Option{ID: id, Kind: kind, Label: kind})
		}
		var got []string
		for _, o := range driver.Unambiguous(options) {
			got = append(got, o.ID+"="+o.Kind)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
