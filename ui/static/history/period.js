// The times to which History can be narrowed. Pure.

/** The choices, and their words. @type {[string, string][]} */
export const PERIODS = [['', 'All'], ['last-hour', 'Last hour'], ['last-night', 'Last night'], ['yesterday', 'Yesterday'], ['since-you-looked', 'Since you looked']];

/** The hours of last night, as the command line has them. */
const EVENING = 18, MORNING = 8;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/;

/**
 * The time that a word of an address names: one of PERIODS, or two local times as in 2026-11-24T22:00..2026-11-25T07:00, of
 * which one may be left out.
 * @param {string} word @param {number} nowMs @param {number} seenMs when the person looked last; 0: not known
 * @returns {{from: number, to: number} | null} to: Infinity if it goes on; null: it names none
 */
export function periodOf(word, nowMs, seenMs) {
  const at = (/** @type {number} */ day, /** @type {number} */ hour) => { const d = new Date(nowMs); return new Date(d.getFullYear(), d.getMonth(), d.getDate() + day, hour).getTime(); };
  switch (word) {
    case 'last-hour': return { from: nowMs - 3600_000, to: Infinity };
    case 'last-night': return { from: at(-1, EVENING), to: at(0, MORNING) };
    case 'yesterday': return { from: at(-1, 0), to: at(0, 0) };
    case 'since-you-looked': return { from: seenMs, to: Infinity };
  }
  const ends = word.split('..');
  if (ends.length !== 2 || !ends.some(Boolean) || !ends.every((e) => e === '' || TIME.test(e))) return null;
  const [from, to] = [Date.parse(ends[0] || '1970-01-01T00:00'), ends[1] ? Date.parse(ends[1]) : Infinity];
  return from <= to ? { from, to } : null; // false for a date that does not exist
}

/** Is this a word for a time? @param {string} word */
export const isPeriod = (word) => word !== '' && periodOf(word, Date.now(), 0) !== null;
