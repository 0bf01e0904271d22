// Turns terminal output into plain lines.
//
// Agents use colours, cursor movement and progress bars. The page obeys none of them: it removes
// escape sequences, counts how often a line was overwritten, and shows the rest as text. The
// stream may be cut at any byte, also within a sequence.

import { reveal } from '../shell/text.js';

/** Characters shown of one line; the rest is counted. A line may have 20 MiB, which no page can show. */
export const LINE_CHARS_MAX = 4000;

/** A longer sequence is treated as text: an unfinished ESC ] must not hide the rest of the session. */
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
    this.sequence = 0;     // characters of the current escape sequence
    this.returned = false; // the input so far ends in a carriage return
    this.line = empty();   // the unfinished line
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
      this.mode = 'text'; // the sequence never ended: treat the rest as text
      return at;
    }
    switch (this.mode) {
      case 'escape':
        if (c === '[') this.mode = 'csi';
        else if (c === ']' || c === 'P' || c === 'X' || c === '^' || c === '_') this.mode = 'string';
        else if (code < 0x20 || code > 0x2f) this.mode = 'text'; // this character ends the sequence
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
