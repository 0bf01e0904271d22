// Package crewfile reads and writes the identity documents of a crew (seed 001): one JSON file for
// each agent, in a folder that other programs may write to as well.
//
// ReadDocument and WriteDocument convert between a file and a crew.Document and keep unknown
// fields. DocumentFiles watches the folder and replaces files atomically. ParseStatus and
// ParseRegistered read the JSON that the lead writes behind its markers [AGENT_STATUS] and
// [AGENT_REGISTERED]; they share the document's fields and limits.
//
// The one promise: a document that another program changed is reported before it is replaced, and
// a document that Fairlead cannot read is moved aside with its content, never overwritten.
package crewfile
