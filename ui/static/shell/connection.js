// The connection to the server, and the two clocks of the page: the place in the journal, and
// the time of day.

import { computed, signal } from './lib.js';

/** @typedef {{phase: 'connecting' | 'live' | 'lost', since: number, retryAt: number, trying: boolean, words: string}} Connection since, retryAt: ms since 1970 */

export const connection = signal(/** @type {Connection} */ ({ phase: 'connecting', since: Date.now(), retryAt: 0, trying: true, words: '' }));
export const live = computed(() => connection.value.phase === 'live');
/** The sequence of the last change that the page has applied. */
export const head = signal(0);
/** Ticks once a second while the page is visible; everything that shows an age reads it. */
export const now = signal(Date.now());
/** The page knows what happened up to this time: now, or when the connection was lost. */
export const seenUntil = computed(() => {
  const c = connection.value;
  return c.phase === 'lost' ? c.since : now.value;
});
