// What is said in the channel that is looked at: a window onto its entries, which moves.
//
// A channel may have any number of entries; a page has room for some. The window grows at
// the side the reader goes to and lets go at the other. While it stands at the newest, what
// comes is added; when more came than a page holds, it starts anew at the newest.

import * as api from '../shell/api.js';
import { batch, signal } from '../shell/lib.js';
import { Question } from '../shell/refetch.js';

/** @typedef {import('../shell/api.js').Entry} Entry */
/** @typedef {{n: number, state: string}} Progress */

/** Entries asked for at a time. */
const PAGE = 200;
/** Entries kept: some dozens of screens, drawn in a moment. */
const WINDOW_MAX = 800;
/** And so much text in them, in UTF-16 units: one message may have 128 KiB. */
const WINDOW_CHARS_MAX = 4_000_000;
/** Entries that are asked for once more, to learn how people's messages ended. */
const SETTLE_MAX = 500;

export const entries = signal(/** @type {Entry[]} */ ([]));
export const talk = signal({ channel: '', known: false, older: false, newer: false, busy: '', wrong: '' });

/** Told before the window changes, so that the reader's place can be kept. @type {{before: () => void}} */
export const reader = { before: () => {} };
/** Does the reader follow the newest? Then the window may let go of the oldest. */
export const following = { now: true };

let life = 0; // counts up with each channel that is looked at: late answers are dropped

/** @param {Partial<typeof talk.value>} part */
const set = (part) => { talk.value = { ...talk.peek(), ...part }; };

/** @param {Entry} e */
export const keyOf = (e) => `${e.seq}/${e.kind}/${e.n ?? e.agent ?? ''}`;

/** @param {Entry[]} list @param {Entry[]} more @returns {Entry[]} both, in order, each once */
function join(list, more) {
  const known = new Set(list.map(keyOf));
  return [...list, ...more.filter((e) => !known.has(keyOf(e)))];
}

/** How many entries from one end on there is room for, and never only some of one change. @param {Entry[]} list @param {'first' | 'last'} keep */
function fit(list, keep) {
  const at = (/** @type {number} */ i) => list[keep === 'first' ? i : list.length - 1 - i];
  let n = 0, chars = 0;
  while (n < list.length && n < WINDOW_MAX && (chars < WINDOW_CHARS_MAX || n === 0)) chars += at(n++).text?.length ?? 0;
  while (n < list.length && at(n).seq === at(n - 1).seq) n++;
  return keep === 'first' ? list.slice(0, n) : list.slice(list.length - n);
}

/** @param {string} busy @param {(channel: string, mine: () => boolean) => Promise<void>} ask */
async function asking(busy, ask) {
  const { channel, busy: already } = talk.peek();
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

/** Look at a channel from its newest entries on; at none where the name is empty. @param {string} channel */
export function newest(channel) {
  life++;
  batch(() => {
    if (talk.peek().channel !== channel || !channel) entries.value = [];
    talk.value = { channel, known: talk.peek().channel === channel && talk.peek().known, older: false, newer: false, busy: '', wrong: '' };
  });
  if (channel) void asking('newest', fromTheEnd);
}

export const older = () => asking('older', async (channel, mine) => {
  const list = entries.peek();
  if (!talk.peek().older || list.length === 0) return;
  const page = await api.entries(channel, { before: list[0].seq, limit: PAGE });
  if (!mine()) return;
  reader.before();
  batch(() => {
    const all = join(page.entries ?? [], entries.peek());
    entries.value = fit(all, 'first');
    set({ older: page.more && (page.entries ?? []).length > 0, newer: talk.peek().newer || entries.peek().length < all.length });
  });
});

export const newer = () => asking('newer', async (channel, mine) => {
  const list = entries.peek();
  const page = await api.entries(channel, { ...(list.length > 0 && { after: list[list.length - 1].seq }), limit: PAGE });
  if (!mine()) return;
  const reached = !talk.peek().newer; // the window stood at the newest
  if (page.more && reached && following.now) { await fromTheEnd(channel, mine); return; }
  reader.before();
  batch(() => {
    const all = join(entries.peek(), page.entries ?? []);
    // Who reads back keeps what he reads; what came meanwhile is fetched when he comes to it.
    const stay = reached && !following.now;
    const kept = fit(all, stay ? 'first' : 'last'), full = stay && kept.length < all.length;
    set({ known: true, newer: page.more || full, older: talk.peek().older || (!stay && kept.length < all.length) });
    entries.value = kept;
  });
});

const more = new Question(async () => {
  const t = talk.peek();
  if (t.busy) { more.wanted = true; return; } // after that one
  if (!t.known) { await asking('newest', fromTheEnd); return; }
  if (!t.newer) await newer();
});

/** Something was said; soon: somebody waits for it. @param {boolean} [soon] */
export function hearMore(soon = false) { more.want(soon); }

// --- how people's messages stand ---------------------------------------------------------

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
export function noteProgress(messages) {
  restate(new Map(messages.filter((m) => m && Number.isInteger(m.n) && typeof m.state === 'string').map((m) => [m.n, m.state])));
}

let settling = false;

/** What is open is in the view of the channel; how the others ended is asked for. @param {import('../shell/api.js').Channel} view */
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
  } catch { /* asked again with the next change */ } finally { settling = false; }
}
