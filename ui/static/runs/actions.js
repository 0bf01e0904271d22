// Orders about runs. An order is shown as pending until the server answers.

import * as api from '../shell/api.js';
import { tell } from '../agents/actions.js';
import { signal } from '../shell/lib.js';
import { refreshRuns } from './state.js';
import { live } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { showRun, spoken } from '../shell/router.js';

/** The order that waits for an answer: a verb, the run and the step. */
export const asking = signal('');

/** @param {string} verb @param {string} run @param {string} [step] */
export const keyOf = (verb, run, step = '') => `${verb} ${run} ${step}`;

/** @template T @param {string} key @param {string} words @param {() => Promise<T>} ask @returns {Promise<T | null>} null where it was not done */
async function order(key, words, ask) {
  if (asking.peek() || !live.peek()) return null;
  asking.value = key;
  try {
    const done = await ask();
    spoken.value = words;
    return done;
  } catch (err) {
    tell(words, err);
    return null;
  } finally {
    asking.value = '';
    refreshRuns(true);
  }
}

/** @param {string} run @param {'pause' | 'release'} verb */
export const pauseRun = (run, verb) => order(keyOf(verb, run), `${verb} ${plain(run, 60)}`, () => api.orderRun(run, verb, {}));

/** @param {string} run @param {string} step @param {string} note */
export const cancelRun = (run, step, note) =>
  order(keyOf('cancel', run, step), `cancel ${plain(step || run, 60)}`, () => api.orderRun(run, 'cancel', { ...(step && { step }), ...(note && { note }) }));

/** @param {string} run @param {string} step empty: from whatever failed */
export const resumeRun = (run, step) =>
  order(keyOf('resume', run, step), `resume ${plain(run, 60)}`, () => api.resumeRun(run, step ? { start_at_step: step } : {}));

/** @param {string} run @param {string} step @param {boolean} yes @param {{note?: string, input?: string, shown?: string}} body */
export const answerStep = (run, step, yes, body) =>
  order(keyOf(yes ? 'approve' : 'reject', run, step), `${yes ? 'approve' : 'reject'} ${plain(step, 60)}`, () => api.answerStep(run, step, yes, body));

/** Starts a run and opens it. Throws everything that is wrong with the workflow, for the form. @param {api.RunFlags} flags */
export async function startRun(flags) {
  const view = await api.startRun(flags);
  spoken.value = `started ${plain(view.run_id, 60)}`;
  refreshRuns(true);
  showRun(view.run_id);
}
