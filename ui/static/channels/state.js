// Channels: the list, and the open one.
//
// The server derives a channel's view and the page requests it again after a change. Each channel
// is a signal, so that a change redraws one row and no other. Its entries are in entries.js.

import * as api from '../shell/api.js';
import { batch, computed, effect, signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';
import { setTurns } from '../agents/state.js';
import { around, loadNewEntries, newest, applyMessageStates, settle } from './entries.js';
import { channelName, place, spot } from '../shell/router.js';

/** @typedef {import('../shell/api.js').Channel} Channel */
/** @typedef {import('../shell/lib.js').Signal<Channel>} ChannelCell */

/** Time between two requests while another part of the page is open: only the count is shown then. */
const ASIDE_REST_MS = 3000;
/** Channels for which this browser remembers the read position. */
const READ_MAX = 500;

/** @type {Map<string, ChannelCell>} */
const cells = new Map();

export const channelNames = signal(/** @type {string[]} */ ([]));
export const channelsKnown = signal(false);
export const channelWrong = signal('');
/** Increases with every new channel. */
const grown = signal(0);

/** @param {string} name @returns {ChannelCell | undefined} */
export const channelCell = (name) => cells.get(name);

/** The open channel. */
export const shownChannel = computed(() => { void grown.value; return cells.get(channelName.value)?.value ?? null; });
/** Channels in which an agent has the turn. */
export const underWay = computed(() => channelNames.value.filter((n) => cells.get(n)?.value.holder).length);

/** @param {Channel} view */
function put(view) {
  const c = cells.get(view.name);
  if (!c) { cells.set(view.name, signal(view)); grown.value++; }
  else if (JSON.stringify(c.peek()) !== JSON.stringify(view)) c.value = view;
}

/** Stores a channel from an answer of the server. @param {Channel} view */
export function putChannel(view) {
  put(view);
  if (view.name === channelName.peek()) settle(view);
}

const list = new Refetch(async () => {
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

const aside = new Refetch(async () => { await list.ask(); }, ASIDE_REST_MS);

const one = new Refetch(async () => {
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

/** Requests the views again; soon: a person waits for them. @param {boolean} [soon] */
export function refreshChannels(soon = false) {
  list.want(soon);
  if (!channelName.peek()) return;
  one.want(soon);
  loadNewEntries(soon);
}

/** Another channel was opened. */
export function openChannel() {
  channelWrong.value = '';
  if (place.peek() !== 'channels') return;
  list.want(true);
  if (channelName.peek() && spot.peek()) around(channelName.peek(), Number(spot.peek()));
  else newest(channelName.peek());
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
  if (channelName.peek()) openChannel();
}

/** Applies changes of the journal. @param {import('../shell/api.js').Change[]} changes */
export function applyTurnChanges(changes) {
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
    if (progress.length > 0) applyMessageStates(progress);
    moves.forEach((list, name) => setTurns(name, list));
  });
  if (here) { one.want(); loadNewEntries(); }
  if (place.peek() !== 'channels') { if (here || elsewhere) aside.want(); }
  else if (elsewhere || list.busy || !channelName.peek()) list.want(); // a request under way may be older than this change
}

// --- read positions -------------------------------------------------------------------

const READ_KEY = 'fairlead.read';
/** @type {Record<string, number>} */
let first = {};
try {
  for (const [k, n] of Object.entries(JSON.parse(localStorage.getItem(READ_KEY) ?? '{}'))) if (typeof n === 'number') first[k] = n;
} catch { /* forgotten, then */ }
const read = signal(first);

/** Messages not yet seen in this browser. @param {Channel} c */
export const unread = (c) => Math.max(0, c.messages - (read.value[c.name] ?? 0));

let shownUpTo = { name: '', n: 0 };
document.addEventListener('visibilitychange', () => { if (shownUpTo.name === channelName.peek()) haveRead(shownUpTo.name, shownUpTo.n); });

/** Everything up to message n was in view. @param {string} name @param {number} n */
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
