// The newest changes of the whole team, while its history is shown.

import * as api from '../shell/api.js';
import { batch, signal } from '../shell/lib.js';
import { isReport } from '../agents/state.js';
import { asOf } from '../shell/connection.js';
import { place } from '../shell/router.js';
import { Refetch } from '../shell/refetch.js';

/** @typedef {import('../shell/api.js').Change} Change */

/** Changes that are kept; a chosen time has the others. */
export const TRAIL_MAX = 1000;

export const trail = signal(/** @type {Change[]} */ ([]));
export const trailKnown = signal(false);

const tail = new Refetch(async () => {
  const moment = asOf.peek();
  const { changes } = await api.journal({ tail: TRAIL_MAX });
  if (moment !== asOf.peek()) return;
  batch(() => { trail.value = []; trailKnown.value = true; add(changes ?? []); });
});

/** @param {Change[]} changes */
function add(changes) {
  const last = trail.peek().at(-1)?.seq ?? 0;
  const fresh = changes.filter((ch) => ch.seq > last && !isReport(ch));
  if (fresh.length > 0) trail.value = [...trail.peek(), ...fresh].slice(-TRAIL_MAX);
}

/** Reads the newest changes, if they are shown. */
export function refreshTrail() { if (place.peek() === 'history') tail.want(true); }

/** Adds what the feed brings. @param {Change[]} changes */
export function applyTrail(changes) { if (place.peek() === 'history' && trailKnown.peek()) add(changes); }

export function forgetTrail() { batch(() => { trail.value = []; trailKnown.value = false; }); }
