// Dispatch sessions (seed 002): the list, the open one, and its open conversation.
//
// A session's truth is its folder, which the server reads. After a change that adds a line to a
// folder, the page requests the affected views again.

import * as api from '../shell/api.js';
import { batch, computed, signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';
import { isOpen } from './words.js';
import { conversationN, sessionName } from '../shell/router.js';

/** @typedef {import('../shell/api.js').DispatchRow} Row */
/** @typedef {import('../shell/api.js').DispatchView} View */
/** @typedef {import('../shell/api.js').DispatchDialogue} DispatchDialogue */

export const sessions = signal(/** @type {Row[]} */ ([])); // open ones first, then the newest
export const dispatchesKnown = signal(false);
export const listWrong = signal('');
export const shownSession = signal(/** @type {View | null} */ (null));
export const sessionWrong = signal('');
export const shownConversation = signal(/** @type {DispatchDialogue | null} */ (null));
export const conversationWrong = signal('');

/** Sessions with an open conversation. */
export const conversing = computed(() => sessions.value.filter((s) => isOpen(s) && s.conversation !== '').length);

/** @param {unknown} err */
const words = (err) => (err instanceof Error ? err.message : String(err));

const list = new Refetch(async () => {
  try {
    const answer = await api.sessions();
    batch(() => { sessions.value = answer.sessions ?? []; dispatchesKnown.value = true; listWrong.value = ''; });
  } catch (err) {
    listWrong.value = words(err);
    throw err;
  }
});

const one = new Refetch(async () => {
  const at = sessionName.peek();
  if (!at) return;
  try {
    const view = await api.session(at);
    if (sessionName.peek() === at) applyDispatch(view);
  } catch (err) {
    if (sessionName.peek() === at) sessionWrong.value = words(err);
  }
});

const dialogue = new Refetch(async () => {
  const at = sessionName.peek(), n = conversationN.peek();
  if (!at || !n) return;
  const mine = () => sessionName.peek() === at && conversationN.peek() === n;
  try {
    const told = await api.conversation(at, n);
    if (mine()) batch(() => { shownConversation.value = told; conversationWrong.value = ''; });
  } catch (err) {
    if (mine()) conversationWrong.value = words(err);
  }
});

/** @param {View} view */
export function applyDispatch(view) {
  batch(() => { shownSession.value = view; sessionWrong.value = ''; });
}

/** Requests the views again; soon: a person waits for them. @param {boolean} [soon] */
export function refreshDispatch(soon = false) {
  list.want(soon);
  one.want(soon);
  dialogue.want(soon);
}

/** Requests the dialogue again: its text is not in the journal. */
export const refreshConversation = () => dialogue.want();

/** Another session or another conversation was opened. */
export function openDispatch() {
  batch(() => {
    if (shownSession.peek()?.session.name !== sessionName.peek()) { shownSession.value = null; shownConversation.value = null; }
    if (shownConversation.peek()?.n !== conversationN.peek()) shownConversation.value = null;
    sessionWrong.value = conversationWrong.value = '';
  });
  if (!dispatchesKnown.peek()) list.want(true);
  one.want(true);
  dialogue.want(true);
}

export function forgetDispatch() {
  batch(() => {
    sessions.value = [];
    dispatchesKnown.value = false;
    shownSession.value = null;
    shownConversation.value = null;
  });
}

/** Applies changes of the journal. @param {import('../shell/api.js').Change[]} changes */
export function applyDispatchChanges(changes) {
  if (changes.some((ch) => ch.entity.startsWith('dispatch/'))) refreshDispatch();
}
