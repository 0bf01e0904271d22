// Package crew serves the lead and the members that live inside its session.
//
// People summon the crew, wake members and let them sleep; machine crew decides what that means. This
// package makes the texts that the lead is told, keeps the members' documents as files that other
// programs can read and write, and reads transcripts from the journal by an index.
//
// The promise: a member is shown as awake only because the lead's last report says so, and no
// document that another program wrote is lost.
package crew
