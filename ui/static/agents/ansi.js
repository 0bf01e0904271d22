// A terminal's stream as plain lines.
//
// Agents colour their words, move the cursor and draw progress bars. Nothing of
// that is obeyed here: escape sequences are taken out whole, a line that was
// drawn over says how often, and what remains is text. The stream may be cut
// at any byte, also in the middle of a sequence.

import { reveal } from '../shell/text.js';

/** Characters of one line that are shown; the rest is counted. A line may be 20 MiB long, a page may not. */
export const LINE_CHARS_MAX = 4000;

/** A sequence longer than this is no sequence: a lone ESC ] must not swallow the rest of the session. */
const SEQUENCE_CHARS_MAX = 4096;

/**
 * @typedef {object} Line
 * @property {string} text what is shown
 * @property {number} more characters that were cut off at the end
 * @property {number} redrawn how often a carriage return drew over it
 */

/** @returns {Line} */
const empty = () => ({ text: '', more: 0, redrawn: 0 });

const SPECIAL = /[\n\r\b\u001b\u009b\u0090\u009d]/g;

export class Terminal {
  constructor() {
    /** @type {'text' | 'escape' | 'csi' | 'string' | 'stringEscape'} */
    this.mode = 'text';
    this.sequence = 0;     // characters of the sequence we are in
    this.returned = false; // a carriage return stands at the end of what we have
    this.line = empty();   // the line that is still being written
  }

  /**
   * @param {string} chunk
   * @returns {Line[]} the lines that this chunk finished
   */
  write(chunk) {
    /** @type {Line[]} */
    const done = [];
    let at = 0;
    while (at < chunk.length) {
      at = this.mode === 'text' ? this.#text(chunk, at, done) : this.#sequence(chunk, at);
    }
    return done;
  }

  /** @param {string} chunk @param {number} at @param {Line[]} done */
  #text(chunk, at, done) {
    SPECIAL.lastIndex = at;
    const found = SPECIAL.exec(chunk);
    const end = found ? found.index : chunk.length;
    if (end > at) this.#put(chunk.slice(at, end));
    if (!found) return end;
    switch (chunk[end]) {
      case '\n':
        done.push(this.line);
        this.line = empty();
        this.returned = false;
        break;
      case '\r': this.returned = true; break;
      case '\b': this.line.text = this.line.text.slice(0, -1); break;
      case '\u001b': this.#enter('escape'); break;
      case '\u009b': this.#enter('csi'); break;
      default: this.#enter('string');
    }
    return end + 1;
  }

  /** @param {string} chunk @param {number} at @returns {number} */
  #sequence(chunk, at) {
    const c = chunk[at];
    const code = chunk.charCodeAt(at);
    if (++this.sequence > SEQUENCE_CHARS_MAX || c === '\n') {
      this.mode = 'text'; // it never ended: go on as text, from here
      return at;
    }
    switch (this.mode) {
      case 'escape':
        if (c === '[') this.mode = 'csi';
        else if (c === ']' || c === 'P' || c === 'X' || c === '^' || c === '_') this.mode = 'string';
        else if (code < 0x20 || code > 0x2f) this.mode = 'text'; // one more character ended it
        return at + 1;
      case 'csi':
        if (code >= 0x40 && code <= 0x7e) this.mode = 'text';
        return at + 1;
      case 'stringEscape':
        this.mode = c === '\\' ? 'text' : 'string';
        return at + 1;
      default:
        if (c === '\u0007' || c === '\u009c') this.mode = 'text';
        else if (c === '\u001b') this.mode = 'stringEscape';
        return at + 1;
    }
  }

  /** @param {'escape' | 'csi' | 'string'} mode */
  #enter(mode) {
    this.mode = mode;
    this.sequence = 0;
  }

  /** @param {string} text */
  #put(text) {
    const line = this.line;
    if (this.returned) {
      this.returned = false;
      if (line.text !== '') line.redrawn++;
      line.text = '';
      line.more = 0;
    }
    const room = LINE_CHARS_MAX - line.text.length;
    if (room > 0) line.text += reveal(text.slice(0, room)).replaceAll('\u2409', '    ');
    if (text.length > room) line.more += text.length - Math.max(0, room);
  }
}
