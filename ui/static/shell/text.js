// Makes foreign text safe to display.
//
// The framework already escapes markup. What remains are characters that reorder a line, hide in
// it, or move a cursor. Each is replaced by a visible symbol; none is dropped silently.

/** Longest foreign text on one line of the page, in UTF-16 units. */
export const LINE_SHOWN_MAX = 400;

// Control characters, soft hyphen, direction marks and overrides, joiners without a use in plain
// text, invisible operators, tag characters, lone surrogates. The zero-width joiner and the
// variation selectors stay, because emoji need them.
const DECEPTIVE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\uffa0\ufff9-\ufffb]|\udb40[\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** @type {Record<number, string>} */
const NAMES = {
  0x061c: 'ALM', 0x200b: 'ZWSP', 0x200e: 'LRM', 0x200f: 'RLM',
  0x202a: 'LRE', 0x202b: 'RLE', 0x202c: 'PDF', 0x202d: 'LRO', 0x202e: 'RLO',
  0x2066: 'LRI', 0x2067: 'RLI', 0x2068: 'FSI', 0x2069: 'PDI', 0xfeff: 'BOM',
};

/** @param {string} found */
function unmask(found) {
  const code = /** @type {number} */ (found.codePointAt(0));
  if (code < 0x20) return String.fromCharCode(0x2400 + code); // the pictures of the controls: ␛ for escape
  if (code === 0x7f) return '\u2421';
  return `\u27e8${NAMES[code] ?? 'U+' + code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}

/**
 * Replaces every deceptive character by a visible symbol, line feeds and tabs included.
 * @param {string} text
 */
export function reveal(text) {
  return text.replace(DECEPTIVE, unmask);
}

/**
 * Any foreign value as one line of text; a longer one is cut and ends in an ellipsis.
 * @param {unknown} value
 * @param {number} [max] in UTF-16 units
 */
export function plain(value, max = LINE_SHOWN_MAX) {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > max ? reveal(text.slice(0, max)) + '\u2026' : reveal(text);
}

/**
 * Foreign text of several lines, to be shown with white-space: pre-wrap; a longer one is cut and ends in an ellipsis.
 * @param {string} text
 * @param {number} [max] in UTF-16 units
 */
export function lines(text, max = Infinity) {
  return (text.length > max ? text.slice(0, max) + '\u2026' : text).split('\n').map((l) => reveal(l.replace(/\t/g, '  '))).join('\n');
}
