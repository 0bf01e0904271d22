package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// Of the DNS this needs a header, one question and answers that are addresses. That is less code than a use of a library for it, and the
// program has none.

const (
	dnsHead        = 12
	dnsPacketMax   = 4096             // what EDNS programs announce at most; a question has at most 300 bytes
	dnsIdle        = 10 * time.Second // of a TCP connection between two questions
	dnsAnswers     = 8                // addresses of one name: a host that a person named with 8 ports
	typeA          = 1
	classInternet  = 1
	answerSeconds  = 1 // programs keep no answer: a person may allow the host at any moment
	pointerToName  = 0xc000 | dnsHead
	flagAnswer     = 1 << 15
	flagRecursion  = 1 << 7 // available
	flagDesired    = 1 << 8
	operationShift = 11
)

// code is a DNS response code.
type code uint16

const (
	codeOK       code = 0
	codeFormat   code = 1
	codeServer   code = 2
	codeNoName   code = 3
	codeNotImpl  code = 4
	codeNoAnswer code = 99 // it gets no answer at all
)

// question is the only question of a packet.
type question struct {
	name        string // in small letters, without a dot at the end
	kind, class uint16
	end         int // of the question in the packet
}

// parseQuestion reads a packet strictly.
func parseQuestion(p []byte) (q question, c code) {
	if len(p) < dnsHead {
		return question{}, codeNoAnswer
	}
	flags := binary.BigEndian.Uint16(p[2:])
	switch {
	case flags&flagAnswer != 0: // answers to answers would go on without an end
		return question{}, codeNoAnswer
	case flags>>operationShift&15 != 0:
		return question{}, codeNotImpl
	case binary.BigEndian.Uint16(p[4:]) != 1, binary.BigEndian.Uint16(p[6:]) != 0, binary.BigEndian.Uint16(p[8:]) != 0:
		return question{}, codeFormat
	}
	var labels []string
	at := dnsHead
	for {
		if at >= len(p) {
			return question{}, codeFormat
		}
		size := int(p[at])
		at++
		if size == 0 {
			break
		}
		if size > 63 || at+size > len(p) || at+size-dnsHead > 254 { // pointers, too, are larger than 63
			return question{}, codeFormat
		}
		labels = append(labels, string(p[at:at+size]))
		at += size
	}
	if at+4 > len(p) {
		return question{}, codeFormat
	}
	name := strings.ToLower(strings.Join(labels, "."))
	return question{name, binary.BigEndian.Uint16(p[at:]), binary.BigEndian.Uint16(p[at+2:]), at + 4}, codeOK
}

// answer makes the packet for a question; nil: none. known finds the addresses of a name.
func answer(p []byte, known func(name string) ([]netip.Addr, code)) []byte {
	q, c := parseQuestion(p)
	if c == codeNoAnswer {
		return nil
	}
	var addrs []netip.Addr
	if c == codeOK {
		if q.class != classInternet {
			c = codeNotImpl
		} else if addrs, c = known(q.name); q.kind != typeA {
			addrs = nil // the name exists, and has nothing else: no IPv6, and no keys of ECH
		}
	}
	addrs = addrs[:min(len(addrs), dnsAnswers)]
	out := make([]byte, dnsHead, dnsHead+q.end+16*len(addrs))
	copy(out, p[:2])
	binary.BigEndian.PutUint16(out[2:], flagAnswer|flagRecursion|binary.BigEndian.Uint16(p[2:])&(flagDesired|15<<operationShift)|uint16(c))
	if q.end > 0 {
		binary.BigEndian.PutUint16(out[4:], 1)
		out = append(out, p[dnsHead:q.end]...)
	}
	binary.BigEndian.PutUint16(out[6:], uint16(len(addrs)))
	for _, a := range addrs {
		out = binary.BigEndian.AppendUint16(out, pointerToName)
		out = binary.BigEndian.AppendUint16(out, typeA)
		out = binary.BigEndian.AppendUint16(out, classInternet)
		out = binary.BigEndian.AppendUint32(out, answerSeconds)
		v4 := a.As4()
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(v4))), v4[:]...)
	}
	return out
}

// address finds the addresses of a name. They are the session's own: nothing is looked up outside.
func (s *session) address(name string) ([]netip.Addr, code) {
	if isLocalhost(name) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, codeOK
	}
	s.names.mu.Lock()
	fixed := len(s.names.byName[name]) > 0
	s.names.mu.Unlock()
	v := s.currentRules().Decide(name, httpsPort)
	if _, err := netip.ParseAddr(name); !fixed && v.Answer == network.Refused || err == nil {
		return nil, codeNoName
	}
	addrs := s.names.addresses(name)
	if addrs == nil {
		s.report(name, httpsPort, &refusal{wire.VerdictRefused, fmt.Sprintf(
			"fairlead: %s has looked up %d names, the most in one session; start it again", s.who(), namesMax)})
		return nil, codeServer
	}
	return addrs, codeOK
}

// answerPackets serves UDP.
func (s *session) answerPackets(p net.PacketConn) {
	b := make([]byte, dnsPacketMax)
	for {
		n, from, err := p.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		if out := answer(b[:n], s.address); out != nil {
			_, _ = p.WriteTo(out, from) // a program that has gone asks no more
		}
	}
}

// answerStream serves TCP.
func (s *session) answerStream(c *client) {
	for {
		_ = c.SetDeadline(time.Now().Add(dnsIdle))
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(size[:]))
		if n > dnsPacketMax {
			return
		}
		packet := make([]byte, n)
		if _, err := io.ReadFull(c, packet); err != nil {
			return
		}
		out := answer(packet, s.address)
		if out == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}
