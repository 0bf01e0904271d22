// Turns documents and the lead into text. Pure.

import { ago as since, plural, span } from '../shell/format.js';
import { plain } from '../shell/text.js';

/** @typedef {import('../shell/api.js').Document} Document */
/** @typedef {import('../shell/api.js').CrewLead} CrewLead */

/** A member counts as alive this long after the lead reported it; it is crew.AliveMax of the server, which a test compares. */
export const ALIVE_MS = 5 * 60_000;

/** The status of a member at a time: what was alive long ago is not known to be alive. @param {{status: string, lastAliveAt: string | null}} d @param {number} now by the server's clock */
export const statusAt = (d, now) => (d.status === 'alive' && !(now - Date.parse(d.lastAliveAt ?? '') <= ALIVE_MS) ? 'unknown' : d.status);

/**
 * The main button. It depends on the members and on what is in progress alone; it is crew.ButtonOf of the server, which a test compares.
 * @param {string[]} statuses of the members that have not expired @param {string} inProgress
 */
export function buttonOf(statuses, inProgress) {
  if (inProgress) return 'WAKING\u2026';
  if (statuses.length === 0) return 'SUMMON';
  if (statuses.includes('sleeping') || statuses.includes('unknown')) return 'WAKE';
  return statuses.includes('hatching') ? 'WAKING\u2026' : 'none';
}

/** How a member is drawn: in colour, dimmed, or as an egg. Without a connection no member counts as awake. @param {string} status @param {boolean} live @returns {'alive' | 'dim' | 'egg'} */
export const lookOf = (status, live) => (status === 'hatching' ? 'egg' : status === 'alive' && live ? 'alive' : 'dim');

/** @param {Document} d */
export const nameOf = (d) => (d.name ? plain(d.name, 64) : d.status === 'hatching' ? 'Not hatched' : plain(d.id, 64));

/** How long ago a time was; empty: it is not known. @param {string | null} iso @param {number} now in ms since 1970, by the server's clock */
export const ago = (iso, now) => since(now - Date.parse(iso ?? ''));

/** The state of a member and the age of the evidence. @param {Document} d @param {boolean} live @param {number} now */
export function evidenceOf(d, live, now) {
  const seen = ago(d.lastAliveAt, now);
  const laid = Date.parse(d.createdAt);
  if (d.status === 'hatching') return Number.isFinite(laid) ? `hatching for ${span(now - laid)}` : 'hatching';
  if (!live) return seen ? `not known; alive ${seen}` : 'not known';
  switch (statusAt(d, now)) {
    case 'alive': return seen ? `alive, ${seen}` : 'alive';
    case 'sleeping': return seen ? `asleep; alive ${seen}` : 'asleep';
    case 'unknown': return seen ? `no report; alive ${seen}` : 'no report yet';
    default: return plain(d.status, 40);
  }
}

/** @param {CrewLead} l @param {boolean} live @param {number} now */
export function leadWords(l, live, now) {
  if (!live) return 'not known';
  switch (l.state) {
    case 'asleep': return 'asleep';
    case 'waits': return `waits${l.why ? `: ${plain(l.why, 160)}` : ''}`;
    case 'starting': return 'starting';
    case 'unheard': return 'running, no report yet';
    case 'heard': return `running; reported ${ago(l.reported_at, now) || 'in this session'}`;
    default: return plain(l.state, 40);
  }
}

/** @param {CrewLead} l @param {boolean} live @returns {'alive' | 'dim' | 'half'} */
export const leadLook = (l, live) => (!live || l.state === 'asleep' || l.state === 'waits' ? 'dim' : l.state === 'heard' ? 'alive' : 'half');

/**
 * The state of the crew, as one sentence.
 * @param {{inProgress: string, size: number}} crew @param {CrewLead} lead
 * @param {{alive: number, sleeping: number, unknown: number, hatching: number, all: number}} n @param {boolean} live
 */
export function headline(crew, lead, n, live) {
  const who = plain(lead.agent, 60) || 'the lead';
  if (!live) return 'No connection: it is not known which members are awake.';
  switch (crew.inProgress) {
    case 'summoning': return n.hatching > 0 ? `${plural(n.hatching, 'egg')} to hatch. ${who} calls them into being.` : `${who} has called them all.`;
    case 'asking': return `Asking ${who} who is awake\u2026`;
    case 'waking': return `${who} wakes them, one by one\u2026`;
    default:
  }
  if (n.all === 0) return lead.agent ? `The crew has no members yet. ${who} can summon ${plural(crew.size, 'agent')}.` : 'This team has no lead yet.';
  const parts = [];
  if (n.alive > 0) parts.push(`${n.alive} awake`);
  if (n.sleeping > 0) parts.push(`${n.sleeping} asleep`);
  if (n.unknown > 0) parts.push(`${n.unknown} without a report`);
  if (n.hatching > 0) parts.push(`${n.hatching} hatching`);
  return n.alive === n.all ? (n.all === 1 ? 'The only member is awake.' : `All ${n.all} are awake.`) : `${parts.join(', ')}.`;
}

/** The kinds of notices. @type {Record<string, string>} */
export const NOTICES = { fault: 'not understood', ignored: 'ignored', refused: 'refused', silent: 'silent', lead: 'the lead' };

/** A session's name, short. @param {string | null} id */
export const shortSession = (id) => (id && /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(id) ? id.slice(0, 8) : plain(id, 40));
