package scriptmodel

import (
	"net/http"
	"net/http/httptest"
	"strings"
)

// Answer returns the answer to a request without a server.
func Answer(inChat bool, body []byte) string {
	s := &Server{changed: make(chan struct{}), letGo: make(chan struct{}), over: make(chan struct{})}
	path := "/v1/responses"
	if inChat {
		path = "/v1/chat/completions"
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
	r.Header.Set("Authorization", "Bearer "+Key)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Body.String()
}
