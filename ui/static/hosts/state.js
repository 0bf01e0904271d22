// The hosts of the team: the machines on which its sessions run.
//
// A change of a host is applied at once. The server is asked for the rest, and again and again while the page of the
// hosts is shown or a session waits for a host: the age of a lease and what waits are not in the journal.

import * as api from '../shell/api.js';
import { batch, computed, signal } from '../shell/lib.js';
import { live } from '../shell/connection.js';
import { Refetch } from '../shell/refetch.js';
import { place } from '../shell/router.js';
import { inTrouble, reduceHosts } from './words.js';

const AGAIN_MS = 5000;

/** @type {api.Hosts} */
const NONE = { on: false, hosts: [], waiting: [] };
export const all = signal(NONE);
export const known = signal(false);
/** The browser's clock when the ages of the leases were true. */
export const readAt = signal(0);
/** The host that a dialog is about. */
export const about = signal('');

/** Hosts and sessions, and a journal that is not replicated, that a person may want to look at. */
export const toLookAt = computed(() => all.value.hosts.filter(inTrouble).length + all.value.waiting.length + (all.value.unreplicated?.wrong ? 1 : 0));

const list = new Refetch(async () => {
  const answer = await api.hosts();
  batch(() => { all.value = answer; known.value = true; readAt.value = Date.now(); });
}, 500);

/** @param {boolean} [soon] */
export const refreshHosts = (soon = false) => list.want(soon);

export function forgetHosts() { all.value = NONE; known.value = false; }

/** @param {api.Change[]} changes */
export function applyHostChanges(changes) {
  const mine = changes.filter((ch) => ch.entity.startsWith('host/'));
  if (mine.length > 0) all.value = mine.reduce(reduceHosts, all.peek());
  if (mine.length > 0 || all.peek().on && changes.some((ch) => ch.entity.startsWith('session/'))) list.want();
}

/** The host that is shown beside a session: none for the leader's machine. @param {string | undefined} name */
export const elsewhere = (name) => (name && name !== all.value.leader ? name : '');

const placed = computed(() => new Map(all.value.hosts.flatMap((h) => h.sessions.map((s) => [s.session, h.name]))));

/** The host of a session. @param {string | undefined} id */
export const hostOf = (id) => (id ? placed.value.get(id) ?? '' : '');

/** Why a session of these waits for a host. @param {(w: api.WaitingSession) => boolean} is */
export const waitOf = (is) => all.value.waiting.find(is)?.why ?? '';

setInterval(() => { if (!document.hidden && live.peek() && all.peek().on && (place.peek() === 'hosts' || all.peek().waiting.length > 0)) list.want(); }, AGAIN_MS);
