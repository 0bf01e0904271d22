// Package cluster simulates a team on many hosts, and checks the rules of package host.
//
// Everything that decides is the code of Fairlead: [host] for leases and placement, [attempt] for appends to
// a replicated journal, the package team for what agents do, the journal's chain for mirrors. Everything around
// it is simulated here: the engine that stores the journal and the leases, the network, the clocks of the
// hosts, daemons, shims and processes, and people who give orders. One thread takes one event after the
// other from a queue, so a seed gives the same run each time.
//
//	people ──► daemon ──► leader: team + hosts ──► attempt ──► engine (3 nodes) ──► mirrors of all hosts
//	              │                                                                      │
//	              └── guard ──► shim ──► process ──► [check] ◄── every message, start and end
//
// The engine answers as JetStream was seen to answer: late, not at all after it has stored, and with error
// 10071 where there is no conflict. A node that is cut off shows the past. Faults come at random: partitions,
// one-way links, stopped daemons, sleeping and restarting machines, clocks that run fast or slow or jump,
// lost and damaged stores, lost mirrors.
//
// The checks use true time and the true order of messages, which no host knows. They are in check.go.
//
// What is simulated in less detail: agents are not connected to their channels, so channels hold messages
// of people but give no turns; runs of workflows are left out; an engine never loses two of three stores.
//
// The one promise: a broken rule is reported with the seed that leads to it.
package cluster
