package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// versions are the programs of other versions that scripts use, by the protocol between hosts that they speak.
var versions sync.Map

// buildVersion runs `version VARIABLE PROTOCOL`: it sets a variable to a fairlead whose highest protocol between hosts is this
// one, and whose version is 0.PROTOCOL.0. It is the product, built with that number, so it refuses what an older
// version refuses.
func buildVersion(ts *testscript.TestScript, neg bool, words []string) {
	if _, err := strconv.Atoi(words[len(words)-1]); neg || len(words) != 2 || err != nil {
		ts.Fatalf("usage: version VARIABLE PROTOCOL")
	}
	number := words[1]
	build, _ := versions.LoadOrStore(number, sync.OnceValues(func() (string, error) {
		path := filepath.Join(filepath.Dir(program), "version-"+number, "fairlead")
		const module = "github.com/fairlead-dev/fairlead/"
		return path, buildProgram(path, false, "-ldflags", fmt.Sprintf("-X %scluster/wire.newest=%s -X %sinternal/version.given=0.%s.0", module, number, module, number))
	}))
	path, err := build.(func() (string, error))()
	ts.Check(err)
	ts.Setenv(words[0], path)
}
