// Asking the server again: at most one question of a kind is under way, what changed
// meanwhile is asked for once more, and a slow server is asked less often.

import { live } from './connection.js';

const REFRESH_AFTER_MS = 60;
/** After an answer that took a while, so many times as long nothing is asked. */
const REST_FACTOR = 2;
const REST_MAX_MS = 3000;

export class Question {
  /** @param {() => Promise<void>} ask @param {number} [restMs] at least so long between two of them */
  constructor(ask, restMs = REFRESH_AFTER_MS) {
    this.ask = ask;
    this.wanted = false;
    this.busy = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.least = restMs;
    this.rest = restMs;
  }

  want(soon = false) {
    this.wanted = true;
    if (this.busy) return;
    if (soon) clearTimeout(this.timer);
    else if (this.timer) return;
    this.timer = setTimeout(() => this.#go(), soon ? 0 : this.rest);
  }

  async #go() {
    this.timer = undefined;
    if (!live.peek()) return; // the line asks again when it is back
    this.wanted = false;
    this.busy = true;
    const began = performance.now();
    try { await this.ask(); } catch { /* the line itself tells */ }
    this.busy = false;
    this.rest = Math.min(REST_MAX_MS, this.least + (performance.now() - began) * REST_FACTOR);
    if (this.wanted) this.want();
  }
}
