// What agents ask, beside what the inbox has: the answers that stand, and whose
// card a question, a limit or a word about himself changes.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';
import { Question } from '../shell/refetch.js';
import { refreshInbox } from '../runs/state.js';
import { names } from '../agents/state.js';

export const standing = signal(/** @type {import('../shell/api.js').Standing[]} */ ([]));

const list = new Question(async () => { standing.value = (await api.standing()).standing ?? []; });

/** Ask again, because something may have changed; soon: somebody waits for it. @param {boolean} [soon] */
export function refreshAsks(soon = false) {
  list.want(soon);
  refreshInbox(soon);
}

export function forgetAsks() { standing.value = []; }

/**
 * Changes of the journal, as they come.
 * @param {import('../shell/api.js').Change[]} changes
 * @returns {string[]} the agents whose cards they change
 */
export function noteAsks(changes) {
  const mine = changes.filter((ch) => /^(question|agent)\//.test(ch.entity));
  if (mine.length === 0) return [];
  if (mine.some((ch) => ch.entity.startsWith('question/'))) {
    refreshInbox();
    list.want();
  }
  const whose = new Set(mine.flatMap(agentsOf));
  return names.peek().filter((name) => whose.has(name));
}

/** Whose card a change may change; of an answer that stands nobody's. @param {import('../shell/api.js').Change} ch @returns {string[]} */
function agentsOf(ch) {
  if (ch.entity.startsWith('agent/')) return [ch.entity.slice('agent/'.length)];
  const agent = ch.data?.question?.question?.agent;
  return typeof agent === 'string' ? [agent] : [];
}
