// The browser's own notifications. What newly needs a person is shown while no tab of Mission Control is looked at,
// once for all tabs: a tab that shows something first writes down that it did. Nothing is asked or shown before the
// person has switched it on.

import * as api from '../shell/api.js';
import { effect, signal, untracked } from '../shell/lib.js';
import { kept } from '../shell/prefs.js';
import { plain } from '../shell/text.js';
import { inbox, runs, runsKnown } from '../runs/state.js';

/** @typedef {api.InboxItem} InboxItem */

const TOLD = 'fairlead.notices-told';
/** Items that all tabs remember; the inbox shows fewer. */
const TOLD_MAX = 300;
/** A hidden tab waits, so that a tab that is looked at comes first, and an answer at once shows nothing. */
const HIDDEN_AFTER_MS = 1500;

/** on or off */
export const browserNotices = kept('browser-notices', 'off');

/** default, granted, denied; or none: this browser has no notifications */
export const permission = signal('Notification' in window ? Notification.permission : 'none');

/** Asks the browser; called by a click only. */
export async function askForNotices() {
  if (permission.value === 'none') return;
  permission.value = await Notification.requestPermission();
  browserNotices.value = permission.value === 'granted' ? 'on' : 'off';
}

/** @param {InboxItem} i */
const keyOf = (i) => `${i.id}/${i.since}`;

/** The part of the page that shows an item. @param {InboxItem} i */
export function pageOf(i) {
  const at = (/** @type {string[]} */ ...parts) => '#/' + parts.map(encodeURIComponent).join('/');
  if (i.question) return at('inbox', i.question.id);
  if (i.kind === 'failed') return at('agents', i.agent ?? '', 'evidence');
  if (runs.peek().some((r) => r.run_id === i.run_id && r.task)) return at('tasks', i.run_id);
  return i.run_id ? at('runs', i.run_id, i.step_id) : at('inbox');
}

/** Writes down that this tab shows an item; false: another tab did. @param {string} key @returns {Promise<boolean>} */
async function claim(key) {
  const take = () => {
    /** @type {unknown} */
    let told = [];
    try { told = JSON.parse(localStorage.getItem(TOLD) ?? '[]'); } catch { /* written anew */ }
    const list = Array.isArray(told) ? told : [];
    if (list.includes(key)) return false;
    localStorage.setItem(TOLD, JSON.stringify([...list, key].slice(-TOLD_MAX)));
    return true;
  };
  try { return navigator.locks ? await navigator.locks.request(TOLD, take) : take(); } catch { return true; /* without storage each tab shows it; the tag replaces */ }
}

/** @param {InboxItem} i */
async function show(i) {
  const key = keyOf(i);
  if (!document.hidden || browserNotices.peek() !== 'on' || permission.peek() !== 'granted') return;
  if (!inbox.peek().some((other) => keyOf(other) === key)) return; // answered meanwhile
  if (!await claim(key)) return;
  const who = plain(i.agent || i.workflow_name || i.run_id, 60);
  const about = i.question ? `${i.question.id}: it asks` : i.kind === 'failed' ? 'It failed too often.' : i.kind === 'config' ? 'fairlead.yaml was changed, and is not obeyed until you confirm it.' : i.kind === 'branch' ? 'A branch lacks commits of a host that led before.'
    : i.kind === 'fetch' ? 'tasks.fetch could not fetch the remote, and has stopped.' : i.run_id ? `step ${plain(i.step_id, 60)} of ${plain(i.run_id, 48)}` : 'A daily limit stops work.';
  const notice = new Notification(i.kind === 'failed' ? `${who} gave up` : `${who || 'The team'} waits for you`, { body: about, tag: key });
  notice.onclick = () => { window.focus(); location.hash = pageOf(i); notice.close(); };
}

/** @type {Set<string> | undefined} what was in the inbox; undefined: it was not read yet */
let known;

/** @param {InboxItem[]} items */
function look(items) {
  const keys = new Set(items.map(keyOf));
  const fresh = known ? items.filter((i) => !known?.has(keyOf(i))) : [];
  known = keys;
  for (const i of fresh) {
    if (document.hidden) timers.add(setTimeout(() => void show(i), HIDDEN_AFTER_MS));
    else void claim(keyOf(i));
  }
}

/** Of items that are shown soon. @type {Set<ReturnType<typeof setTimeout>>} */
const timers = new Set();

export function startBrowserNotices() {
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return;
    for (const timer of timers) clearTimeout(timer); // the person looks at the page
    timers.clear();
    for (const i of inbox.peek()) void claim(keyOf(i));
  });
  effect(() => {
    const items = inbox.value;
    if (runsKnown.value) untracked(() => look(items));
  });
}
