// Package condition evaluates the conditions of a workflow: expressions that are true or false.
//
// Check parses a condition before the run starts and rejects an unknown name with its column. It never
// treats such a name as false. Eval evaluates a condition against the steps of a run and, at the end of a
// loop iteration, against the report and the item. It has limits on time and memory and no side effects.
//
//	steps.review.metrics.issues > 0 and "PLAN.md" in steps.plan.artifacts
//	steps["code.review"].status == "COMPLETED"
//	report.metrics.coverage >= 80 or index >= 5
//
// A step has status (one of the seed's six words), iteration, attempts, artifacts (a list of paths) and
// metrics (by name). A metric is compared as the type of the other operand: number, text, true or false.
// A metric that no report gave is a fault, so test for it first: "issues" in steps.review.metrics. An
// until_condition can also use report (status, gate_failure, why, artifacts, metrics), item (the current
// item, as JSON) and index (from 0).
//
// The one promise: an unknown name is a fault with its column, never false.
package condition
