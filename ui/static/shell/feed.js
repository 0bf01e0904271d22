// The feed: one stream carries every change of the journal, in order.
//
// A broken stream continues where it stopped, so the page never reloads. A gap in the sequence
// is detected and closed. The reducer applies each change, so a new status of an agent needs no
// request. Three things are not in the journal and come with a snapshot every POLL_MS: the age of
// the evidence, what contradicts a status, and whether a state file is out of date. The server asks
// each shim for them, and a shim that hangs sends no event. Changes are drawn at most once a frame.

import * as api from './api.js';
import { forgetQuestions, applyQuestionChanges, refreshQuestions } from '../inbox/state.js';
import { forgetChannels, applyTurnChanges, refreshChannels } from '../channels/state.js';
import { forgetCrew, applyCrewChanges, refreshCrew } from '../crew/state.js';
import { batch } from './lib.js';
import { forgetRuns, applyRunChanges, refreshRuns } from '../runs/state.js';
import { forgetDispatch, applyDispatchChanges, refreshDispatch } from '../dispatch/state.js';
import { nameOf } from './reducer.js';
import { HeldBack, readStream } from './sse.js';
import { signedIn } from './signin.js';
import { asOf, asOfTime, connection, head, live, polls, tick } from './connection.js';
import { learn, trouble } from '../moment/state.js';
import { addHistory, applyChanges, applyTeam, cell, forget, loaded, names } from '../agents/state.js';
import { applyHostChanges, forgetHosts, refreshHosts } from '../hosts/state.js';
import { forgetUsage, refreshUsage } from '../usage/state.js';
import { forgetDigest, refreshDigest } from '../now/digest.js';
import { applyTrail, forgetTrail, refreshTrail } from '../history/state.js';
import { forgetNow, refreshNow } from '../now/state.js';

/** @typedef {import('./api.js').Change} Change */

const BACKOFF_FIRST_MS = 400;
const BACKOFF_MAX_MS = 10_000;
/** Further behind than this, replaying costs more than starting from a snapshot. */
const REPLAY_MAX = 20_000;
/** Changes read once at the start, for the timelines. */
const HISTORY_TAIL = 1000;
/** Between a change that does not say everything and the snapshot that does. */
const REFRESH_AFTER_MS = 40;
/** Between two snapshots: the age of evidence and doubts change without a change in the journal. */
const POLL_MS = 15_000;
/** A stream that is so long behind a snapshot is held back by something between. */
const LAG_MS = 8000;
/** Least time from one poll to the next. */
const POLL_GAP_MS = 250;
/** The server ends an answer to a poll after 10 s; a page that heard nothing for this long is cut off. */
const POLL_SILENCE_MS = 20_000;
/** A page that polls tries a stream after so many polls, and twice as many after each one that was held back. */
const TRY_FIRST = 15, TRY_LAST = 480;
/** Time between two updates of a hidden page, which gets no frames. */
const HIDDEN_FLUSH_MS = 500;

let place = 0;       // the sequence of the last change received
let toleratedGap = 0; // a gap that remained after a new request: the server skips numbers there
/** @type {Change[]} */
let queue = [];
let flushing = false;
let endReason = '';   // why the server ended the stream; empty if it did not say
let wake = () => {};
let tryAfter = TRY_FIRST;
let trying = false;
/** The open stream. */
let line = new AbortController();

function flush() {
  flushing = false;
  const changes = queue;
  queue = [];
  if (changes.length === 0) return;
  if (applyChanges(changes).length > 0) refreshSoon();
  applyQuestionChanges(changes);
  applyRunChanges(changes);
  applyTurnChanges(changes);
  applyCrewChanges(changes);
  applyDispatchChanges(changes);
  applyHostChanges(changes);
  refreshUsage();
  refreshNow();
  refreshDigest(changes);
  applyTrail(changes);
}

/** @param {Change} change */
function enqueue(change) {
  queue.push(change);
  if (flushing) return;
  flushing = true;
  if (document.hidden) setTimeout(flush, HIDDEN_FLUSH_MS);
  else requestAnimationFrame(flush);
}

// --- snapshots ----------------------------------------------------------------

let refreshing = false;
let wanted = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let refreshTimer;

/** Requests a snapshot, because a change does not say everything. That of a new agent does not. */
function refreshSoon() {
  wanted = true;
  if (!refreshTimer) refreshTimer = setTimeout(refresh, REFRESH_AFTER_MS);
}

