// Comments and answers. A failed order is explained next to its button.

import * as api from '../shell/api.js';
import { order } from '../shell/orders.js';
import { plain } from '../shell/text.js';
import { refreshRuns } from '../runs/state.js';
import { comments, editing, readChanges, scope } from './state.js';

/** @param {string} verb @param {string} id */
export const keyOf = (verb, id) => `task ${verb} ${id}`;
const then = { after: () => refreshRuns(true) };

/** Shows the comments of an answer, which stand where the newest changes have them. @param {string} id @param {import('../shell/api.js').Comments} answer */
function take(id, answer) {
  comments.value = answer.comments ?? [];
  if (scope.peek() !== 'all') void readChanges(id);
}

/** @param {string} id @param {{file: string, line: number, old: boolean, quote: string, text: string}} one */
export const addComment = (id, one) => order(keyOf('comment', id), 'the comment is kept', async () => { take(id, await api.addComment(id, one)); editing.value = null; }, { after() {} });
/** @param {string} id @param {number} n @param {string} text */
export const changeComment = (id, n, text) => order(keyOf('comment', id), 'the comment is changed', async () => { take(id, await api.changeComment(id, n, text)); editing.value = null; }, { after() {} });
/** @param {string} id @param {number} n */
export const removeComment = (id, n) => order(keyOf('remove', `${id} ${n}`), 'the comment is removed', async () => { take(id, await api.removeComment(id, n)); }, { after() {} });
/** @param {string} id @param {number} n @param {boolean} is */
export const resolveComment = (id, n, is) => order(keyOf('remove', `${id} ${n}`), is ? 'the comment is resolved' : 'the comment is open again', async () => { take(id, await api.resolveComment(id, n, is)); }, { after() {} });

/** @param {string} id @param {string} text @param {string} shown */
export const requestTask = (id, text, shown) => order(keyOf('request', id), `${plain(id, 40)} goes back to its agent`, () => api.requestTask(id, { text, shown }), { done: () => { void readChanges(id); }, ...then });

/** @param {string} id @param {string} tree the hash of what is drawn; empty: it is approved already @param {string} [governing] the separate yes */
export async function mergeTask(id, tree, governing) {
  const done = await order(keyOf('merge', id), `${plain(id, 40)} is landing`, () => api.mergeTask(id, ({ ...(tree && { tree }), ...(governing && { governing }) })), then);
  if (!done) void readChanges(id); // it may have been changed since
  return done;
}

/** @param {string} id */
export const undoTask = (id) => order(keyOf('undo', id), `the landing of ${plain(id, 40)} is taken back`, () => api.undoTask(id), then);
/** @param {string} id */
export const dropTask = (id) => order(keyOf('drop', id), `${plain(id, 40)} is dropped`, () => api.dropTask(id), then);
/** @param {string} id @param {string} [step] */
export const resumeTask = (id, step) => order(keyOf('resume', id), `${plain(id, 40)} continues`, () => api.resumeRun(id, step ? { start_at_step: step } : {}), then);
