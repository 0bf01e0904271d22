package host

// Local is what a host itself knows of a session.
type Local struct {
	Token Token // under which its shim was started
	Shim  bool  // it has a shim
	Began bool  // its process began
	Over  bool  // its process has ended
	Waits bool  // as DeadMan.Waits
	Used  bool  // its process began once, or it was withdrawn: it never begins again
}

// Duty is what a host has to do about a session.
type Duty string

const (
	NoDuty      Duty = "none"
	AskToStart  Duty = "ask"          // whether it may start; then MayStart decides
	Withdraw    Duty = "withdraw"     // note that it never begins here, then report that
	ReportStart Duty = "report_start" // until the leader has it
	ReportEnd   Duty = "report_end"   // until the leader has it, also if it is late
	EndProcess  Duty = "end"
)

// Duty says what is to be done about a session, whose lease is as the host has read it in the journal; nil: it
// has none. boot is that of the host's machine.
func (g *Guard) Duty(lease *Lease, boot string, is Local) Duty {
	switch runs := is.Began && !is.Over; {
	case is.Over:
		return ReportEnd
	case runs && (lease == nil || lease.Token != is.Token), runs && g.lost && !is.Waits:
		return EndProcess
	case runs:
		return ReportStart
	case is.Shim || lease == nil || lease.Host != g.Host || lease.Boot != boot || g.Incarnation == 0:
		return NoDuty
	case lease.Incarnation == g.Incarnation && !is.Used:
		return AskToStart
	case lease.Incarnation == g.Incarnation || lease.OnLost == Wait: // withdrawn, or the host was lost before it began
		return Withdraw
	}
	return NoDuty
}
