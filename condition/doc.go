// Package condition weighs the conditions of a workflow: a line of text that is true or false.
//
// A condition is a question to a clerk who has a list of everything that may be asked: the
// steps by name, how each stands, what it made and measured, and, at the end of a round, the
// report that has just come in and the item that it was about. He reads the question through
// before the work begins, and hands it back with a finger on the word that he does not know;
// he never takes such a word for "nothing" and answers no. Later he answers with a yes, a no,
// or the reason why there is no answer. He asks nobody, remembers nothing, and puts a question
// aside that would keep him forever.
//
//	steps.review.metrics.issues > 0 and "PLAN.md" in steps.plan.artifacts
//	steps["code.review"].status == "COMPLETED"
//	report.metrics.coverage >= 80 or index >= 5
//
// Of a step: status (one of the seed's six words), iteration, attempts, artifacts (a list of
// paths) and metrics (by name). A metric is compared with a number as a number, with a text as
// a text, with true or false as such; a metric that no report gave is a fault, so ask for it
// first: "issues" in steps.review.metrics. In until_condition there are also report (status,
// gate_failure, why, artifacts, metrics), item (the item at hand, as JSON) and index (from 0).
//
// The one promise: a name that nobody knows is a fault with its column, never false.
package condition
