// What the page Now requests, and what this browser has seen.

import * as api from '../shell/api.js';
import { computed, signal } from '../shell/lib.js';
import { cell, names, team } from '../agents/state.js';
import { idleReason, statusOf } from '../shell/status.js';
import { intent } from '../agents/words.js';
import { live, now } from '../shell/connection.js';
import { needs } from '../inbox/state.js';
import { runs } from '../runs/state.js';
import { Refetch } from '../shell/refetch.js';
import { place } from '../shell/router.js';
import { kept } from '../shell/prefs.js';
import { atWork, finished, nextUp } from './words.js';

/** Time between two requests while the page is visible: the last lines of outputs are in no change of the journal. */
const AGAIN_MS = 2000;
/** On the first visit, what has ended within this time counts as new. */
const FIRST_MS = 24 * 3600_000;

export const working = signal(/** @type {api.Work[]} */ ([]));
export const workingKnown = signal(false);

const list = new Refetch(async () => {
  working.value = (await api.working()).working ?? [];
  workingKnown.value = true;
});

/** Requests what runs, if the page is shown. @param {boolean} [soon] */
export function refreshNow(soon = false) { if (place.peek() === 'now') list.want(soon); }

export function forgetNow() { working.value = []; workingKnown.value = false; }

setInterval(() => { if (!document.hidden && live.peek()) refreshNow(); }, AGAIN_MS);
document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshNow(true); });

// --- what was seen -----------------------------------------------------------------

const seen = kept('seen', '');
/** Until when this browser has seen what ended, in ms since 1970 by the server's clock. */
export const seenAt = computed(() => Number(seen.value) || 0);
const opened = Date.now();

/** Everything that has ended until now was seen. @param {number} at of the newest thing shown */
export function markSeen(at) { seen.value = String(Math.max(seenAt.peek(), at)); }

// --- the sections --------------------------------------------------------------------

/** Runs that need a person: they are neither finished nor next. */
const needed = computed(() => new Set(needs.value.map((i) => i.run_id).filter(Boolean)));

/** Agents that gave up need a person too. */
const failed = computed(() => new Set(needs.value.filter((i) => i.kind === 'failed').map((i) => i.agent)));

export const rows = computed(() => atWork(working.value));

export const done = computed(() => finished(runs.value, names.value.filter((name) => !failed.value.has(name)).map((name) => ({ name, sessions: cell(name)?.runs.value ?? [] })), needed.value,
  seenAt.value || opened + api.skew.ms - FIRST_MS));

export const next = computed(() => nextUp(runs.value, names.value.flatMap((name) => {
  const a = cell(name)?.agent.value;
  if (!a) return [];
  const nowMs = a.retry_at || a.limited_until ? now.value : 0;
  const status = statusOf(a, team.value.stopping, nowMs);
  return [{ agent: a, status, reason: idleReason(a, status), why: intent(a, team.value.hold, nowMs) }];
}), needed.value));
