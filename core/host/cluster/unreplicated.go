package cluster

// Unreplicated is why the journal of a team with several engine hosts is on the leader's machine alone, as that machine sees it.
type Unreplicated struct {
	Code  UnreplicatedCode
	Hosts []string // the engine hosts that it is about
	Fault string   // what failed, for people
}

// UnreplicatedCode is why a journal is not replicated.
type UnreplicatedCode string

const (
	FewEngineHosts UnreplicatedCode = "few_engine_hosts" // fewer than EnginesMin
	ServersStart   UnreplicatedCode = "servers_start"    // nothing is known to be wrong
	ServerFailed   UnreplicatedCode = "server_failed"    // that of the leader's machine could not start
	NotConnected   UnreplicatedCode = "not_connected"    // it has no connection to the servers of Hosts
	NoStream       UnreplicatedCode = "no_stream"        // the servers are connected, and have not made the stream
	CopyFailed     UnreplicatedCode = "copy_failed"      // the journal could not be copied into the stream
)
