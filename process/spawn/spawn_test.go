package spawn_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

// TestLaunchJSON checks that a launch is the same after its way through JSON, with words that are not UTF-8 too.
func TestLaunchJSON(t *testing.T) {
	t.Parallel()
	want := spawn.Launch{
		Argv: []string{"\xff\xfe", "", "a\x00b", "<é>"}, Dir: "/\xfa", Env: []string{"A=\x80"}, Input: []byte("\xf0\n"), KeepStdin: true,
		Ports: 2, PortsFor: "w", View: &sandbox.View{Home: "/home/me", Network: &sandbox.Inside{}},
		Network: &spawn.Network{
			Folder: "/proxy", Agent: "coder", Rules: network.Rules{Hosts: []network.Host{{Name: "example.org"}}},
			Keys: []wire.Key{{Provider: "anthropic", Value: "secret"}}, Upstream: wire.Upstream{Proxy: "http://proxy.internal:3128"},
		},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got spawn.Launch
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, %v", text, got, err)
	}
}
