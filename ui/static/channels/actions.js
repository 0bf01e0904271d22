// Orders about channels. A failed order is explained next to its button.

import * as api from '../shell/api.js';
import { putChannel, refreshChannels } from './state.js';
import { batch } from '../shell/lib.js';
import { order as orderAt } from '../shell/orders.js';
import { loadNewEntries, newest, reading } from './entries.js';
import { plain } from '../shell/text.js';

/** @param {string} key @param {string} words @param {() => Promise<unknown>} ask */
const order = (key, words, ask) => orderAt(key, words, ask, {
  done: (answer) => { const done = /** @type {Partial<api.Ordered>} */ (answer); if (done?.channel?.name) putChannel(done.channel); },
  after: () => refreshChannels(true),
});

/** Ends this turn; refused if another turn has begun. @param {string} channel @param {number} turn */
export const skip = (channel, turn) => order('head', 'turn skipped', () => api.orderChannel(channel, 'skip', turn ? { turn } : {}));
/** @param {string} channel @param {boolean} goOn */
export const override = (channel, goOn) => order('head', goOn ? 'turn resumed' : 'turn ended', () => api.orderChannel(channel, 'override', { go_on: goOn }));
/** @param {string} channel @param {string} agent @param {boolean} now */
export const grant = (channel, agent, now) => order(`member ${agent}`, `turn granted to ${plain(agent, 60)}`, () => api.orderChannel(channel, 'grant', { agent, ...(now && { now }) }));
/** @param {string} channel @param {string} agent */
export const assign = (channel, agent) => order('assign', `${plain(agent, 60)} assigned`, () => api.orderChannel(channel, 'members', { agent }));
/** @param {string} channel @param {string} agent */
export const remove = (channel, agent) => order(`member ${agent}`, `${plain(agent, 60)} removed`, () => api.removeMember(channel, agent));
/** @param {string} agent @param {'enable' | 'disable'} verb */
export const able = (agent, verb) => order(`member ${agent}`, `${plain(agent, 60)} ${verb}d`, () => api.ableAgent(agent, verb));

/** @param {string} channel @param {string} text @param {string} mode */
export async function say(channel, text, mode) {
  const done = await order('say', 'sent', () => api.say(channel, text, mode));
  if (!done) return false;
  batch(() => { if (reading.peek().newer) newest(channel); else loadNewEntries(true); });
  return true;
}
