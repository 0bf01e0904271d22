// Saved answers, and the requests that follow a change of a question.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';
import { refreshInbox } from '../runs/state.js';

export const savedAnswers = signal(/** @type {import('../shell/api.js').Standing[]} */ ([]));

const list = new Refetch(async () => { savedAnswers.value = (await api.savedAnswers()).standing ?? []; });

/** Requests saved answers and the inbox again; soon: a person waits for them. @param {boolean} [soon] */
export function refreshQuestions(soon = false) {
  list.want(soon);
  refreshInbox(soon);
}

export function forgetQuestions() { savedAnswers.value = []; }

/** Applies changes of the journal. @param {import('../shell/api.js').Change[]} changes */
export function applyQuestionChanges(changes) {
  if (!changes.some((ch) => ch.entity.startsWith('question/'))) return;
  refreshInbox();
  list.want();
}
