package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestDebug(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	if err != nil {
		t.Skip()
	}
	w := newWorld(seed, Size{Hosts: 6, Agents: 14, Channels: 3, Faults: 12 * time.Minute, Calm: 4 * time.Minute, Session: 40 * time.Second, Orders: 3 * time.Second}, t.Logf)
	_, f := w.play()
	fmt.Println(f)
	for _, p := range w.peers {
		fmt.Println(p.name, "off", p.off, "asleep", p.asleep, "stopped", p.stopped, "inc", p.guard.Incarnation, "rate", p.clock.rate, "pos", p.pos, "lead", p.lead != nil, "boot", p.bootID(), "node", p.node)
		for _, s := range p.sessions() {
			x := p.shims[s]
			fmt.Printf("   %s began %v over %v %q waits %v mine %+v\n", s, x.began, x.over, x.why, x.man.Waits, p.mine[s])
		}
		for s, l := range p.mine {
			fmt.Printf("   mine %s %+v used %v\n", s, l, p.used[s])
		}
	}
	for _, p := range w.peers {
		k := leaseKey(p.name, p.guard.Incarnation)
		e := w.engine.entries[k]
		fmt.Println(k, len(e), e[len(e)-1])
		if p.lead != nil {
			for n, x := range p.lead.watches {
				fmt.Printf("%s %+v due %s\n", n, *x, x.Due(p.now(), false))
			}
			fmt.Println(p.now(), p.lead.busy, len(p.lead.queue))
		}
	}
	b, _ := json.MarshalIndent(w.truth.hosts, "", " ")
	fmt.Println(string(b))
	for _, m := range w.engine.log {
		for _, r := range m.records {
			if e := os.Getenv("ENTITY"); e != "" && r.Entity == e {
				fmt.Println(m.at, m.by.name, r.Entity, r.From, r.To, r.Trigger, string(r.Data))
			}
		}
	}
}
