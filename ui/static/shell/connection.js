// The connection to the server, and the two clocks of the page: the place in the journal, and
// the time of day.

import { computed, signal } from './lib.js';

/** @typedef {{phase: 'connecting' | 'live' | 'lost' | 'past', since: number, retryAt: number, trying: boolean, words: string}} Connection since, retryAt: ms since 1970 */

export const connection = signal(/** @type {Connection} */ ({ phase: 'connecting', since: Date.now(), retryAt: 0, trying: true, words: '' }));
export const live = computed(() => connection.value.phase === 'live');
/** A proxy between page and server holds streams back, so the page asks for news again and again, until a stream is passed on. */
export const polls = signal(false);
/** The server answers, so what is shown is true: now, or as of an earlier moment. */
export const answers = computed(() => live.value || connection.value.phase === 'past');
/** The change as of which the page shows everything; 0: now. */
export const asOf = signal(0);
/** When that was, in ms since 1970 by this browser's clock; 0: not known yet. */
export const asOfTime = signal(0);
/** The sequence of the last change that the page has applied. */
export const head = signal(0);
/** Ticks once a second while the page is visible; everything that shows an age reads it. */
export const now = signal(Date.now());
/** What the clock of this machine says, at an earlier moment too. */
export const clockNow = () => Date.now();
/** Lets the page's clock go on. At an earlier moment it does not move. */
export const tick = () => { now.value = asOf.peek() > 0 && asOfTime.peek() > 0 ? asOfTime.peek() : clockNow(); };
/** The page knows what happened up to this time: now, or when the connection was lost. */
export const seenUntil = computed(() => {
  const c = connection.value;
  return c.phase === 'lost' ? c.since : now.value;
});
