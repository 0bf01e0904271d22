// Turns an agent's values into text and colours. Pure.

import { providerWords } from '../history/words.js';
import { shortClock } from '../shell/format.js';
import { statusOf } from '../shell/status.js';

/** @typedef {import('../shell/api.js').Agent} Agent */

/** Seed 000: the badge depends on current_state alone. @param {Agent} a */
export const running = (a) => a.current_state === 'continuous' || a.current_state === 'run_once' || a.current_state === 'run_cleanup';

/** Does it work at present, as its status says? @param {Agent} a */
export const active = (a) => ['running', 'stopping', 'waiting'].includes(statusOf(a, false, 0));

/** @type {Record<string, string>} */
export const STATE_WORDS = { continuous: 'keep running', run_once: 'run once', run_cleanup: 'cleanup session', pause: 'stop' };

/** @type {Record<string, string>} */
const DOING = { continuous: 'Runs session after session', run_once: 'Runs a single session', run_cleanup: 'Runs a cleanup session' };

/**
 * The difference between the desired and the current state, as one phrase; empty if there is none.
 * @param {Agent} a @param {boolean} hold @param {number} nowMs @returns {string}
 */
export function intent(a, hold, nowMs) {
  const want = a.desired_state;
  if (!(want in STATE_WORDS)) return `desired state is not known: ${want}`;
  const retry = a.retry_at ? Date.parse(a.retry_at) - nowMs : NaN;
  if (a.session?.ending) return `ending this session: ${a.session.ending}`;
  if (a.session?.provider) return providerWords(a.session.provider);
  if (a.limited_until && Date.parse(a.limited_until) > nowMs) return `rate limited until ${shortClock(Date.parse(a.limited_until))}`;
  if (running(a)) {
    if (Number.isFinite(retry)) return retry > 0 ? `tries again in ${Math.ceil(retry / 1000)} s` : 'tries again now';
    if (hold && a.desired_state !== 'pause') return 'held after this session';
    if (want === a.current_state) return '';
    if (want === 'pause') return 'stopping after this session';
    return `then: ${STATE_WORDS[want]}`;
  }
  if (want === 'pause') return '';
  if (hold) return `held; ${want === 'continuous' ? 'starts' : STATE_WORDS[want]} on release`;
  if (Number.isFinite(retry)) return retry > 0 ? `tries again in ${Math.ceil(retry / 1000)} s` : 'tries again now';
  if (a.waiting_behind) return `waiting behind ${a.waiting_behind}`;
  return want === 'continuous' ? 'starting' : `starting: ${STATE_WORDS[want]}`;
}

/** What the agent does now, as one sentence. @param {Agent} a */
export function doing(a) {
  if (running(a)) return a.session || a.loop === 'foreign' ? DOING[a.current_state] : DOING[a.current_state] + '; no session right now';
  if (!a.session) return 'Idle';
  const of = String(a.session.for ?? '');
  if (of === 'channels') return 'Takes part in a channel';
  if (of === 'lead') return 'Leads the crew';
  if (of.startsWith('run/')) return `Works on a step of ${of.split('/')[1]}`;
  if (of.startsWith('dispatch/')) return 'Works for a dispatch';
  return 'A session is still open';
}

/**
 * Why a person should look at this agent; empty if there is no reason.
 * @param {Agent} a @returns {string[]}
 */
export function concerns(a) {
  const list = [];
  if (a.doubt) list.push(a.doubt);
  if (a.gave_up) list.push(`gave up: ${a.note || 'its sessions failed'}`);
  else if (a.failures) list.push(a.failures === 1 ? 'the last session failed' : `${a.failures} sessions failed in a row`);
  if (a.waiting_behind && a.desired_state !== 'pause') list.push(`waiting behind ${a.waiting_behind}`);
  if (running(a) !== (a.badge === 'RUNNING')) list.push(`the badge says ${a.badge}, current_state says ${a.current_state}`);
  return list;
}

/**
 * What an agent's wall does not hold, and its holes; empty: not known. @param {Agent} a @returns {string[]}
 */
export function wallWords(a) {
  if (!a.wall) return [];
  if (a.wall === 'nothing') return ['no wall: its program can do what your user can'];
  const unheld = a.unheld ?? [];
  return [`wall of ${a.wall}${unheld.length > 0 ? `, not held: ${unheld.join(', ')}` : ''}`, ...(a.holes ?? []).map((hole) => `hole: ${hole}`)];
}

/** Hosts shown of one agent, the newest first. */
const CONTACTS_MAX = 8;

/** What an agent reached in the network, and what it was refused. @param {Agent} a @returns {string[]} */
export function contactWords(a) {
  const all = [...(a.contacts ?? [])].reverse();
  const list = all.slice(0, CONTACTS_MAX).map((c) => `${c.host}: ${[c.reached > 0 && `reached ${c.reached}\u00d7`, c.refused > 0 && `refused ${c.refused}\u00d7`].filter(Boolean).join(', ')}`);
  return all.length > CONTACTS_MAX ? [...list, `and ${all.length - CONTACTS_MAX} more`] : list;
}

/** How a session ended, and how that looks. @type {Record<string, {label: string, look: string, mark: string}>} */
const OUTCOMES = {
  '': { label: 'running', look: 'live', mark: '\u25b6' },
  ok: { label: 'ok', look: 'ok', mark: '\u2713' },
  failed: { label: 'failed', look: 'failed', mark: '\u2715' },
  lost: { label: 'lost', look: 'lost', mark: '?' },
  interrupted: { label: 'interrupted', look: 'cut', mark: '\u2013' },
  conversation_lost: { label: 'began anew', look: 'cut', mark: '\u2013' },
  withdrawn: { label: 'withdrawn', look: 'cut', mark: '\u2013' },
};

/** @param {string | undefined} outcome */
export const outcomeOf = (outcome) => OUTCOMES[outcome ?? ''] ?? { label: outcome ?? '', look: 'ok', mark: '\u00b7' };
