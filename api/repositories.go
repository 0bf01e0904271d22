package api

// Summary is what a daemon tells other daemons and commands of this user about its repository.
type Summary struct {
	Dir      string   `json:"dir" doc:"The folder of the repository"`
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	PID      int      `json:"pid"`
	Address  string   `json:"address" doc:"Of Mission Control on this machine: http://127.0.0.1:7466"`
	Origins  []string `json:"origins" doc:"Where it is opened through a tunnel or a proxy"`
	NeedsYou int      `json:"needs_you" doc:"Things in the inbox"`
	Working  int      `json:"working" doc:"Agents at work"`
	Agents   int      `json:"agents"`
	Hold     bool     `json:"hold"`
	Stopping bool     `json:"stopping"`
}

// Problem codes of a Repository.
const (
	RepoEnded     = "ended"      // no process answers on the socket
	RepoOtherUser = "other_user" // the process at the other end belongs to another user
	RepoSlow      = "slow"       // no answer in time
	RepoOld       = "old"        // a Fairlead without this route
	RepoWrong     = "wrong"      // an answer that no Fairlead gives
)

// Repository is a daemon of this user, found by its socket.
type Repository struct {
	ID string `json:"id" example:"d-0123456789abcdef" doc:"The file name of its socket"`
	Summary
	Here    bool   `json:"here" doc:"It is the one that answers"`
	Problem string `json:"problem,omitempty" enum:"ended,other_user,slow,old,wrong" doc:"Why nothing else is known. ended: no process answers; other_user: another user's process does; slow: no answer within 2 s; old: an earlier Fairlead; wrong: an answer that no Fairlead gives"`
	Detail  string `json:"detail,omitempty" doc:"The same in words"`
}

// Repositories are the daemons of this user.
type Repositories struct {
	Repositories []Repository `json:"repositories" doc:"Those with something that needs a person first, then by name; those that do not answer last"`
	More         int          `json:"more" doc:"Sockets that were left out, because only 50 are asked"`
	Outside      bool         `json:"outside" doc:"The request came through a tunnel or a proxy, so addresses on this machine do not lead anywhere"`
}

// RepositoryLogin signs a browser in at another repository.
type RepositoryLogin struct {
	URL string `json:"url" doc:"Open it within 30 seconds; it is valid once"`
}
