// Turns runs and steps into text and marks. Pure.

/** @typedef {import('../shell/api.js').RunView} RunView */
/** @typedef {import('../shell/api.js').StepView} StepView */
/** @typedef {{label: string, look: string, mark: string}} Look look is a class; the mark says the same without colour */

/** @type {Record<string, Look>} */
const STEPS = {
  PENDING: { label: 'pending', look: 'pending', mark: '\u25cb' },
  RUNNING: { label: 'running', look: 'live', mark: '\u25b6' },
  WAITING_ON_HUMAN: { label: 'waits for you', look: 'wait', mark: '?' },
  COMPLETED: { label: 'completed', look: 'ok', mark: '\u2713' },
  FAILED: { label: 'failed', look: 'failed', mark: '\u2715' },
  SKIPPED: { label: 'skipped', look: 'cut', mark: '\u2013' },
};

/** @type {Record<string, Look>} */
const RUNS = {
  running: STEPS.RUNNING,
  waiting: { label: 'waiting', look: 'wait', mark: '?' },
  completed: STEPS.COMPLETED,
  failed: STEPS.FAILED,
  cancelled: { label: 'cancelled', look: 'cut', mark: '\u2013' },
};

/** @param {string} status @returns {Look} */
export const stepLook = (status) => STEPS[status] ?? { label: status.toLowerCase(), look: 'pending', mark: '\u00b7' };

/** @param {RunView} run @returns {Look} */
export function runLook(run) {
  if (run.stage === 'paused' && (run.status === 'running' || run.status === 'waiting')) return { label: 'paused', look: 'wait', mark: '\u2016' };
  if (run.status === 'waiting' && (run.counts?.waiting_on_human ?? 0) > 0) return STEPS.WAITING_ON_HUMAN;
  return RUNS[run.status] ?? { label: run.status, look: 'pending', mark: '\u00b7' };
}

/** @param {import('../shell/api.js').Counts | undefined} c */
export const total = (c) => (c ? c.pending + c.running + c.waiting_on_human + c.completed + c.failed + c.skipped : 0);

/** The progress of a run in numbers: 3 of 9 done, 1 failed. @param {import('../shell/api.js').Counts | undefined} c */
export function progress(c) {
  if (!c) return '';
  const parts = [`${c.completed + c.skipped} of ${total(c)} done`];
  if (c.running) parts.push(`${c.running} running`);
  if (c.waiting_on_human) parts.push(`${c.waiting_on_human} waiting for you`);
  if (c.failed) parts.push(`${c.failed} failed`);
  return parts.join(', ');
}

/** The attempt and the iteration, if it is not the first: attempt 2, iteration 3. @param {StepView} s */
export function tries(s) {
  const parts = [];
  if (s.attempts > 1) parts.push(`attempt ${s.attempts}`);
  if (s.iteration_count > 0) parts.push(`iteration ${s.iteration_count + 1}`);
  if (s.loop_items) parts.push(`item ${Math.min(s.loop_items, (s.loop_index ?? 0) + 1)} of ${s.loop_items}`);
  return parts.join(', ');
}
