package examples

import "embed"

// Trio is the example with three agents, so that `fairlead demo` needs no checkout.
//
//go:embed all:trio
var Trio embed.FS

// Workflows are the examples of workflows, with what their steps need.
//
//go:embed all:workflows
var Workflows embed.FS

// Review is the example of two agents who talk in a channel.
//
//go:embed all:review
var Review embed.FS

// Crew is the example of a lead and its team.
//
//go:embed all:crew
var Crew embed.FS

// Tasks is the example of two agents who take tasks.
//
//go:embed all:tasks
var Tasks embed.FS

// Demo is the configuration of `fairlead demo`, which joins Trio, Review, Crew and Tasks.
//
//go:embed demo
var Demo embed.FS
