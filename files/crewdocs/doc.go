// Package crewdocs is the content of the identity documents of a crew (seed 001): one JSON file for
// each agent, in a folder that other programs may write to as well.
//
// ReadDocument and WriteDocument convert between a file and a crew.Document and keep unknown
// fields. Documents is the exchange of the folder. ParseStatus and ParseRegistered read the JSON
// that the lead writes behind its markers [AGENT_STATUS] and [AGENT_REGISTERED]; they share the
// document's fields and limits.
//
// The one promise: what another program wrote into a document that is valid is in what ReadDocument
// returns.
package crewdocs
