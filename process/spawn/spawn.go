// Package spawn describes the start of a process: what a driver asks for, a host passes on and a shim does.
//
// Launch is its one form, in memory and as JSON over the sockets of shims and hosts. Every session waits until its shim
// has initialised the packages that it imports, so this package imports no more than a shim needs.
//
// The one promise: a Launch is the same after its way through JSON, byte for byte, whatever bytes its words have.
package spawn

import (
	"encoding/json"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// Launch describes how a process is started. Names of environment variables may be shown, values
// never: as JSON it goes over sockets only, to a shim or a host.
type Launch struct {
	Argv      []string `json:"argv"`
	Dir       string   `json:"dir"`                  // absolute; empty: that of Fairlead
	Env       []string `json:"env"`                  // complete environment of the process, K=V
	Input     []byte   `json:"input,omitempty"`      // first bytes on standard input, written at the start
	KeepStdin bool     `json:"keep_stdin,omitempty"` // keep standard input open after Input for Prompt, Answer and Cancel
	Ports     int      `json:"ports,omitempty"`      // TCP ports to lease for the process; the daemon sets it, not a driver
	PortsFor  string   `json:"ports_for,omitempty"`  // the same text gets the same ports again if they are free

	// what the process gets of the machine on which it starts; nil: everything. Without Dir it is that of the Launch
	View *sandbox.View `json:"view,omitempty"`

	// what the process reaches, if its View has a network of its own; nil: nothing
	Network *Network `json:"network,omitempty"`
}

// Network is what the proxy of a session's network is told. It goes over sockets only, as the keys in it are secrets.
type Network struct {
	Folder   string        `json:"folder"` // of the proxy, on the machine on which the process starts
	Agent    string        `json:"agent"`
	Rules    network.Rules `json:"rules"`
	Keys     []wire.Key    `json:"keys,omitempty"` // that the process does not get
	Upstream wire.Upstream `json:"upstream,omitzero"`
}

// launchJSON is a Launch in JSON. Arguments, folder and environment are bytes to the system: a JSON string would replace
// invalid UTF-8.
type launchJSON struct {
	launchFields
	Argv [][]byte `json:"argv"`
	Dir  []byte   `json:"dir"`
	Env  [][]byte `json:"env"`
}

type launchFields Launch

// MarshalJSON implements json.Marshaler.
func (l Launch) MarshalJSON() ([]byte, error) {
	return json.Marshal(launchJSON{launchFields(l), toBytes(l.Argv), []byte(l.Dir), toBytes(l.Env)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Launch) UnmarshalJSON(text []byte) error {
	var in launchJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*l = Launch(in.launchFields)
	l.Argv, l.Dir, l.Env = toStrings(in.Argv), string(in.Dir), toStrings(in.Env)
	return nil
}

func toBytes(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

func toStrings(in [][]byte) []string {
	out := make([]string, len(in))
	for i, b := range in {
		out[i] = string(b)
	}
	return out
}
