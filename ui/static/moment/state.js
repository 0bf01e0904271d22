// Which moment the page shows. The feed reads everything as of then, and nothing can be ordered.

import * as api from '../shell/api.js';
import { batch, signal } from '../shell/lib.js';
import { asOf, head, live } from '../shell/connection.js';
import { changeAt } from '../history/change.js';
import { spoken } from '../shell/router.js';

/** The bar is open. */
export const looking = signal(false);
/** The last change of the journal when the bar was opened. */
export const newest = signal(0);
/** The last change as of the moment; null: not known yet. */
export const last = signal(/** @type {api.Change | null} */ (null));
/** Why a moment cannot be shown. */
export const trouble = signal('');

/** While the slider is dragged, only the place where it rests is shown. */
const REST_MS = 120;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let resting;

/** Shows the page as of a change. @param {number} seq */
export function show(seq) {
  clearTimeout(resting);
  const at = Math.min(Math.max(1, seq), newest.peek() || seq);
  batch(() => { trouble.value = ''; asOf.value = at; });
}

/** The same, once the slider rests. @param {number} seq */
export function drag(seq) {
  clearTimeout(resting);
  resting = setTimeout(() => show(seq), REST_MS);
}

/** Shows the change after or before this one. @param {number} by */
export function step(by) {
  const to = asOf.peek() + by;
  if (asOf.peek() === 0 || to < 1 || to > newest.peek()) return;
  show(to);
}

/** Opens the bar at the newest change, or shows the page as it is now if it is open. */
export function toggle() {
  if (looking.peek()) backToNow();
  else if (live.peek()) lookBackTo(head.peek());
}

/** Opens the bar at a change. @param {number} seq */
export function lookBackTo(seq) {
  if (!looking.peek()) batch(() => { looking.value = true; newest.value = head.peek(); last.value = null; });
  show(seq);
}

/** Shows the page as it is now. */
export function backToNow() {
  clearTimeout(resting);
  batch(() => { looking.value = false; asOf.value = 0; last.value = null; trouble.value = ''; });
  spoken.value = 'The page shows what is now.';
}

/** Shows the page as of a time. @param {Date} time */
export async function showTime(time) {
  try {
    const { head: seq } = await api.teamAt(time.toISOString());
    show(seq);
  } catch (err) {
    trouble.value = err instanceof Error ? err.message : String(err);
  }
}

// A link to now ends the look back.
asOf.subscribe((at) => { if (at === 0) looking.value = false; });

/** Learns about the moment that is shown. @param {number} seq */
export async function learn(seq) {
  looking.value = true;
  const [change, now] = await Promise.all([changeAt(seq), newest.peek() ? null : api.newest()]);
  if (asOf.peek() !== seq) return null;
  batch(() => {
    last.value = change;
    if (now !== null) newest.value = now;
  });
  return change;
}