async function refresh() {
  refreshTimer = undefined;
  if (refreshing || !live.peek()) return;
  refreshing = true;
  wanted = false;
  try { applyTeam(await api.team()); } catch { /* the stream reports a lost server */ }
  refreshing = false;
  // A snapshot older than the last change of an agent does not complete it.
  if (wanted || names.peek().some((n) => cell(n)?.known.complete === false)) refreshSoon();
}

/** Reads a snapshot, which also shows whether the stream keeps up with the journal. */
async function poll() {
  if (!live.peek() || document.hidden || refreshing) return;
  const mine = line;
  try {
    const snapshot = await api.team();
    applyTeam(snapshot);
    if (snapshot.head > place) setTimeout(() => { if (place < snapshot.head && live.peek()) mine.abort(new HeldBack()); }, LAG_MS);
  } catch (err) {
    if (err instanceof api.Failure && err.status === 0) mine.abort(err); // the stream may be as dead, and would say so much later
  }
}

// --- the stream ---------------------------------------------------------------

/** @param {Partial<import('./connection.js').Connection>} part */
function set(part) {
  connection.value = { ...connection.peek(), ...part };
}

function forgetAll() {
  forget(); forgetRuns(); forgetChannels(); forgetCrew(); forgetDispatch(); forgetQuestions(); forgetUsage(); forgetNow(); forgetDigest(); forgetTrail(); forgetHosts();
}

function refreshAll() {
  refreshRuns(true);
  refreshChannels(true);
  refreshCrew(true);
  refreshDispatch(true);
  refreshQuestions(true);
  refreshHosts(true);
  refreshUsage();
  refreshNow(true);
  refreshDigest();
  refreshTrail();
}

/** Reads everything as of an earlier moment. @param {number} seq */
async function readMoment(seq) {
  const [change, snapshot] = await Promise.all([learn(seq), api.team()]);
  if (asOf.peek() !== seq) return;
  batch(() => {
    place = 0; // the stream begins anew afterwards
    queue = [];
    head.value = seq;
    asOfTime.value = change ? Date.parse(change.time) - api.skew.ms : 0;
    tick();
    forgetAll();
    applyTeam(snapshot);
    set({ phase: 'past', since: Date.now(), trying: false, words: '' });
  });
  void readHistory();
  refreshAll();
}

/** Requests a snapshot and decides where the stream continues. */
async function catchUp() {
  const snapshot = await api.team();
  const another = snapshot.head < place;
  if (another) forgetAll();
  const first = place === 0 || another || snapshot.head - place > REPLAY_MAX;
  if (first) {
    place = snapshot.head;
    head.value = snapshot.head;
  }
  applyTeam(snapshot);
  if (first) void readHistory();
}

