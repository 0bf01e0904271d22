// From documents and the lead to the words they are shown with. Pure.

import { plural, span } from '../shell/format.js';
import { plain } from '../shell/text.js';

/** @typedef {import('../shell/api.js').Document} Document */
/** @typedef {import('../shell/api.js').CrewLead} CrewLead */

/** How somebody looks: in full colour, dimmed, or as an egg. A page that is cut off knows nobody to be awake. @param {string} status @param {boolean} live @returns {'alive' | 'dim' | 'egg'} */
export const lookOf = (status, live) => (status === 'hatching' ? 'egg' : status === 'alive' && live ? 'alive' : 'dim');

/** @param {Document} d */
export const nameOf = (d) => (d.name ? plain(d.name, 64) : d.status === 'hatching' ? 'Somebody' : plain(d.id, 64));

/** How long ago, in one unit: who was seen hours ago is not counted in seconds. @param {string | null} iso @param {number} now in ms since 1970, by the server's clock */
export function ago(iso, now) {
  const at = iso ? Date.parse(iso) : NaN;
  if (!Number.isFinite(at)) return '';
  const s = Math.floor((now - at) / 1000);
  if (s < 1) return 'just now';
  return s < 60 ? `${s}s ago` : s < 3600 ? `${Math.floor(s / 60)}m ago` : s < 86400 ? `${Math.floor(s / 3600)}h ago` : `${Math.floor(s / 86400)}d ago`;
}

/** What is known of somebody, and since when. @param {Document} d @param {boolean} live @param {number} now */
export function evidenceOf(d, live, now) {
  const seen = ago(d.lastAliveAt, now);
  const laid = Date.parse(d.createdAt);
  if (d.status === 'hatching') return Number.isFinite(laid) ? `hatching for ${span(now - laid)}` : 'hatching';
  if (!live) return seen ? `not known; alive ${seen}` : 'not known';
  switch (d.status) {
    case 'alive': return seen ? `alive, ${seen}` : 'alive';
    case 'sleeping': return seen ? `asleep; alive ${seen}` : 'asleep';
    case 'unknown': return seen ? `not heard of; alive ${seen}` : 'not heard of yet';
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
    case 'unheard': return 'here, not heard yet';
    case 'heard': return `here; reported ${ago(l.reported_at, now) || 'in this session'}`;
    default: return plain(l.state, 40);
  }
}

/** @param {CrewLead} l @param {boolean} live @returns {'alive' | 'dim' | 'half'} */
export const leadLook = (l, live) => (!live || l.state === 'asleep' || l.state === 'waits' ? 'dim' : l.state === 'heard' ? 'alive' : 'half');

/**
 * How the crew is, as one sentence.
 * @param {{inProgress: string, size: number}} crew @param {CrewLead} lead
 * @param {{alive: number, sleeping: number, unknown: number, hatching: number, all: number}} n @param {boolean} live
 */
export function headline(crew, lead, n, live) {
  const who = plain(lead.agent, 60) || 'the lead';
  if (!live) return 'Nobody here knows who is awake while this page is cut off.';
  switch (crew.inProgress) {
    case 'summoning': return n.hatching > 0 ? `${plural(n.hatching, 'egg')} to hatch. ${who} calls them into being.` : `${who} has called them all.`;
    case 'asking': return `Asking ${who} who is awake\u2026`;
    case 'waking': return `${who} wakes them, one by one\u2026`;
    default:
  }
  if (n.all === 0) return lead.agent ? `Nobody is here yet. ${who} can summon ${plural(crew.size, 'agent')}.` : 'Nobody leads this team yet.';
  const parts = [];
  if (n.alive > 0) parts.push(`${n.alive} awake`);
  if (n.sleeping > 0) parts.push(`${n.sleeping} asleep`);
  if (n.unknown > 0) parts.push(`${n.unknown} not heard of`);
  if (n.hatching > 0) parts.push(`${n.hatching} hatching`);
  return n.alive === n.all ? (n.all === 1 ? 'The only one here is awake.' : `All ${n.all} are awake.`) : `${parts.join(', ')}.`;
}

/** What kind of thing was noticed. @type {Record<string, string>} */
export const NOTICES = { fault: 'not understood', ignored: 'ignored', refused: 'refused', silent: 'silent', lead: 'the lead' };

/** A session's name where there is little room. @param {string | null} id */
export const shortSession = (id) => (id && /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(id) ? id.slice(0, 8) : plain(id, 40));
