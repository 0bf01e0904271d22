// Package prompts writes the texts that Fairlead sends to agents: turns and messages of a channel
// (seed 003), and requests to the lead of a crew (seed 001).
//
// The functions are pure. Text from people and agents is untrusted: in a channel prompt each of
// its lines is prefixed, and in a crew prompt it is escaped inside XML elements, so that it cannot
// be mistaken for an instruction or a marker. Every prompt has a size limit; what is left out is
// said in the prompt.
//
// The one promise: no text of a participant, an agent or a document can end its quotation in a
// prompt.
package prompts