/** Reads the past for the timelines; the page works without it. */
async function readHistory() {
  try {
    const { changes } = await api.journal({ tail: HISTORY_TAIL });
    /** @type {Map<string, Change[]>} */
    const byAgent = new Map();
    for (const ch of changes ?? []) {
      if (!/^(control|session)\//.test(ch.entity)) continue;
      const name = nameOf(ch.entity);
      byAgent.set(name, [...(byAgent.get(name) ?? []), ch]);
    }
    batch(() => byAgent.forEach((list, name) => { const c = cell(name); if (c) addHistory(c, list); }));
  } catch { /* the stream reports a lost server */ }
}

/** @param {import('./sse.js').Message} message @param {AbortController} line */
function take(message, line) {
  if (message.event === 'bye') endReason = String(JSON.parse(message.data).reason ?? '');
  if (message.event !== 'change') return;
  /** @type {Change} */
  const change = JSON.parse(message.data);
  if (change.seq <= place) return; // a repetition
  if (change.seq > place + 1 && place !== toleratedGap) {
    toleratedGap = place;
    line.abort(new Error('a change is missing'));
    return;
  }
  place = change.seq;
  enqueue(change);
}

/** Why a poll is cut off: a stream is passed on again. */
class Passed extends Error {}

/** Tries whether a stream is passed on by now, beside the polls. */
async function tryStream() {
  if (trying || !polls.peek() || !live.peek()) return;
  trying = true;
  const mine = line, one = new AbortController();
  mine.signal.addEventListener('abort', () => one.abort(), { once: true });
  let passed = false;
  try { await readStream(api.streamURL(place), { signal: one.signal, onOpen: () => { passed = true; one.abort(); }, onMessage: () => {} }); } catch { /* held back, or cut by us */ }
  trying = false;
  if (!passed) { tryAfter = Math.min(TRY_LAST, tryAfter * 2); return; }
  polls.value = false;
  mine.abort(new Passed());
}

/** Reads the stream until it ends. Returns if the server closed it properly; throws otherwise. */
async function listen() {
  line = new AbortController();
  await catchUp();
  if (asOf.peek() > 0) return;
  const mine = line;
  const open = () => {
    endReason = '';
    set({ phase: 'live', since: Date.now(), trying: false, words: '' });
    if (wanted) refreshSoon();
    refreshAll();
  };
  const onMessage = (/** @type {import('./sse.js').Message} */ m) => { if (!mine.signal.aborted) take(m, mine); };
  if (!polls.peek()) { await readStream(api.eventsURL(place), { signal: mine.signal, onOpen: open, onMessage }); return; }
  open(); // the snapshot was a moment ago, and an answer without news comes late
  for (let n = 1; !endReason; n++) {
    if (n % tryAfter === 0) void tryStream();
    await readStream(api.eventsURL(place), { signal: mine.signal, firstMs: POLL_SILENCE_MS, silenceMs: POLL_SILENCE_MS, onMessage });
    await /** @type {Promise<void>} */ (new Promise((go) => { setTimeout(go, POLL_GAP_MS); }));
  }
}

/** @param {unknown} err */
function lost(err) {
  const before = connection.peek();
  set({
    phase: before.phase === 'connecting' && !loaded.peek() ? 'connecting' : 'lost',
    since: before.phase === 'live' ? Date.now() : before.since,
    trying: false,
    words: endReason === 'stopping' ? 'Fairlead was stopped.' : err instanceof Error && before.phase === 'connecting' ? err.message : '',
  });
}

/** Keeps the stream open until the page is closed. */
export async function keepFeedOpen() {
  setInterval(poll, POLL_MS);
  addEventListener('online', () => wake());
  document.addEventListener('visibilitychange', () => { // a device that slept has timers that are late
    void poll();
    if (!document.hidden) void tryStream();
  });
  let failures = 0;
  signedIn.subscribe(() => wake());
  asOf.subscribe(() => { line.abort(new Error('another moment is shown')); wake(); });
  for (;;) {
    if (!signedIn.peek()) {
      set({ phase: 'connecting', trying: true, words: '' });
      await /** @type {Promise<void>} */ (new Promise((go) => { wake = go; }));
      continue;
    }
    const moment = asOf.peek();
    if (moment > 0) {
      try { await readMoment(moment); } catch (err) {
        if (asOf.peek() === moment) trouble.value = err instanceof Error ? err.message : String(err);
      }
      if (asOf.peek() === moment && signedIn.peek()) await /** @type {Promise<void>} */ (new Promise((go) => { wake = go; }));
      if (asOf.peek() === 0) { place = 0; asOfTime.value = 0; tick(); forgetAll(); set({ phase: 'connecting', trying: true, words: '' }); }
      continue;
    }
    const started = performance.now();
    try {
      set({ trying: true });
      await listen();
      // The server closes the stream of a page that lags. Connect again at once; the connection
      // counts as lost only if that fails.
      failures = 0;
      if (performance.now() - started > 1000) continue;
    } catch (err) {
      if (err instanceof HeldBack && !polls.peek()) { // the server answers other requests, or the next one shows that it does not
        polls.value = true;
        tryAfter = Math.min(TRY_LAST, tryAfter * 2);
        set({ phase: 'connecting', trying: true, words: '' });
        continue;
      }
      if (live.peek()) failures = 0;
      if (err instanceof Passed) continue;
      if (!signedIn.peek() || asOf.peek() > 0) continue;
      lost(err);
    }
    failures++;
    const wait = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (failures - 1)) * (0.8 + 0.4 * Math.random());
    set({ retryAt: Date.now() + wait });
    await /** @type {Promise<void>} */ (new Promise((go) => {
      const timer = setTimeout(go, wait);
      wake = () => { clearTimeout(timer); go(); };
    }));
  }
}

/** Connects now instead of waiting for the next attempt. */
export const retryNow = () => wake();
