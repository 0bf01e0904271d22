// What is shown of a repository. Pure; every text of it comes from another process.

import { plural } from '../shell/format.js';
import { plain } from '../shell/text.js';

/** @typedef {import('../shell/api.js').Repository} Repository */

/** The counts of a repository in words. @param {Repository} r */
export function countWords(r) {
  const work = r.working === 0 ? 'nothing is running' : r.working === 1 ? '1 agent is working' : `${r.working} agents are working`;
  return `${work}, ${plural(r.agents, 'agent')}${r.hold ? ', held' : ''}${r.stopping ? ', stopping' : ''}`;
}

/** @param {Repository} r */
export const needWords = (r) => (r.needs_you === 0 ? '' : r.needs_you === 1 ? '1 needs you' : `${r.needs_you} need you`);

/** Hosts that mean this machine, as a URL has them. */
const LOCAL = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** @param {string} text */
function urlOf(text) {
  try { return new URL(text); } catch { return null; }
}

/** An address on this machine, or nothing. @param {string} text */
export function localPage(text) {
  const url = urlOf(text);
  return url && url.protocol === 'http:' && LOCAL.test(url.hostname) && !url.username && !url.password ? url.href : '';
}

/** An origin that may be opened from elsewhere, or nothing. @param {string} text */
function remotePage(text) {
  const url = urlOf(text);
  return url && url.protocol === 'https:' && !url.username && !url.password ? `${url.origin}/` : '';
}

/**
 * Where a repository is opened: on this machine (sign: with a login code), at an origin of its own, or nowhere from here.
 * @param {Repository} r @param {boolean} outside the page was opened through a tunnel or a proxy
 * @returns {{href: string, sign: boolean}}
 */
export function pageOf(r, outside) {
  if (!outside) return { href: localPage(r.address), sign: true };
  return { href: (r.origins ?? []).map(remotePage).find(Boolean) ?? '', sign: false };
}

/** What to type on the machine of a repository. @param {Repository} r */
export const openCommand = (r) => `fairlead open${r.dir ? ` --dir '${plain(r.dir, 4096).replaceAll("'", "'\\''")}'` : ''}`;
