// What works and what comes next, for the page Now.

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
import { atWork, nextUp } from './words.js';

/** Time between two requests while the page is visible: the last lines of outputs are in no change of the journal. */
const AGAIN_MS = 2000;

export const working = signal(/** @type {api.Work[]} */ ([]));
export const workingKnown = signal(false);

let life = 0; // an answer to a request of before forgetNow is not taken

const list = new Refetch(async () => {
  const at = life;
  const answer = await api.working();
  if (at !== life) return;
  working.value = answer.working ?? [];
  workingKnown.value = true;
});

/** Requests what runs, if the page is shown. @param {boolean} [soon] */
export function refreshNow(soon = false) { if (place.peek() === 'now') list.want(soon); }

export function forgetNow() { life++; working.value = []; workingKnown.value = false; }

setInterval(() => { if (!document.hidden && live.peek()) refreshNow(); }, AGAIN_MS);
document.addEventListener('visibilitychange', () => { if (!document.hidden) refreshNow(true); });

// --- the sections --------------------------------------------------------------------

/** Runs that need a person: they are not next. */
const needed = computed(() => new Set(needs.value.map((i) => i.run_id).filter(Boolean)));

export const rows = computed(() => atWork(working.value));

export const next = computed(() => nextUp(runs.value, names.value.flatMap((name) => {
  const a = cell(name)?.agent.value;
  if (!a) return [];
  const nowMs = a.retry_at || a.limited_until ? now.value : 0;
  const status = statusOf(a, team.value.stopping, nowMs);
  return [{ agent: a, status, reason: idleReason(a, status), why: intent(a, team.value.hold, nowMs) }];
}), needed.value));
