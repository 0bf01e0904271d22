// Orders about channels. What came of one that was not done is said where its button is.

import * as api from './api.js';
import { putChannel, refreshChannels } from './channels.js';
import { batch, signal } from './lib.js';
import { live } from './state.js';
import { hearMore, newest, talk } from './talk.js';
import { plain } from './text.js';
import { spoken } from './view.js';

/** What is asked and not yet answered. */
export const asked = signal('');
/** What was not done, by the key of its button, in the server's words. */
export const faults = signal(/** @type {Record<string, string>} */ ({}));

/** @param {string} key */
export function forgive(key) {
  const { [key]: _, ...others } = faults.peek();
  faults.value = others;
}

/** @param {unknown} err @returns {string} */
function wordsOf(err) {
  const reason = err instanceof api.Refusal ? err.body.reason : '';
  const text = plain(reason || (err instanceof Error ? err.message : err), 400);
  return err instanceof api.Refusal ? `Refused: ${text}` : text;
}

/** @param {string} key @param {string} words @param {() => Promise<unknown>} ask @returns {Promise<boolean>} was it done? */
async function order(key, words, ask) {
  if (asked.peek() || !live.peek()) return false;
  forgive(key);
  asked.value = key;
  try {
    const done = /** @type {Partial<api.Ordered>} */ (await ask());
    if (done?.channel?.name) putChannel(done.channel);
    spoken.value = words;
    return true;
  } catch (err) {
    faults.value = { ...faults.peek(), [key]: wordsOf(err) };
    return false;
  } finally {
    asked.value = '';
    refreshChannels(true);
  }
}

/** Ends the turn that was looked at, and no other. @param {string} channel @param {number} turn */
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
  const done = await order('say', 'said', () => api.say(channel, text, mode));
  if (!done) return false;
  batch(() => { if (talk.peek().newer) newest(channel); else hearMore(true); });
  return true;
}
