package server

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
)

// Every method of the client requests a route of the table.
func TestClientUsesRoutes(t *testing.T) {
	routes := routeTable()
	var asked []*http.Request
	c := client.ReadFrom(t.TempDir(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r)
		api.NewProblem(http.StatusTeapot, "no request is served here").Write(w)
	}))
	local := []string{"AsOf", "Close", "Daemon", "DialContext"}
	methods := reflect.TypeOf(c)
	for i := range methods.NumMethod() {
		method := methods.Method(i)
		if slices.Contains(local, method.Name) {
			continue
		}
		asked = nil
		callMethod(t, c, method)
		if len(asked) == 0 {
			t.Errorf("%s sent no request", method.Name)
		}
		for _, r := range asked {
			if !hasRoute(routes, r.Method, strings.TrimPrefix(r.URL.EscapedPath(), api.Base)) {
				t.Errorf("%s requests %s %s, which is not a route", method.Name, r.Method, r.URL.EscapedPath())
			}
		}
	}
	if hasRoute(routes, "GET", "/nothing") || !hasRoute(routes, "GET", "/crew") {
		t.Error("the routes are not looked up")
	}
}

// callMethod calls a method of the client with arguments that are not empty. A stream is read to its end, and what
// a goroutine follows is waited for.
func callMethod(t *testing.T, c *client.Client, method reflect.Method) {
	t.Helper()
	args := []reflect.Value{reflect.ValueOf(c)}
	for i := 1; i < method.Type.NumIn(); i++ {
		arg := reflect.New(method.Type.In(i)).Elem()
		switch {
		case arg.Type() == reflect.TypeFor[context.Context]():
			arg.Set(reflect.ValueOf(t.Context()))
		case arg.Kind() == reflect.String:
			arg.SetString("start")
		case arg.CanInt():
			arg.SetInt(1)
		case arg.CanUint():
			arg.SetUint(1)
		case arg.Type() == reflect.TypeFor[json.RawMessage]():
			arg.SetBytes([]byte("{}"))
		}
		args = append(args, arg)
	}
	for _, result := range method.Func.Call(args) {
		if result.Type() == reflect.TypeFor[<-chan error]() {
			result.Recv() // until its goroutine has ended
		}
		if result.Kind() != reflect.Func {
			continue
		}
		all := reflect.MakeFunc(result.Type().In(0),
			func([]reflect.Value) []reflect.Value { return []reflect.Value{reflect.ValueOf(true)} })
		result.Call([]reflect.Value{all})
	}
}

// hasRoute says whether a path, after api.Base, is one of the routes with this method.
func hasRoute(routes []route, method, path string) bool {
	return slices.ContainsFunc(routes, func(rt route) bool {
		return rt.Method == method && fits(path, []string{rt.Path})
	})
}
