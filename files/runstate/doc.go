// Package runstate reads and writes the files of a workflow run (seed 004): the workflow (YAML),
// run_state.json, step reports, manual inputs, the gate-state file, and the environment and
// arguments of step commands.
//
// Parse functions are pure and take bytes; Read functions take a path, follow no link where an
// agent owns the folder, and stop at a size limit. Every fault names the file, the line and the
// field. RunStateOf converts a run of the workflow machine into run_state.json, and StateFoundOf
// converts back; unknown fields are kept in place.
//
// The package keeps no state and starts no process.
//
// The one promise: a file that is refused is left unchanged, and the error says at which line and
// field it is wrong and what would be right.
package runstate
