// The output of one session, kept up to date.
//
// It starts near the end, follows the stream, and continues at its offset after a broken
// connection. It keeps a limited number of lines and counts the dropped ones, so that the page
// can say so.

import * as api from '../shell/api.js';
import { Terminal } from './ansi.js';
import { polls } from '../shell/connection.js';
import { SILENCE_MS_MAX, StreamRefused, readStream } from '../shell/sse.js';

/** @typedef {import('./ansi.js').Line & {key: number}} Line */

/** Bytes from the end at which the output starts. */
export const TAIL_BYTES = 128 * 1024;
/** Bytes that each "Go further back" adds. */
const EARLIER_BYTES = 512 * 1024;
/** Lines kept; more make the page slow. */
export const LINES_MAX = 5000;
/** Bytes shown from the place on that a link leads to. */
const SPOT_BYTES = 256 * 1024;
const RETRY_MS = 1500;
/** Least time from one poll to the next, where streams are held back. */
const POLL_GAP_MS = 250;

export class Output {
  terminal = new Terminal();
  /** @type {Line[]} */ lines = [];
  dropped = 0;      // lines dropped at the top
  key = 0;          // key of the next line
  start = -1;       // offset of the first byte kept
  end = 0;          // offset after the last byte kept
  over = false;
  outcome = '';
  why = '';
  missing = false;  // the server has no output for it
  version = 0;      // increases when the lines start again from the beginning
  cut = false;      // it began at a place that a link leads to, and more follows
  line = new AbortController();

  /** @param {string} session @param {() => void} changed called after anything changed, often @param {number} [from] begins at this offset, and ends some time after it */
  constructor(session, changed, from = -1) {
    this.session = session;
    this.changed = changed;
    this.most = from >= 0 ? SPOT_BYTES : Infinity;
    void this.#follow(from >= 0 ? { from } : { tail: TAIL_BYTES });
  }

  #reset() {
    this.terminal = new Terminal();
    this.lines = [];
    this.dropped = 0;
    this.key = 0;
    this.start = -1;
    this.end = 0;
    this.over = false;
    this.version++;
  }

  /** The unfinished line. */
  get partial() { return this.terminal.line; }

  close() { this.line.abort(); }

  /** Loads earlier output. */
  earlier() {
    if (this.start <= 0) return;
    const from = Math.max(0, this.start - EARLIER_BYTES);
    this.line.abort();
    this.line = new AbortController();
    this.#reset();
    if (this.most < Infinity) this.most += EARLIER_BYTES;
    void this.#follow({ from });
  }

  /** @param {{from: number} | {tail: number}} where */
  async #follow(where) {
    const { signal } = this.line;
    while (!signal.aborted && !this.over) {
      let ended = false;
      try {
        await readStream(api.outputURL(this.session, where), { signal, ...(polls.peek() && { firstMs: SILENCE_MS_MAX }), onMessage: (m) => this.#take(m) });
        ended = true;
      } catch (err) {
        if (signal.aborted) return;
        if (err instanceof StreamRefused && err.status === 404) {
          this.missing = true;
          this.changed();
          return;
        }
      }
      if (this.start >= 0) where = { from: this.end };
      await new Promise((go) => { setTimeout(go, ended && polls.peek() ? POLL_GAP_MS : RETRY_MS); });
    }
  }

  /** @param {import('../shell/sse.js').Message} message */
  #take(message) {
    const data = JSON.parse(message.data);
    if (message.event === 'end') {
      this.over = true;
      this.outcome = String(data.outcome ?? '');
      this.why = String(data.why ?? '');
    } else if (message.event === 'output') {
      if (data.end <= this.end && this.start >= 0) return; // a repetition
      if (this.start < 0) this.start = data.offset;
      this.end = data.end;
      for (const line of this.terminal.write(data.text)) this.lines.push({ ...line, key: this.key++ });
      if (this.lines.length > LINES_MAX) {
        const extra = this.lines.length - LINES_MAX;
        this.lines.splice(0, extra);
        this.dropped += extra;
      }
      if (this.end - this.start >= this.most || (this.most < Infinity && this.lines.length >= LINES_MAX / 2)) { this.cut = true; this.line.abort(); }
    }
    this.changed();
  }
}
