package network

import "net/netip"

// Answer says whether a connection is made.
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
	Row
	Host Host // what allows it; Address needs it
}

// Decide judges a name, or an address without brackets, and a port before anything is looked up.
func (r Rules) Decide(name string, port int) Verdict {
	want, name := wants(lower(name), port)
	say, host := r.say(name, port)
	if say == open {
		host = Host{Name: name}
	}
	v := Verdict{Row: table[want][say]}
	if v.Answer == Allowed {
		v.Host = host
	}
	return v
}

// wants says what kind of name and port it is, and returns an address in its usual form.
func wants(name string, port int) (wanted, string) {
	switch spelling(name) {
	case literal:
		addr, _ := netip.ParseAddr(name)
		return address, addr.String()
	case single, local:
		return localName, name
	case odd:
		return oddName, name
	case plain:
	}
	if IsWeb(port) {
		return publicWeb, name
	}
	return publicPort, name
}

// say finds the most that the rules say about a name and a port, and the host that says it.
func (r Rules) say(name string, port int) (said, Host) {
	if r.None {
		return closed, Host{}
	}
	most, host := nothing, Host{}
	if r.All {
		most = open
	}
	for _, h := range r.Hosts {
		switch {
		case !h.covers(name, port):
		case h.Named && !h.pattern():
			return named, h
		case most != covered:
			most, host = covered, h
		}
	}
	return most, host
}
