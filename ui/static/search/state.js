// The query of the palette, and the results for it.

import * as api from '../shell/api.js';
import { batch, signal } from '../shell/lib.js';

/** @typedef {import('../shell/api.js').SearchResult} SearchResult */

/** Time without typing after which a search starts. */
const TYPED_MS = 120;
/** Results per request. */
const PAGE = 20;
/** Longest query; the server's limit. */
export const QUERY_MAX = 400;

export const query = signal('');
export const results = signal(/** @type {SearchResult[]} */ ([]));
export const found = signal({ of: '', busy: false, wrong: '', stopped: '', next: 0, behind: 0, ms: 0 });

let timer = 0;
let line = new AbortController();

/** @param {string} of @param {number} [before] continues after the results so far */
async function ask(of, before = 0) {
  line.abort();
  line = new AbortController();
  const { signal: mine } = line;
  found.value = { ...found.peek(), busy: true };
  try {
    const page = await api.search({ q: of, limit: PAGE, ...(before > 0 && { before }) }, mine);
    if (mine.aborted) return;
    batch(() => {
      results.value = before > 0 ? [...results.peek(), ...(page.results ?? [])] : page.results ?? [];
      found.value = { of, busy: false, wrong: '', stopped: page.stopped, next: page.next, behind: page.index.behind, ms: page.took_ms };
    });
  } catch (err) {
    if (mine.aborted) return;
    batch(() => {
      if (before === 0) results.value = [];
      found.value = { of, busy: false, wrong: err instanceof Error ? err.message : String(err), stopped: '', next: 0, behind: 0, ms: 0 };
    });
  }
}

/** @param {string} text */
export function type(text) {
  query.value = text.slice(0, QUERY_MAX);
  clearTimeout(timer);
  const of = query.value.trim();
  if (!/[\p{L}\p{N}]/u.test(of)) { stop(); return; }
  timer = setTimeout(() => void ask(of), TYPED_MS);
}

export const moreResults = () => { const f = found.peek(); if (f.next > 0 && !f.busy) void ask(f.of, f.next); };

/** Forgets the results; the query stays. */
export function stop() {
  clearTimeout(timer);
  line.abort();
  batch(() => {
    results.value = [];
    found.value = { of: '', busy: false, wrong: '', stopped: '', next: 0, behind: 0, ms: 0 };
  });
}
