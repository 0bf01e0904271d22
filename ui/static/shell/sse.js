// Server-sent events over fetch.
//
// EventSource sends no header, so it could not sign in. It also hides two things that the page needs:
// the status of a refused request, and the pings that tell an idle connection from a dead one. The parser accepts text cut at any place.

/** Longest event, in UTF-16 units; a longer one ends the stream with an error. */
const EVENT_CHARS_MAX = 32 * 1024 * 1024;

/** The server pings every 15 s. After two and a half missed pings the connection is dead. */
export const SILENCE_MS_MAX = 38_000;
/** The server writes at once when a stream begins. If nothing has come by then, something between holds the stream back. */
export const FIRST_MS_MAX = 8000;

import { proof, refused } from './signin.js';

/** @typedef {{event: string, id: string, data: string}} Message */

export class Parser {
  constructor() {
    /** @type {string[]} */ this.parts = []; // the line that is not finished yet
    this.held = 0;
    /** @type {string[]} */ this.data = [];
    this.event = '';
    this.id = '';
  }

  /** @param {string} text @returns {Message[]} */
  write(text) {
    /** @type {Message[]} */
    const out = [];
    let from = 0;
    for (;;) {
      const end = text.indexOf('\n', from);
      if (end < 0) break;
      this.parts.push(text.slice(from, end));
      const line = this.parts.join('').replace(/\r$/, '');
      this.parts = [];
      this.held = 0;
      this.#line(line, out);
      from = end + 1;
    }
    const rest = text.slice(from);
    if (rest) {
      this.parts.push(rest);
      this.held += rest.length;
      if (this.held > EVENT_CHARS_MAX) throw new Error('one event of the stream is longer than this page accepts');
    }
    return out;
  }

  /** @param {string} line @param {Message[]} out */
  #line(line, out) {
    if (line === '') {
      if (this.data.length > 0) out.push({ event: this.event || 'message', id: this.id, data: this.data.join('\n') });
      this.data = [];
      this.event = '';
      return;
    }
    if (line.startsWith(':')) return; // a ping
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.data.push(value);
    else if (field === 'event') this.event = value;
    else if (field === 'id') this.id = value;
  }
}

/** The server answered with something else than a stream. */
export class StreamRefused extends Error {
  /** @param {number} status */
  constructor(status) {
    super(`the server answered ${status}`);
    this.status = status;
  }
}

/** A proxy holds the stream back, as one does that buffers answers. */
export class HeldBack extends Error {
  constructor() { super('the stream is held back'); }
}

/**
 * Reads one stream until it ends. Returns if the server closes it. Throws if the connection breaks,
 * if it is silent for too long, or if the signal aborts. onOpen is called when the first bytes are there: headers
 * prove nothing, because a proxy may send them and hold back the rest.
 * @param {string} url
 * @param {{signal: AbortSignal, onOpen?: () => void, onMessage: (m: Message) => void, silenceMs?: number, firstMs?: number}} options
 */
export async function readStream(url, { signal, onOpen, onMessage, silenceMs = SILENCE_MS_MAX, firstMs = FIRST_MS_MAX }) {
  signal.throwIfAborted();
  const line = new AbortController();
  const stop = () => line.abort(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let watchdog;
  const restart = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => line.abort(new Error('no data for too long')), silenceMs);
  };
  try {
    watchdog = setTimeout(() => line.abort(new HeldBack()), firstMs);
    const sent = proof();
    const response = await fetch(url, { headers: { Accept: 'text/event-stream', ...sent }, signal: line.signal, cache: 'no-store' });
    const type = response.headers.get('content-type') ?? '';
    if (!response.ok || !response.body || !type.startsWith('text/event-stream')) {
      await response.body?.cancel();
      if (response.status === 401) refused(sent.Authorization);
      throw new StreamRefused(response.status);
    }
    let opened = false;
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const parser = new Parser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      restart();
      if (!opened) { opened = true; onOpen?.(); }
      for (const message of parser.write(decoder.decode(value, { stream: true }))) onMessage(message);
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener('abort', stop);
    line.abort();
  }
}
