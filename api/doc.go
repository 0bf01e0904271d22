// Package api defines what Fairlead's server and its clients exchange: JSON types,
// request bodies, problems (RFC 9457) and the format of server-sent events.
//
//	api/client ──┐
//	             ├──► api: types, problems, events
//	api/server ──┘
//
// The types of views (agents, channels, crew, runs, questions) are those of package view, and are
// not repeated here. The `doc` tags of all types are the source of the OpenAPI
// document and of doc/api.md.
//
// The one promise: a client that is built from the same source reads every field that
// the server writes.
package api
