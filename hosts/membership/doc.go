// Package membership decides about the other machines of a team: which belong to it, whether they still
// answer, on which of them a session runs, and that it runs nowhere else.
//
// The rules are those of core/host. This package keeps what they need beside the journal: when
// each host was heard last, by the clock that also counts while the machine sleeps. A session that is
// placed on another host is started, followed and ended there by package hosts/remote; all
// controllers see one sessionhost.Host, the Router. Only steps of runs with a checkout of their own are
// placed: their files can be carried there and back.
//
// The one promise: a session that was placed on a host begins nowhere else before that host has ended
// it, or was silent for so long that it must have.
package membership
