// The status of an agent: one word, derived from evidence. Pure. The same table as read/view/status.go;
// reducer_test.go in internal/test/uitest compares the two.

/** @typedef {import('./api.js').Agent} Agent */
/** @typedef {'unknown' | 'stopping' | 'waiting' | 'rate_limited' | 'running' | 'backing_off' | 'failed' | 'idle'} Status */
/** @typedef {'' | 'paused' | 'held' | 'limit' | 'queued' | 'disabled'} IdleReason */

/** @type {Record<Status, string>} */
export const STATUS_WORDS = {
  unknown: 'UNKNOWN', stopping: 'STOPPING', waiting: 'WAITING', rate_limited: 'RATE LIMITED',
  running: 'RUNNING', backing_off: 'BACKING OFF', failed: 'FAILED', idle: 'IDLE',
};

/** The same without colour: a shape for each status, as runs and tasks have them. @type {Record<Status, string>} */
export const STATUS_MARKS = {
  unknown: '!', stopping: '\u25a0', waiting: '?', rate_limited: '\u2016', running: '\u25b6', backing_off: '\u21bb', failed: '\u2715', idle: '\u25cb',
};

/** The first status that applies. @param {Agent} a @param {boolean} stopping the daemon stops @param {number} nowMs @returns {Status} */
export function statusOf(a, stopping, nowMs) {
  const s = a.session;
  const works = a.badge === 'RUNNING'; // as its loop says
  const own = a.loop === 'foreign' && !a.program;
  const there = (own && works) || (!!s && s.phase === 'running' && (s.kind !== 'foreign' || works || a.current_state === 'unknown'));
  const others = (a.sessions ?? []).filter((o) => (o.slot ?? 0) > 0 && o.phase === 'running');
  if (a.certainty === 'unknown' || (own && a.current_state === 'unknown')) return 'unknown';
  if (s?.ending || ((there || others.length) && stopping)) return 'stopping';
  if (there && works && a.desired_state === 'pause' && (own || s?.for === 'control')) return 'stopping';
  if (a.asks) return 'waiting';
  if (a.limited_until && Date.parse(a.limited_until) > nowMs) return 'rate_limited';
  if (there) return 'running';
  if (others.length) return others.some((o) => !o.ending) ? 'running' : 'stopping';
  if (a.retry_at) return 'backing_off';
  if (a.gave_up) return 'failed';
  return 'idle';
}

/** Why nothing runs although nothing is wrong; empty for every other status. @param {Agent} a @param {Status} status @returns {IdleReason} */
export function idleReason(a, status) {
  if (status !== 'idle') return '';
  if (a.disabled) return 'disabled';
  if (a.over_limit) return 'limit';
  if (a.session && a.session.phase !== 'running') return 'queued';
  if ((a.sessions ?? []).some((o) => (o.slot ?? 0) > 0)) return 'queued';
  if (a.held) return 'held';
  return a.waiting_behind || a.desired_state !== 'pause' ? 'queued' : 'paused';
}
