package network

import (
	"net/netip"
	"strings"
)

// Answer is what becomes of a connection.
type Answer string

// The answers.
const (
	Allowed Answer = "allowed"
	Ask     Answer = "ask"     // not allowed; a person may allow it
	Refused Answer = "refused" // not allowed, and not asked: a person has to name the host
)

// Reason says why a connection is not allowed.
type Reason string

// The reasons.
const (
	NotListed   Reason = "not listed" // a public name at a port of the web, which a person may allow
	NoNetwork   Reason = "no network" // network: none
	OddName     Reason = "odd name"   // it is no name, or a program could read it as another one
	LiteralName Reason = "address"    // an address that no person named
	LocalName   Reason = "local name" // a name that the public DNS does not have
	OtherPort   Reason = "port"       // neither 443 nor 80, and no person named it
)

// Sentence says it to people: what is wrong, and what to do. It has no subject.
func (r Reason) Sentence() string {
	switch r {
	case NotListed:
		return "is not in its network; a person can allow it"
	case NoNetwork:
		return "is not reached with network: none"
	case OddName:
		return "is not the name of a host; use its plain name"
	case LiteralName:
		return "is an address; use the host's name, or a person names the address and its port in network"
	case LocalName:
		return "is a name of a private network; a person has to name it in network"
	case OtherPort:
		return "is reached at 443 and 80 only; a person has to name another port in network"
	}
	return ""
}

// Verdict is the answer about a name and a port.
type Verdict struct {
	Answer Answer
	Reason Reason // of what is not allowed
	Host   Host   // what allows it; Address needs it
}

// Decide judges a name, or an address without brackets, and a port before anything is looked up.
func (r Rules) Decide(name string, port int) Verdict {
	name = strings.ToLower(name)
	kind := spelling(name)
	if kind == literal {
		addr, _ := netip.ParseAddr(name)
		name = addr.String()
	}
	named := kind != plain // what only a person can allow, by naming it
	switch {
	case r.None:
		return Verdict{Answer: Refused, Reason: NoNetwork}
	case kind == odd:
		return Verdict{Answer: Refused, Reason: OddName}
	}
	var allowing Host
	for _, h := range r.Hosts {
		if h.covers(name, port) && (h.Named || !named) && !allowing.Named {
			allowing = h
		}
	}
	switch {
	case allowing.Name != "":
		return Verdict{Answer: Allowed, Host: allowing}
	case kind == literal:
		return Verdict{Answer: Refused, Reason: LiteralName}
	case named:
		return Verdict{Answer: Refused, Reason: LocalName}
	case !isWeb(port):
		return Verdict{Answer: Refused, Reason: OtherPort}
	case r.All:
		return Verdict{Answer: Allowed, Host: Host{Name: name}}
	}
	return Verdict{Answer: Ask, Reason: NotListed}
}
