// What is shown of a host, and what a change of the journal makes of it. Pure.

import { age, plural } from '../shell/format.js';

/** @typedef {import('../shell/api.js').Hosts} Hosts */
/** @typedef {import('../shell/api.js').Host} Host */

/** The state as a word, a class and a shape. @type {Record<string, import('../runs/words.js').Look>} */
const STATES = {
  joined: { label: 'joined', look: 'ok', mark: '\u2713' },
  doubted: { label: 'doubted', look: 'wait', mark: '?' },
  lost: { label: 'lost', look: 'failed', mark: '\u2715' },
  draining: { label: 'draining', look: 'wait', mark: '\u2193' },
  left: { label: 'left', look: 'cut', mark: '\u2013' },
};

/** @param {string} state @returns {import('../runs/words.js').Look} */
export const hostLook = (state) => (Object.hasOwn(STATES, state) ? STATES[state] : { label: state, look: 'pending', mark: '\u00b7' });

/** Is it one that a person may want to look at? @param {Host} h */
export const inTrouble = (h) => !!h.foreign || h.state === 'doubted' || h.state === 'lost' || (h.state === 'draining' && !!h.doubted_at);

/** @param {Host} h */
export const mayDrain = (h) => !h.leader && !h.removed_by && (h.state === 'joined' || h.state === 'doubted');

/** @param {Host} h */
export const mayRemove = (h) => !h.leader && !h.removed_by && h.state !== 'left';

/** What is known of its lease. @param {Host} h @param {number} ms since that was true */
export function leaseWords(h, ms) {
  if (h.leader || h.state === 'left') return '';
  const seen = h.lease_age_ms < 0 ? 'no renewal was seen yet' : `renewed ${age(h.lease_age_ms + Math.max(0, ms))} ago`;
  return h.connected ? seen : `not connected, ${seen}`;
}

/** On which hosts the journal is, and whether all have the whole of it; empty: only the leader is an engine host. @param {Hosts} all */
export function journalWords({ hosts, replicated, unreplicated, copies = [] }) {
  const engines = hosts.filter((h) => h.engine && h.state !== 'left').map((h) => h.name);
  if (!replicated) return unreplicated?.why ?? '';
  if (copies.length === 0) return `The journal is replicated by the engine hosts ${engines.join(', ')}. It is not known whether its copies are in sync.`;
  const behind = copies.filter((c) => !c.in_sync).map((c) => `the copy on ${c.host} ${c.lacks ? `lacks ${plural(c.lacks, 'message')}, or ` : ''}does not answer`);
  return `The journal is replicated by the engine hosts ${engines.join(', ')}. Its copies are on ${copies.map((c) => c.host).join(', ')}${behind.length === 0 ? ', in sync' : `: ${behind.join('; ')}`}.`;
}

/** @param {Host} h */
export const placesWords = (h) => `${h.sessions.length} of ${plural(h.capacity, 'place')}`;

/** What happens to a session if its host is lost. @type {Record<string, string>} */
const ON_LOST = { restart: 'begins elsewhere if the host is lost', ask: 'a person is asked if the host is lost', wait: 'waits for the host if the host is lost' };
/** @param {string} word */
export const lostWords = (word) => (Object.hasOwn(ON_LOST, word) ? ON_LOST[word] : '');

/** The session of a lease, and its step: `for` is run/RUN/STEP. @param {{session: string, for?: string}} of */
function sessionOf({ session, for: what }) {
  const [kind, run, step] = (what ?? '').split('/');
  return { session, agent: session.slice(0, session.lastIndexOf('-')), ...(kind === 'run' ? { run, step } : {}) };
}

/**
 * The hosts after one change. What the journal does not have (connection, age of the lease, what a session is for) and
 * the sentence of a host come with the next answer of the server.
 * @param {Hosts} was @param {import('../shell/api.js').Change} ch @returns {Hosts}
 */
export function reduceHosts(was, ch) {
  const { host, lease, released } = ch.data?.host ?? {};
  let hosts = was.hosts;
  if (typeof host?.name === 'string') {
    const old = hosts.find((h) => h.name === host.name);
    const late = (host.late ?? []).map((/** @type {any} */ l) => old?.late.find((o) => o.session === l.session && o.at === l.at) ?? { ...sessionOf(l), what: l.what, kept: '\u2026', at: l.at });
    const missing = (host.missing ?? []).map((/** @type {any} */ m) => ({ ...sessionOf(m), since: m.at, on_lost: m.on_lost }));
    const next = {
      ...(old ?? { connected: false, lease_age_ms: -1, sessions: [] }), why: old?.state === host.state ? old?.why ?? '' : '', name: host.name, state: host.state, labels: host.labels ?? [], capacity: host.capacity,
      joined_at: host.joined_at, doubted_at: host.doubted_at, lost_at: host.lost_at, drained_by: host.drained_by, removed_by: host.removed_by, missing, late,
    };
    hosts = old ? hosts.map((h) => (h === old ? next : h)) : [...hosts, next].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
  const gone = lease?.session ?? released;
  if (gone) {
    hosts = hosts.map((h) => {
      const others = h.sessions.filter((s) => s.session !== gone);
      if (lease?.host === h.name) others.push({ session: lease.session, agent: sessionOf(lease).agent, since: ch.time, on_lost: lease.on_lost });
      return { ...h, sessions: others.sort((a, b) => (a.session < b.session ? -1 : 1)) };
    });
  }
  return { ...was, hosts, waiting: lease ? was.waiting.filter((w) => w.session !== lease.session) : was.waiting };
}
