// Formats numbers and times. Pure: the caller passes the time.

/** @param {number} n */
export const count = (n) => Math.round(n).toLocaleString('en-GB');

/**
 * A duration in at most two units: 4s, 12m 05s, 3h 20m, 2d 4h.
 * @param {number} ms
 */
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor(s / 3600) % 24}h`;
}

/**
 * A duration in one unit, for lists that are glanced at: now, 12m, 3h, 2d. It changes once a minute.
 * @param {number} ms
 */
export function brief(ms) {
  const m = Math.floor(Math.max(0, ms) / 60_000);
  return m < 1 ? 'now' : m < 60 ? `${m}m` : m < 1440 ? `${Math.floor(m / 60)}h` : `${Math.floor(m / 1440)}d`;
}

/** How long ago something was, in one unit. @param {number} ms */
export function ago(ms) {
  const s = Math.floor(ms / 1000);
  if (!Number.isFinite(s)) return '';
  return s < 1 ? 'just now' : s < 60 ? `${s}s ago` : `${brief(ms)} ago`;
}

/** The time of day, with the day if it is not today. @param {number} ms @param {number} now */
export const shortMoment = (ms, now) => (!Number.isFinite(ms) ? '\u2013' : new Date(ms).toDateString() === new Date(now).toDateString() ? shortFormat.format(ms) : `${dayFormat.format(ms)} ${shortFormat.format(ms)}`);

/**
 * The age of a piece of evidence; in milliseconds below one second.
 * @param {number} ms
 */
export const age = (ms) => (ms < 1000 ? `${Math.max(0, Math.round(ms))}ms` : span(ms));

/** @param {string | null | undefined} iso @returns {number} milliseconds since 1970, or NaN */
export const when = (iso) => (iso ? Date.parse(iso) : NaN);

const clockFormat = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const shortFormat = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short' });

/** @param {number} ms */
export const clock = (ms) => (Number.isFinite(ms) ? clockFormat.format(ms) : '\u2013');

/** @param {number} ms */
export const shortClock = (ms) => (Number.isFinite(ms) ? shortFormat.format(ms) : '\u2013');

/**
 * The time of day, with the date if it is not today.
 * @param {number} ms @param {number} now
 */
export function moment(ms, now) {
  if (!Number.isFinite(ms)) return '\u2013';
  return new Date(ms).toDateString() === new Date(now).toDateString() ? clock(ms) : `${dayFormat.format(ms)} ${clock(ms)}`;
}

/** Memory and disk, in the units of fairlead.yaml. @param {number} bytes */
export const bulk = (bytes) => (bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`);

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(bytes < 10240 ? 1 : 0)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** @param {number} n */
export function tokens(n) {
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

/** @param {number} usd */
export const money = (usd) => `$${usd.toFixed(usd > 0 && usd < 0.01 ? 4 : 2)}`;

/** @param {number} n @param {string} one @param {string} [many] */
export const plural = (n, one, many = one + 's') => `${count(n)} ${n === 1 ? one : many}`;
