// Fuzzy matches, and snippets in parts. Pure.

/** @typedef {import('../shell/api.js').SearchResult} SearchResult */
/** @typedef {{text: string, hit: boolean}} Piece */

/**
 * How well a text fits some words: every word must be in it, as a part of it, or at least as letters in this
 * order. Higher is better; 0: it does not fit.
 * @param {string} text @param {string[]} words in lower case
 */
export function fit(text, words) {
  const low = text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const at = low.indexOf(word);
    if (at >= 0) {
      sum += (at === 0 ? 60 : /[\s/_.-]/.test(low[at - 1]) ? 40 : 20) + word.length;
      continue;
    }
    if (word.length < 2) return 0;
    let from = 0, gaps = 0;
    for (const letter of word) {
      const next = low.indexOf(letter, from);
      if (next < 0) return 0;
      if (from > 0) gaps += next - from;
      from = next + 1;
    }
    if (gaps > word.length * 3) return 0; // letters that are this far apart were not meant
    sum += Math.max(1, 10 - gaps);
  }
  return sum - Math.min(9, low.length / 20);
}

/** The words of a query, for fit. @param {string} query @returns {string[]} */
export const wordsOf = (query) => query.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 12);

/** A snippet in parts. The server counts characters, not UTF-16 units. @param {string} snippet @param {[number, number][] | null} matches @returns {Piece[]} */
export function piecesOf(snippet, matches) {
  const all = Array.from(snippet);
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  for (const m of matches ?? []) {
    if (!Array.isArray(m) || !(m[0] >= at) || !(m[1] > m[0]) || m[1] > all.length) continue;
    if (m[0] > at) pieces.push({ text: all.slice(at, m[0]).join(''), hit: false });
    pieces.push({ text: all.slice(m[0], m[1]).join(''), hit: true });
    at = m[1];
  }
  if (at < all.length) pieces.push({ text: all.slice(at).join(''), hit: false });
  return pieces;
}

/** A link of the server, if it leads to a place in this page; otherwise nothing. @param {unknown} link */
export const linkOf = (link) => (typeof link === 'string' && /^#\/[\w%.~/@:!$&'()*+,;=-]*$/.test(link) ? link : '');
