// The last words of each member, of the newest messages only: what the crew is about, at a glance.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';
import { place } from '../shell/router.js';

/** Messages that are looked through; a member that was silent for longer has no last words here. */
const LOOKED_AT = 100;
/** The least time between two requests while the crew is talking. */
const REST_MS = 2000;

/** By speaker. @type {import('../shell/lib.js').Signal<Map<string, string>>} */
export const lastWords = signal(new Map());

const newest = new Refetch(async () => {
  const page = await api.transcript({ limit: LOOKED_AT });
  lastWords.value = new Map((page.messages ?? []).map((m) => [m.speaker, m.text]));
}, REST_MS);

/** There may be new messages. */
export function readLastWords() {
  if (place.peek() === 'crew') newest.want(true);
}
