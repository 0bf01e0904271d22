package server

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/engine/journal/memory"
)

// SPEC X10: a caller that ended before it was looked up may read, and hold the team. No other route that changes anything is for it.
func TestUnseenCallerHoldsOnly(t *testing.T) {
	f := supervise(t, memory.New(), t.TempDir(), pair)
	h := New(Options{Engine: f.App, User: "sam"}).SocketHandler()
	fill := regexp.MustCompile(`\{\w+\}`)
	for _, rt := range routeTable() {
		if rt.Method == http.MethodGet || slices.Contains(forAll, api.Base+rt.Path) {
			continue
		}
		w := httptest.NewRecorder()
		ctx := caller.With(t.Context(), caller.Caller{Unseen: true})
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, rt.Method, api.Base+fill.ReplaceAllString(rt.Path, "1"), nil))
		if w.Code != http.StatusConflict || problemText(t, w.Body.String()).Refusal.Row != "X10" {
			t.Errorf("%s %s: %d %s", rt.Method, rt.Path, w.Code, w.Body)
		}
	}
	f.unchanged(t)
	w := httptest.NewRecorder()
	ctx := caller.With(t.Context(), caller.Caller{Unseen: true})
	if h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, api.Base+"/hold", nil)); w.Code != http.StatusOK {
		t.Errorf("it may not hold: %d %s", w.Code, w.Body)
	}
}
