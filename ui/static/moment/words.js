// The words of the moment. Pure.

import { span } from '../shell/format.js';

/** How long ago a moment was. @param {number} at @param {number} now in ms since 1970 */
export const ago = (at, now) => (now - at < 1000 ? 'just now' : `${span(now - at)} ago`);

/** A time as a field for date and time wants it: local, without a zone. @param {number} ms */
export function fieldTime(ms) {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return '';
  const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}
