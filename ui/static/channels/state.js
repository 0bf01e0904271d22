// What this page knows of channels: all of them, and the one that is looked at.
//
// As with runs the server derives and the page shows. Each channel is a signal of its
// own, so that a change draws one row again and no other. The words that are said in the
// channel that is looked at are in talk.js.

import * as api from '../shell/api.js';
import { batch, computed, effect, signal } from '../shell/lib.js';
import { Question } from '../shell/refetch.js';
import { setTurns } from '../agents/state.js';
import { hearMore, newest, noteProgress, settle } from './entries.js';
import { channelName, place } from '../shell/router.js';

/** @typedef {import('../shell/api.js').Channel} Channel */
/** @typedef {import('../shell/lib.js').Signal<Channel>} ChannelCell */

/** Where nobody looks at the channels, only their number under way is shown. */
const ASIDE_REST_MS = 3000;
/** Channels of which this browser remembers what was read. */
const READ_MAX = 500;

/** @type {Map<string, ChannelCell>} */
const cells = new Map();

export const channelNames = signal(/** @type {string[]} */ ([]));
export const channelsKnown = signal(false);
export const channelWrong = signal('');
/** Counts up with every channel that was not known before. */
const grown = signal(0);

/** @param {string} name @returns {ChannelCell | undefined} */
export const channelCell = (name) => cells.get(name);

/** The channel that is looked at. */
export const shownChannel = computed(() => { void grown.value; return cells.get(channelName.value)?.value ?? null; });
/** In how many somebody has the turn. */
export const underWay = computed(() => channelNames.value.filter((n) => cells.get(n)?.value.holder).length);

/** @param {Channel} view */
function put(view) {
  const c = cells.get(view.name);
  if (!c) { cells.set(view.name, signal(view)); grown.value++; }
  else if (JSON.stringify(c.peek()) !== JSON.stringify(view)) c.value = view;
}

/** A channel as the server has just given it. @param {Channel} view */
export function putChannel(view) {
  put(view);
  if (view.name === channelName.peek()) settle(view);
}

const list = new Question(async () => {
  const answer = await api.channels();
  batch(() => {
    const views = answer.channels ?? [];
    views.forEach(put);
    const order = views.map((v) => v.name);
    for (const name of cells.keys()) if (!order.includes(name) && name !== channelName.peek()) cells.delete(name);
    if (order.join('\n') !== channelNames.peek().join('\n')) channelNames.value = order;
    channelsKnown.value = true;
  });
});

const aside = new Question(async () => { await list.ask(); }, ASIDE_REST_MS);

const one = new Question(async () => {
  const name = channelName.peek();
  if (!name) return;
  try {
    const view = await api.channel(name);
    batch(() => {
      putChannel(view);
      if (channelName.peek() === name) channelWrong.value = '';
    });
  } catch (err) {
    if (channelName.peek() === name) channelWrong.value = err instanceof Error ? err.message : String(err);
  }
});

/** Ask again, because something may have changed; soon: somebody waits for it. @param {boolean} [soon] */
export function refreshChannels(soon = false) {
  list.want(soon);
  if (!channelName.peek()) return;
  one.want(soon);
  hearMore(soon);
}

/** Another channel is looked at. */
export function lookAtChannel() {
  channelWrong.value = '';
  if (place.peek() !== 'channels') return;
  list.want(true);
  newest(channelName.peek());
  if (channelName.peek()) one.want(true);
}

export function forgetChannels() {
  batch(() => {
    cells.clear();
    grown.value++;
    channelNames.value = [];
    channelsKnown.value = false;
  });
  newest('');
  if (channelName.peek()) lookAtChannel();
}

/** Changes of the journal, as they come. @param {import('../shell/api.js').Change[]} changes */
export function noteTurns(changes) {
  const at = `channel/${channelName.peek()}`;
  let here = false, elsewhere = false;
  /** @type {import('./entries.js').Progress[]} */
  const progress = [];
  /** @type {Map<string, import('../agents/state.js').TurnMove[]>} */
  const moves = new Map();
  const move = (/** @type {unknown} */ agent, /** @type {import('../agents/state.js').TurnMove} */ m) => {
    const name = String(agent), list = moves.get(name);
    if (list) list.push(m); else moves.set(name, [m]);
  };
  batch(() => {
    for (const ch of changes) {
      if (ch.machine !== 'turn') continue;
      if (ch.entity === at) here = true; else elsewhere = true;
      const set = ch.data?.turn;
      if (!ch.entity.startsWith('channel/') || !set) continue;
      const channel = ch.entity.slice('channel/'.length);
      if (set.agent && ch.to) move(set.agent, { channel, to: ch.to, seq: ch.seq });
      for (const name of Array.isArray(set.body?.left) ? set.body.left : []) move(name, { channel, to: '', seq: ch.seq });
      if (ch.entity === at && Array.isArray(set.body?.messages)) progress.push(...set.body.messages);
    }
    if (progress.length > 0) noteProgress(progress);
    moves.forEach((list, name) => setTurns(name, list));
  });
  if (here) { one.want(); hearMore(); }
  if (place.peek() !== 'channels') { if (here || elsewhere) aside.want(); }
  else if (elsewhere || list.busy || !channelName.peek()) list.want(); // one that is under way may be older than this
}

// --- what was read --------------------------------------------------------------------

const READ_KEY = 'fairlead.read';
/** @type {Record<string, number>} */
let first = {};
try {
  for (const [k, n] of Object.entries(JSON.parse(localStorage.getItem(READ_KEY) ?? '{}'))) if (typeof n === 'number') first[k] = n;
} catch { /* forgotten, then */ }
const read = signal(first);

/** Messages that nobody has looked at in this browser. @param {Channel} c */
export const unread = (c) => Math.max(0, c.messages - (read.value[c.name] ?? 0));

let shownUpTo = { name: '', n: 0 };
document.addEventListener('visibilitychange', () => { if (shownUpTo.name === channelName.peek()) haveRead(shownUpTo.name, shownUpTo.n); });

/** Everything up to here was in sight. @param {string} name @param {number} n */
export function haveRead(name, n) {
  shownUpTo = { name, n };
  if (!name || document.hidden || read.peek()[name] === n) return;
  const { [name]: _, ...others } = read.peek();
  const kept = Object.entries(others).slice(1 - READ_MAX);
  read.value = { ...Object.fromEntries(kept), [name]: n };
}

let settled = false;
effect(() => {
  const text = JSON.stringify(read.value);
  if (!settled) { settled = true; return; }
  try { localStorage.setItem(READ_KEY, text); } catch { /* forgotten, then */ }
});
