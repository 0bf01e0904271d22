// The entries of the open channel: a window that moves over them.
//
// A channel may have any number of entries, so the page keeps some. The window grows at the side
// to which the reader scrolls and shrinks at the other. At the newest end it follows new entries;
// if more arrive than one page holds, it starts again at the newest.

import * as api from '../shell/api.js';
import { batch, signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';

/** @typedef {import('../shell/api.js').Entry} Entry */
/** @typedef {{n: number, state: string}} Progress */

/** Entries per request. */
const PAGE = 200;
/** Entries kept: some dozens of screens. */
const WINDOW_MAX = 800;
/** Text kept in them, in UTF-16 units; one message may have 128 KiB. */
const WINDOW_CHARS_MAX = 4_000_000;
/** Entries requested again to learn the final state of people's messages. */
const SETTLE_MAX = 500;

export const entries = signal(/** @type {Entry[]} */ ([]));
/** How much of the channel the page has. */
export const reading = signal({ channel: '', known: false, older: false, newer: false, busy: '', wrong: '' });

/** Called before the window changes, so that the view can keep the reader's place. @type {{before: () => void}} */
export const reader = { before: () => {} };
/** Does the reader follow the newest entry? Then the window may drop the oldest. */
export const following = { now: true };

let life = 0; // increases with each opened channel: late answers are dropped

/** @param {Partial<typeof reading.value>} part */
const set = (part) => { reading.value = { ...reading.peek(), ...part }; };

/** @param {Entry} e */
export const keyOf = (e) => `${e.seq}/${e.kind}/${e.n ?? e.agent ?? ''}`;

/** @param {Entry[]} list @param {Entry[]} more @returns {Entry[]} both, in order, each once */
function join(list, more) {
  const known = new Set(list.map(keyOf));
  return [...list, ...more.filter((e) => !known.has(keyOf(e)))];
}

/** The entries from one end that fit; never only a part of one change. @param {Entry[]} list @param {'first' | 'last'} keep */
function fit(list, keep) {
  const at = (/** @type {number} */ i) => list[keep === 'first' ? i : list.length - 1 - i];
  let n = 0, chars = 0;
  while (n < list.length && n < WINDOW_MAX && (chars < WINDOW_CHARS_MAX || n === 0)) chars += at(n++).text?.length ?? 0;
  while (n < list.length && at(n).seq === at(n - 1).seq) n++;
  return keep === 'first' ? list.slice(0, n) : list.slice(list.length - n);
}

/** @param {string} busy @param {(channel: string, mine: () => boolean) => Promise<void>} ask */
async function asking(busy, ask) {
  const { channel, busy: already } = reading.peek();
  if (!channel || already) return;
  const at = life;
  const mine = () => at === life;
  set({ busy });
  try {
    await ask(channel, mine);
    if (mine()) set({ busy: '', wrong: '' });
  } catch (err) {
    if (mine()) set({ busy: '', wrong: err instanceof Error ? err.message : String(err) });
  }
}

/** @param {string} channel @param {() => boolean} mine */
async function fromTheEnd(channel, mine) {
  const page = await api.entries(channel, { limit: PAGE });
  if (!mine()) return;
  reader.before();
  batch(() => {
    entries.value = page.entries ?? [];
    set({ known: true, older: page.more, newer: false });
  });
}

/** Opens a channel at its newest entries; an empty name closes it. @param {string} channel */
export function newest(channel) {
  life++;
  batch(() => {
    if (reading.peek().channel !== channel || !channel) entries.value = [];
    reading.value = { channel, known: reading.peek().channel === channel && reading.peek().known, older: false, newer: false, busy: '', wrong: '' };
  });
  if (channel) void asking('newest', fromTheEnd);
}

/** Opens a channel at one entry. @param {string} channel @param {number} seq */
export function around(channel, seq) {
  newest('');
  life++;
  reading.value = { channel, known: false, older: false, newer: false, busy: '', wrong: '' };
  void asking('newest', async (name, mine) => {
    const page = await api.entries(name, { after: seq - 1, limit: PAGE });
    if (!mine()) return;
    batch(() => {
      entries.value = page.entries ?? [];
      set({ known: true, older: seq > 1, newer: page.more });
    });
  });
}

export const older = () => asking('older', async (channel, mine) => {
  const list = entries.peek();
  if (!reading.peek().older || list.length === 0) return;
  const page = await api.entries(channel, { before: list[0].seq, limit: PAGE });
  if (!mine()) return;
  reader.before();
  batch(() => {
    const all = join(page.entries ?? [], entries.peek());
    entries.value = fit(all, 'first');
    set({ older: page.more && (page.entries ?? []).length > 0, newer: reading.peek().newer || entries.peek().length < all.length });
  });
});

export const newer = () => asking('newer', async (channel, mine) => {
  const list = entries.peek();
  const page = await api.entries(channel, { ...(list.length > 0 && { after: list[list.length - 1].seq }), limit: PAGE });
  if (!mine()) return;
  const reached = !reading.peek().newer; // the window was at the newest entry
  if (page.more && reached && following.now) { await fromTheEnd(channel, mine); return; }
  reader.before();
  batch(() => {
    const all = join(entries.peek(), page.entries ?? []);
    // A reader who scrolled back keeps the window; new entries are loaded when the reader reaches them.
    const stay = reached && !following.now;
    const kept = fit(all, stay ? 'first' : 'last'), full = stay && kept.length < all.length;
    set({ known: true, newer: page.more || full, older: reading.peek().older || (!stay && kept.length < all.length) });
    entries.value = kept;
  });
});

const more = new Refetch(async () => {
  const t = reading.peek();
  if (t.busy) { more.wanted = true; return; } // after the current request
  if (!t.known) { await asking('newest', fromTheEnd); return; }
  if (!t.newer) await newer();
});

/** There may be new entries; soon: a person waits for them. @param {boolean} [soon] */
export function loadNewEntries(soon = false) { more.want(soon); }

// --- the state of people's messages ------------------------------------------------------

/** @param {Entry} e */
const isOpen = (e) => e.kind === 'human' && (e.state === 'queued' || e.state === 'delivered');

/** @param {Map<number, string>} states by message */
function restate(states) {
  let changed = false;
  const list = entries.peek().map((e) => {
    const state = e.kind === 'human' && e.n !== undefined ? states.get(e.n) : undefined;
    if (state === undefined || state === e.state) return e;
    changed = true;
    return { ...e, state };
  });
  if (changed) entries.value = list;
}

/** @param {Progress[]} messages as the journal has them */
export function applyMessageStates(messages) {
  restate(new Map(messages.filter((m) => m && Number.isInteger(m.n) && typeof m.state === 'string').map((m) => [m.n, m.state])));
}

let settling = false;

/** Open messages are in the channel's view; the final state of the others is requested. @param {import('../shell/api.js').Channel} view */
export async function settle(view) {
  const open = new Map((view.open ?? []).map((m) => [m.n, m.state]));
  restate(open);
  const stale = entries.peek().find((e) => isOpen(e) && !open.has(e.n ?? 0) && (e.n ?? 0) <= view.messages);
  if (!stale || settling) return;
  settling = true;
  const at = life;
  try {
    const page = await api.entries(view.name, { after: stale.seq - 1, limit: SETTLE_MAX });
    if (at === life) restate(new Map((page.entries ?? []).filter((e) => e.kind === 'human').map((e) => [e.n ?? 0, e.state ?? ''])));
  } catch { /* requested again with the next change */ } finally { settling = false; }
}
