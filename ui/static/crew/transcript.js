// The messages of one member over all its sessions: a window that grows at both ends.

import * as api from '../shell/api.js';
import { batch, signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';

/** @typedef {import('../shell/api.js').Said} Said */
/** @typedef {{speaker: string, session: string, text: string}} Wanted */

/** Messages per request. */
const PAGE = 60;
/** Messages kept: some dozens of screens. */
const WINDOW_MAX = 600;
/** Text kept in them, in UTF-16 units. */
const WINDOW_CHARS_MAX = 3_000_000;
/** A search reads a limited range per request; after this many requests a person has to ask for more. */
const STRETCHES_MAX = 8;
/** The least time between two requests while the crew is talking. */
const REST_MS = 700;

export const said = signal(/** @type {Said[]} */ ([]));
export const loading = signal({ known: false, older: false, busy: false, wrong: '' });

/** Called before older messages are added, so that the view can keep the reader's place. @type {{before: () => void}} */
export const saidReader = { before: () => {} };

/** @type {Wanted | null} */
let wanted = null;
let life = 0;   // increases with each request of a person: late answers are dropped
let before = 0; // messages before this sequence are not loaded
let head = 0;   // messages up to this sequence are loaded

/** @param {Partial<typeof loading.value>} part */
const set = (part) => { loading.value = { ...loading.peek(), ...part }; };

/** @param {Said[]} list @param {'first' | 'last'} keep */
function fit(list, keep) {
  let n = 0, chars = 0;
  const at = (/** @type {number} */ i) => list[keep === 'first' ? i : list.length - 1 - i];
  while (n < list.length && n < WINDOW_MAX && (chars < WINDOW_CHARS_MAX || n === 0)) chars += at(n++).text.length;
  while (n < list.length && at(n).seq === at(n - 1).seq) n++; // never only a part of one change
  return keep === 'first' ? list.slice(0, n) : list.slice(list.length - n);
}

/** @param {(want: Wanted, mine: () => boolean) => Promise<void>} ask */
async function asking(ask) {
  if (!wanted) return;
  const at = life;
  set({ busy: true });
  try {
    await ask(wanted, () => at === life);
    if (at === life) set({ busy: false, wrong: '' });
  } catch (err) {
    if (at === life) set({ busy: false, wrong: err instanceof Error ? err.message : String(err) });
  }
}

/** Reads pages backwards until one has a match, or until the limit is reached. @param {Wanted} want @param {() => boolean} mine */
async function backwards(want, mine) {
  for (let n = 0; n < STRETCHES_MAX; n++) {
    const page = await api.transcript({ ...want, limit: PAGE, before });
    if (!mine()) return;
    const list = page.messages ?? [];
    if (!head) head = page.head;
    const next = page.next || (list.length ? list[0].seq : 0);
    const more = page.more && next > 0 && (before === 0 || next < before);
    before = next;
    if (list.length > 0) saidReader.before();
    batch(() => {
      if (list.length > 0) said.value = [...list, ...said.peek()];
      set({ known: true, older: more });
    });
    if (list.length > 0 || !more) return;
  }
}

/** Opens the messages of one member, the newest first. @param {Wanted | null} want @param {number} [until] none after this sequence: a link leads there */
export function search(want, until = 0) {
  life++;
  wanted = want;
  head = 0;
  before = until > 0 ? until + 1 : 0;
  batch(() => { said.value = []; loading.value = { known: false, older: false, busy: false, wrong: '' }; });
  if (want) void asking(backwards);
}

export const olderSaid = () => { if (loading.peek().older && !loading.peek().busy) void asking(backwards); };

const more = new Refetch(async () => {
  const at = life;
  while (wanted && at === life && head > 0) {
    const page = await api.transcript({ ...wanted, limit: PAGE, after: head });
    if (at !== life) return;
    const known = new Set(said.peek().map((m) => m.seq));
    const fresh = (page.messages ?? []).filter((m) => !known.has(m.seq));
    if (fresh.length > 0) {
      const all = fit([...said.peek(), ...fresh], 'last');
      batch(() => {
        if (all.length < said.peek().length + fresh.length) { before = all[0].seq; set({ older: true }); }
        said.value = all;
      });
    }
    const next = page.more ? page.next || (fresh.length ? fresh[fresh.length - 1].seq : 0) : page.head;
    if (next <= head && page.more) return;
    head = Math.max(head, next);
    if (!page.more) return;
  }
}, REST_MS);

/** There may be new messages. */
export function loadNewMessages() {
  if (wanted && loading.peek().known) more.want();
}
