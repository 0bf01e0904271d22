// Package hosts has the commands about a team's machines: cluster init, status and leave, host invite, join,
// drain and remove, and the table of hosts. The flags of the commands are in cmd/fairlead.
//
// The folder .fairlead/cluster says what a machine is. With cluster.json it leads: it has the team's certificate
// authority and the journal, and invites. With host.json it is a host of a leader elsewhere. Without either,
// nothing of a cluster runs. Each command writes that file last and removes it first, so that one which was
// interrupted can be repeated.
//
// The one promise: no command leaves a machine that half belongs to a cluster.
package hosts
