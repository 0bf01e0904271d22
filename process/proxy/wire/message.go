package wire

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
)

// Version is the number of what is said here. Raise it whenever a message changes.
const Version = 1

// Role is what a connection is for.
type Role string

// The roles.
const (
	RoleSession Role = "session" // of a shim: it registers one session
	RoleWatcher Role = "watcher" // of a daemon: it gets events, sets rules and opens ports
)

// Kind says what a socket of a session is for.
type Kind string

// The kinds of sockets.
const (
	KindProxy   Kind = "proxy"   // HTTP proxy, and the providers' paths, at 127.0.0.1:61080
	KindDNS     Kind = "dns"     // UDP, 127.0.0.1:53
	KindDNSTCP  Kind = "dns-tcp" // TCP, 127.0.0.1:53
	KindTLS     Kind = "tls"     // 0.0.0.0:443: the name is in the ClientHello
	KindHTTP    Kind = "http"    // 0.0.0.0:80: the name is the Host
	KindNamed   Kind = "named"   // raw TCP for a host that a person named with a port
	KindLocal   Kind = "local"   // raw TCP to a port of this machine
	KindSockets Kind = "sockets" // a unix stream socket: each byte is answered with one TCP socket made in the session
)

// What is asked for at KindSockets.
const (
	AskIPv4 = '4'
	AskIPv6 = '6'
)

// Message is one frame: exactly one field is set.
type Message struct {
	Hello      *Hello      `json:"hello,omitempty"`
	Register   *Register   `json:"register,omitempty"`
	Registered *Registered `json:"registered,omitempty"`
	Rules      *Rules      `json:"rules,omitempty"`
	Event      *Event      `json:"event,omitempty"`
	Open       *Open       `json:"open,omitempty"`
	Opened     *Opened     `json:"opened,omitempty"`
	Refused    *Refused    `json:"refused,omitempty"`
}

// Hello is the first message of each side.
type Hello struct {
	Version int  `json:"version"`
	Role    Role `json:"role,omitempty"` // of a caller
	PID     int  `json:"pid,omitempty"`  // of the proxy
}

// Register makes a session known. Its sockets come with it, in the order of Sockets.
type Register struct {
	Session string        `json:"session"`
	Agent   string        `json:"agent"`
	Rules   network.Rules `json:"rules"` // with which it was started

	Set *network.Rules `json:"set,omitempty"` // those that a daemon has set since; nil: none has

	Keys     []Key    `json:"keys,omitempty"`
	Upstream Upstream `json:"upstream,omitzero"`
	Ports    []int    `json:"ports,omitempty"` // of the session, carried to the same numbers on loopback outside
	Sockets  []Socket `json:"sockets"`
}

// Key is a key that the proxy sends instead of the session. It is in the memory of the shim and of the proxy only.
type Key struct {
	Provider string `json:"provider"` // a name of network.Providers
	Value    string `json:"value"`
	Base     string `json:"base,omitempty"` // what takes the place of the provider's own origin: network.Provider.Base
}

// String does not show the key.
func (k Key) String() string { return k.Provider + " [hidden]" }

// GoString does not show the key.
func (k Key) GoString() string { return k.String() }

// Upstream is how the proxy itself reaches the network.
type Upstream struct {
	Proxy       string `json:"proxy,omitempty"`       // the value of https_proxy
	NoProxy     string `json:"no_proxy,omitempty"`    // the value of no_proxy
	Authorities []byte `json:"authorities,omitempty"` // certificates in PEM, beside those of the system
}

// String does not show the proxy, whose URL may have a password.
func (Upstream) String() string { return "[hidden]" }

// GoString does not show the proxy either.
func (Upstream) GoString() string { return "[hidden]" }

// Socket says what one descriptor is for. It was made in the session's network.
type Socket struct {
	Kind Kind `json:"kind"`
	Host int  `json:"host,omitempty"` // named: the index in Rules.Hosts
	Port int  `json:"port,omitempty"` // named: of that host. local: of this machine
}

// Registered says that a session is served. Its shim gets it as the answer, watchers get it for each session.
type Registered struct {
	Session string   `json:"session"`
	Agent   string   `json:"agent"`
	Notes   []string `json:"notes,omitempty"` // what could not be done, for people

	Rules network.Rules `json:"rules"` // of Register
}

// Rules replaces the rules of a session. New connections follow them at once.
type Rules struct {
	Session string        `json:"session"`
	Rules   network.Rules `json:"rules"`
	Keep    bool          `json:"keep,omitempty"` // open connections go on, also to hosts that are no longer allowed
}

// Verdict is what happened to connections.
type Verdict string

// The verdicts.
const (
	VerdictAllowed Verdict = "allowed"
	VerdictAsk     Verdict = "ask"     // refused, and a person may allow it
	VerdictRefused Verdict = "refused" // refused, whatever a person answers
	VerdictFailed  Verdict = "failed"  // allowed, but the host could not be reached
)

// Event is what happened at one host since the last event about it, folded.
type Event struct {
	Session string    `json:"session"`
	Agent   string    `json:"agent"`
	Host    string    `json:"host"` // untrusted: what the session asked for, as a plain text of at most 253 bytes
	Port    int       `json:"port"`
	Verdict Verdict   `json:"verdict"`
	Why     string    `json:"why,omitempty"` // the last reason, for people
	Count   int       `json:"count"`
	In      int64     `json:"in,omitempty"`  // bytes to the session, of connections that have ended
	Out     int64     `json:"out,omitempty"` // bytes from the session
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Open asks for an address outside at which a browser reaches a port of a session.
type Open struct {
	ID      int    `json:"id"` // Opened or Refused has it
	Session string `json:"session"`
	Port    int    `json:"port"`
}

// Opened answers Open: http://ADDRESS/?fairlead=SECRET shows the port once; then a cookie does.
type Opened struct {
	ID      int    `json:"id"`
	Address string `json:"address"`
	Secret  string `json:"secret"`
}

// Refused answers what cannot be done, and says what to do.
type Refused struct {
	ID   int    `json:"id,omitempty"` // of Open
	Text string `json:"text"`
}

// Error is the text.
func (r *Refused) Error() string { return r.Text }
