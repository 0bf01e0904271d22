// Requests a view again: at most one request of a kind at a time, one more if something changed
// meanwhile, and fewer if the server is slow.

import { answers } from './connection.js';

const REFRESH_AFTER_MS = 60;
/** Changes that come together gather for this long: one frame. */
const GATHER_MS = 16;
/** Pause after an answer, as a multiple of the time it took. */
const REST_FACTOR = 2;
const REST_MAX_MS = 3000;

export class Refetch {
  /** @param {() => Promise<void>} ask @param {number} [restMs] at least so long from an answer to the next request */
  constructor(ask, restMs = REFRESH_AFTER_MS) {
    this.ask = ask;
    this.wanted = false;
    this.busy = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.least = restMs;
    this.free = 0; // until then it rests, on the clock of performance.now
  }

  want(soon = false) {
    this.wanted = true;
    if (this.busy) return;
    if (soon) clearTimeout(this.timer);
    else if (this.timer) return;
    this.timer = setTimeout(() => this.#go(), soon ? 0 : Math.max(GATHER_MS, this.free - performance.now()));
  }

  async #go() {
    this.timer = undefined;
    if (!answers.peek()) return; // the feed requests everything again after a lost connection
    this.wanted = false;
    this.busy = true;
    const began = performance.now();
    try { await this.ask(); } catch { /* the line itself tells */ }
    this.busy = false;
    const ended = performance.now();
    this.free = ended + Math.min(REST_MAX_MS, this.least + (ended - began) * REST_FACTOR);
    if (this.wanted) this.want();
  }
}
