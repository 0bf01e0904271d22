package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// An error is the same on the other side: of the same kind, with the same words.
func TestErrorsCross(t *testing.T) {
	for want, err := range map[int]error{
		http.StatusConflict:            fmt.Errorf("start: %w", &spawn.AlreadyStarted{Session: "coder-1"}),
		http.StatusUnprocessableEntity: &spawn.CannotStart{Why: "no program \"codex\""},
		http.StatusForbidden:           &sessionhost.Fenced{Why: "another leader has taken over"},
		http.StatusGone:                fmt.Errorf("%w: it has ended", driver.ErrNoInput),
		http.StatusNotFound:            &Problem{NotHere, "this host has no such session"},
		http.StatusBadRequest:          &Problem{BadRequest, "offset is not a number"},
		http.StatusTooManyRequests:     &Problem{Busy, "the limit is reached"},
		http.StatusInternalServerError: errors.New("the disk is full"),
	} {
		w := httptest.NewRecorder()
		Fail(w, err)
		got := Check(w.Result())
		if w.Code != want || got == nil {
			t.Errorf("%v: %d, %v", err, w.Code, got)
			continue
		}
		if _, started := errors.AsType[*spawn.AlreadyStarted](err); !started && got.Error() != err.Error() {
			t.Errorf("%q became %q", err, got)
		}
		for _, kind := range []error{driver.ErrNoInput, fs.ErrNotExist} {
			if errors.Is(err, kind) != errors.Is(got, kind) {
				t.Errorf("%v became %v", err, got)
			}
		}
		if problemOf(got).Code != problemOf(err).Code {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// A fault of the connection is none of the other side.
func TestCheck(t *testing.T) {
	broken := errors.New("the connection broke")
	answer := func(code int, body io.Reader) *http.Response {
		return &http.Response{StatusCode: code, Status: fmt.Sprint(code), Body: io.NopCloser(body)}
	}
	if err := Check(answer(500, iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := Check(answer(204, iotest.ErrReader(broken))); err != nil {
		t.Error(err)
	}
	for _, body := range []string{"", "<html>", "{}", `{"code":"failed","why":"x"} more`, `{"code":"failed","who":"x"}`} {
		var p *Problem
		if err := Check(answer(502, strings.NewReader(body))); !errors.As(err, &p) || p.Code != Failed || !strings.Contains(p.Why, "502") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestRead(t *testing.T) {
	var in EndIn
	long := `{"grace_ms":` + strings.Repeat(" ", BodyMax) + `1}`
	for body, why := range map[string]string{
		long: "longer than", `{"grace_ms":1}{}`: "more than one", `{"grace_ms":1} ]`: "more than one", `{"grace":1}`: "unknown field",
		"": "cannot be read", `{"grace_ms":1e99}`: "cannot be read",
	} {
		p, is := errors.AsType[*Problem](Read(strings.NewReader(body), &in))
		if !is || p.Code != BadRequest || !strings.Contains(p.Why, why) {
			t.Errorf("%.40q: %v", body, p)
		}
	}
	if err := Read(strings.NewReader("{\"grace_ms\":7}\n"), &in); err != nil || in.GraceMS != 7 {
		t.Error(in, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"token":{"session":"coder-1","host":"b","incarnation":1,"lease":2},"epoch":3,"on_lost":"wait","start":{"argv":["sh"],"dir":"/","env":["A=b"],"input":"YQ=="},"grace_ms":5,"confine":{"agent":"coder","driver":"claude","can_write":[]}}`)
	f.Add(`{"start":{"env":null}} {}`)
	f.Add(`[1`)
	f.Fuzz(func(t *testing.T, body string) {
		var in StartIn
		if err := Read(strings.NewReader(body), &in); err != nil {
			if p, is := errors.AsType[*Problem](err); !is || p.Code != BadRequest {
				t.Fatal(err)
			}
			return
		}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var again StartIn
		if err := Read(strings.NewReader(string(text)), &again); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(text) {
			t.Fatalf("%s became %s", text, twice)
		}
	})
}

func FuzzProblem(f *testing.F) {
	f.Add(409, `{"code":"already_started","why":"coder-1"}`)
	f.Add(410, `{"code":"no_input","why":"x"}`)
	f.Add(500, `{"code":"no_such_code","why":"\u0000"}`)
	f.Fuzz(func(t *testing.T, code int, body string) {
		answer := &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body))}
		err := Check(answer)
		if (err == nil) != (code/100 == 2) {
			t.Fatal(code, err)
		}
		if err == nil {
			return
		}
		w := httptest.NewRecorder()
		Fail(w, err)
		again := Check(w.Result())
		if again == nil || reflect.TypeOf(again) != reflect.TypeOf(err) || again.Error() != err.Error() {
			t.Fatalf("%#v became %#v", err, again)
		}
	})
}
