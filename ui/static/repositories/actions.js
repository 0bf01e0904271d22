// Goes to the page of another repository.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';
import { dialog } from '../shell/router.js';
import { all } from './state.js';
import { localPage, pageOf } from './words.js';

/** The repository that is being opened: its id. */
export const opening = signal('');

/** @param {api.Repository} r */
export async function openRepository(r) {
  const { href, sign } = pageOf(r, all.peek().outside);
  if (r.here) { dialog.value = ''; return; }
  if (!href || opening.peek()) return;
  opening.value = r.id;
  let to = href;
  if (sign) {
    try {
      const url = localPage((await api.repositoryLogin(r.id)).url);
      if (url && new URL(url).origin === new URL(href).origin) to = url;
    } catch { /* this browser may be signed in there already; if not, that page says how */ }
  }
  opening.value = '';
  location.assign(to);
}
