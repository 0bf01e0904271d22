// Package crew serves the lead and the members that exist inside the lead's session.
//
// People summon the crew, wake members and put them to sleep. The crew machine decides the effect.
// This package writes the prompts for the lead, keeps the members' documents as files that other
// programs can read and write, and reads transcripts from the journal by an index.
//
// The one promise: a member is shown as awake only because the lead's last report says so, and no
// document that another program wrote is lost.
package crew
