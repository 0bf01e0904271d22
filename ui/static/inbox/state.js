// Saved answers, and the requests that follow a change of a question.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';
import { inbox, refreshInbox } from '../runs/state.js';

export const savedAnswers = signal(/** @type {import('../shell/api.js').Standing[]} */ ([]));

const list = new Refetch(async () => { savedAnswers.value = (await api.savedAnswers()).standing ?? []; });

/** Requests saved answers and the inbox again; soon: a person waits for them. @param {boolean} [soon] */
export function refreshQuestions(soon = false) {
  list.want(soon);
  refreshInbox(soon);
}

export function forgetQuestions() { savedAnswers.value = []; }

/** Does a change say that an agent gave up, or that it no longer has? @param {import('../shell/api.js').Change} ch */
function gaveUp(ch) {
  const value = ch.entity.startsWith('control/') && ch.data?.control?.value;
  if (!value) return false;
  const name = ch.entity.slice('control/'.length);
  return Boolean(value.gave_up) !== inbox.peek().some((i) => i.kind === 'failed' && i.agent === name);
}

/** Applies changes of the journal. @param {import('../shell/api.js').Change[]} changes */
export function applyQuestionChanges(changes) {
  if (changes.some(gaveUp)) refreshInbox();
  if (!changes.some((ch) => ch.entity.startsWith('question/'))) return;
  refreshInbox();
  list.want();
}
