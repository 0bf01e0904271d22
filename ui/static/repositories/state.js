// The repositories of this user, as this server found them.

import * as api from '../shell/api.js';
import { live } from '../shell/connection.js';
import { computed, effect, signal, untracked } from '../shell/lib.js';
import { dialog, place } from '../shell/router.js';
import { Refetch } from '../shell/refetch.js';

/** Between two requests while the list is shown. */
const AGAIN_MS = 5000;

export const all = signal(/** @type {api.Repositories} */ ({ repositories: [], more: 0, outside: false }));
export const known = signal(false);
/** Why there is no list; empty: there is one, or none was asked for. */
export const trouble = signal('');

const list = new Refetch(async () => {
  try {
    all.value = await api.repositories();
    known.value = true;
    trouble.value = '';
  } catch (err) {
    trouble.value = err instanceof Error ? err.message : String(err);
  }
}, 500);

const shown = computed(() => place.value === 'repositories' || dialog.value === 'repositories');

/** The running repositories, and the sockets that are none. */
export const running = computed(() => (all.value.repositories ?? []).filter((r) => !r.problem));
export const broken = computed(() => (all.value.repositories ?? []).filter((r) => r.problem));

/** Asks again while the list is shown; the palette wants it once. */
export function startRepositories() {
  effect(() => { if (live.value && (shown.value || dialog.value === 'find')) untracked(() => list.want(true)); });
  setInterval(() => { if (!document.hidden && live.peek() && shown.peek()) list.want(); }, AGAIN_MS);
}
