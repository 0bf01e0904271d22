package policy_test

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

// Every line of the table (D8, D9, X10).
func TestCalls(t *testing.T) {
	scene := policytest.Build(t)
	cases := policytest.Calls(t)
	attempts := 0
	for _, c := range cases {
		if c.Attempt {
			attempts++
		}
	}
	if len(cases) < 300 || attempts*3 < len(cases) {
		t.Errorf("%d calls, %d of them attempts; there should be 300, a third of them attempts", len(cases), attempts)
	}
	for _, c := range cases {
		v := policy.Judge(c.Rules(), c.Main, c.Call(scene), c.Where(scene), dispatchfolder.Disk{})
		got := v.Row
		switch {
		case v.Allow && v.Unread != "":
			got = "ask"
		case v.Allow && v.Unsure:
			got = "unsure"
		case v.Allow:
			got = "allow"
		}
		if got != c.Verdict || !strings.Contains(strings.ToLower(v.Reason), strings.ToLower(c.Key)) {
			t.Errorf("calls.txt:%d: %s\n\tis %s: %s", c.Line, c.Text, got, v.Reason)
		}
		if !v.Allow && (v.Reason == "" || v.Capability == "") {
			t.Errorf("calls.txt:%d: %s\n\tis denied without a reason or without what is missing: %+v", c.Line, c.Text, v)
		}
	}
}
