// What this page knows of sessions in which MAIN coordinates: the list, the one that is looked
// at, and the conversation in it.
//
// The truth of a session lies in its folder; the server reads it. Whenever a change says that a
// folder has a new line, the answers that may have changed are asked for again.

import * as api from '../shell/api.js';
import { batch, computed, signal } from '../shell/lib.js';
import { Question } from '../shell/refetch.js';
import { isOpen } from './words.js';
import { conversationN, sessionName } from '../shell/router.js';

/** @typedef {import('../shell/api.js').DispatchRow} Row */
/** @typedef {import('../shell/api.js').DispatchView} View */
/** @typedef {import('../shell/api.js').DispatchTalk} Talk */

export const sessions = signal(/** @type {Row[]} */ ([])); // open ones first, then the newest
export const sessionsKnown = signal(false);
export const sessionsWrong = signal('');
export const shownSession = signal(/** @type {View | null} */ (null));
export const sessionWrong = signal('');
export const shownTalk = signal(/** @type {Talk | null} */ (null));
export const talkWrong = signal('');

/** In how many a conversation is open. */
export const talking = computed(() => sessions.value.filter((s) => isOpen(s) && s.conversation !== '').length);

/** @param {unknown} err */
const words = (err) => (err instanceof Error ? err.message : String(err));

const list = new Question(async () => {
  try {
    const answer = await api.sessions();
    batch(() => { sessions.value = answer.sessions ?? []; sessionsKnown.value = true; sessionsWrong.value = ''; });
  } catch (err) {
    sessionsWrong.value = words(err);
    throw err;
  }
});

const one = new Question(async () => {
  const at = sessionName.peek();
  if (!at) return;
  try {
    const view = await api.session(at);
    if (sessionName.peek() === at) applySession(view);
  } catch (err) {
    if (sessionName.peek() === at) sessionWrong.value = words(err);
  }
});

const talk = new Question(async () => {
  const at = sessionName.peek(), n = conversationN.peek();
  if (!at || !n) return;
  const mine = () => sessionName.peek() === at && conversationN.peek() === n;
  try {
    const told = await api.conversation(at, n);
    if (mine()) batch(() => { shownTalk.value = told; talkWrong.value = ''; });
  } catch (err) {
    if (mine()) talkWrong.value = words(err);
  }
});

/** @param {View} view */
export function applySession(view) {
  batch(() => { shownSession.value = view; sessionWrong.value = ''; });
}

/** Ask again, because something may have changed; soon: somebody waits for it. @param {boolean} [soon] */
export function refreshSessions(soon = false) {
  list.want(soon);
  one.want(soon);
  talk.want(soon);
}

/** What stands in a dialogue and is no change of the session's state is not in the journal. */
export const refreshTalk = () => talk.want();

/** Another session, or another conversation of it, is looked at. */
export function lookAtSession() {
  batch(() => {
    if (shownSession.peek()?.session.name !== sessionName.peek()) { shownSession.value = null; shownTalk.value = null; }
    if (shownTalk.peek()?.n !== conversationN.peek()) shownTalk.value = null;
    sessionWrong.value = talkWrong.value = '';
  });
  if (!sessionsKnown.peek()) list.want(true);
  one.want(true);
  talk.want(true);
}

export function forgetSessions() {
  batch(() => {
    sessions.value = [];
    sessionsKnown.value = false;
    shownSession.value = null;
    shownTalk.value = null;
  });
}

/** Changes of the journal, as they come. @param {import('../shell/api.js').Change[]} changes */
export function noteSessions(changes) {
  if (changes.some((ch) => ch.entity.startsWith('dispatch/'))) refreshSessions();
}
