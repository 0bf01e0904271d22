// Package outlet keeps a proxy at the sockets of a session, for as long as the session lives.
//
// The sockets stay open in this process. A connection to the proxy is the session's registration there, with copies of the sockets. When
// the connection ends, the next proxy gets copies of the same sockets, and what the session has asked meanwhile has waited in them.
//
// Shims import this package, so it does without package net.
//
// The one promise: while a proxy can be started, the sockets are answered again within a second after one has ended, by the last rules.
package outlet

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
)

const (
	pauseFirst = 20 * time.Millisecond
	pauseMost  = time.Second // a proxy that was killed is back after it at the latest
)

// Of is the outlet of a session in a view that has a network of its own. sockets came with the report of its start.
func Of(session string, view sandbox.View, to *spawn.Network, sockets []*os.File) *Outlet {
	return &Outlet{Folder: to.Folder, Sockets: sockets, Register: wire.Register{
		Session: session, Agent: to.Agent, Rules: to.Rules, Keys: to.Keys, Upstream: to.Upstream, Sockets: view.Network.Sockets(),
	}}
}

// Outlet is what a proxy needs to serve a session.
type Outlet struct {
	Folder   string        // of the proxy
	Register wire.Register // its Set changes when a daemon replaces the rules
	Sockets  []*os.File    // in the order of Register.Sockets; the caller closes them after Keep
	Options  wire.Options

	Said func(text string) // takes what people should know, once for each text; nil: nothing does
	once sync.Map
}

// Keep registers the session, again after each end of a proxy, until ctx ends.
func (o *Outlet) Keep(ctx context.Context) {
	pauses := retry.Pauses{First: pauseFirst, Most: pauseMost}
	for {
		served, err := o.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if served {
			pauses.Reset()
		} else if err != nil {
			o.say(err.Error())
		}
		if !pauses.Rest(ctx) {
			return
		}
	}
}

// serve registers the session with one proxy, and returns when the connection has ended. served says that the proxy took it.
func (o *Outlet) serve(ctx context.Context) (served bool, err error) {
	conn, err := wire.Connect(ctx, o.Folder, wire.RoleSession, o.Options)
	if err != nil {
		return false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	if err := conn.Send(wire.Message{Register: &o.Register}, o.Sockets...); err != nil {
		return false, err
	}
	for {
		m, files, err := conn.Receive()
		for _, f := range files {
			f.Close()
		}
		switch {
		case err != nil:
			return served, err
		case m.Refused != nil:
			return served, errors.New("the proxy does not serve this session: " + m.Refused.Text)
		case m.Registered != nil:
			served = true
			for _, note := range m.Registered.Notes {
				o.say(note)
			}
		case m.Rules != nil:
			o.Register.Set = &m.Rules.Rules
		}
	}
}

func (o *Outlet) say(text string) {
	if _, before := o.once.LoadOrStore(text, true); o.Said != nil && !before {
		o.Said(text)
	}
}
