// Package notices notifies people of what waits for them and of what went wrong.
//
// After each batch of changes it derives all notices from the team, asks the machine notice what is due for
// each target, has it sent outside of the loop, and journals the result. So a daemon that starts again continues
// where the last one stopped, and a notice that was answered meanwhile is not sent.
//
// A message tells what waits and where to look. It contains names and titles, and no output of an agent.
//
// The one promise: a target that hangs or fails delays neither the team nor another target.
package notices
