// What needs this person, saved answers, and the requests that follow a change of a question.

import * as api from '../shell/api.js';
import { tell } from '../agents/actions.js';
import { plain } from '../shell/text.js';
import { computed, signal } from '../shell/lib.js';
import { kept } from '../shell/prefs.js';
import { Refetch } from '../shell/refetch.js';
import { inbox, refreshInbox } from '../runs/state.js';

export const savedAnswers = signal(/** @type {import('../shell/api.js').SavedAnswer[]} */ ([]));

// --- what a person put away ---------------------------------------------------------

/** Failures that are put away, at most; the oldest are forgotten. */
const AWAY_MAX = 200;

const away = kept('put-away', '');

/** A failure that happens again has another name. @param {import('../shell/api.js').InboxItem} i */
const nameOf = (i) => `${i.id}@${Date.parse(i.since)}`;

/** What needs this person: the inbox without the failures that were put away in this browser, the most urgent first. */
export const needs = computed(() => {
  const gone = new Set(away.value.split(' '));
  return inbox.value.filter((i) => !(mayPutAway(i) && gone.has(nameOf(i))));
});

/** Only what waits for no answer can be put away. @param {import('../shell/api.js').InboxItem} i */
export const mayPutAway = (i) => i.kind === 'run' || i.kind === 'limit' || i.kind === 'failed' || i.kind === 'branch' || i.kind === 'fetch';

/** @param {import('../shell/api.js').InboxItem} i */
export function putAway(i) {
  away.value = [...away.peek().split(' ').filter((n) => n && n !== nameOf(i)), nameOf(i)].slice(-AWAY_MAX).join(' ');
}
export const noticeTargets = signal(/** @type {import('../shell/api.js').NoticeTarget[]} */ ([]));

const receivers = new Refetch(async () => { noticeTargets.value = (await api.noticeTargets()).targets ?? []; });

const list = new Refetch(async () => { savedAnswers.value = (await api.savedAnswers()).saved ?? []; });

/** Requests saved answers and the inbox again; soon: a person waits for them. @param {boolean} [soon] */
export function refreshQuestions(soon = false) {
  list.want(soon);
  receivers.want(soon);
  refreshInbox(soon);
}

export function forgetQuestions() { savedAnswers.value = []; noticeTargets.value = []; }

/** Does a change say that an agent gave up, or that it no longer has? @param {import('../shell/api.js').Change} ch */
function gaveUp(ch) {
  const value = ch.entity.startsWith('control/') && ch.data?.control?.value;
  if (!value) return false;
  const name = ch.entity.slice('control/'.length);
  return Boolean(value.gave_up) !== inbox.peek().some((i) => i.kind === 'failed' && i.agent === name) || inbox.peek().some((i) => i.kind === 'limit');
}

/** Does a change say that a provider refuses an agent until a person does something, or may it end that? @param {import('../shell/api.js').Change} ch */
function refused(ch) {
  return Boolean(ch.data?.used?.provider) || ch.machine === 'session' && inbox.peek().some((i) => i.kind === 'login' || i.kind === 'billing');
}

/** Applies changes of the journal. @param {import('../shell/api.js').Change[]} changes */
export function applyQuestionChanges(changes) {
  if (changes.some((ch) => gaveUp(ch) || refused(ch) || ch.entity === 'team/team' && ch.trigger.startsWith('config_'))) refreshInbox();
  for (const ch of changes) {
    if (!ch.entity.startsWith('notice/')) continue;
    receivers.want();
    const failure = ch.data?.notice?.failure;
    if (ch.from !== 'failing' && failure) tell(`notices to ${plain(ch.entity.slice('notice/'.length), 64)}`, new Error(`${failure.cause}; ${failure.way_out}`));
  }
  if (!changes.some((ch) => ch.entity.startsWith('question/'))) return;
  refreshInbox();
  list.want();
}
