// What agents ask, beside what the inbox has: the answers that stand, and whose
// card a question, a limit or a word about himself changes.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';
import { Question } from '../shell/refetch.js';
import { refreshInbox } from '../runs/state.js';

export const standing = signal(/** @type {import('../shell/api.js').Standing[]} */ ([]));

const list = new Question(async () => { standing.value = (await api.standing()).standing ?? []; });

/** Ask again, because something may have changed; soon: somebody waits for it. @param {boolean} [soon] */
export function refreshAsks(soon = false) {
  list.want(soon);
  refreshInbox(soon);
}

export function forgetAsks() { standing.value = []; }

/** Changes of the journal, as they come. @param {import('../shell/api.js').Change[]} changes */
export function noteAsks(changes) {
  if (!changes.some((ch) => ch.entity.startsWith('question/'))) return;
  refreshInbox();
  list.want();
}
