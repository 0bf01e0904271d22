// What people answer to agents, and what they take back. What was not done is said where its
// button is.

import * as api from '../shell/api.js';
import { refreshAsks } from './state.js';
import { order } from '../shell/orders.js';
import { plain } from '../shell/text.js';

const then = { after: () => refreshAsks(true) };

/** @param {string} id of a question */
export const answerKey = (id) => `answer ${id}`;
/** @param {string} id of an answer that stands */
export const revokeKey = (id) => `revoke ${id}`;

/** @param {string} id @param {import('../shell/api.js').AnswerBody} body @param {string} words for who cannot see what became of it */
export const answerAsk = (id, body, words) => order(answerKey(id), `${plain(id, 40)}: ${words}`, () => api.answerQuestion(id, body), then);

/** @param {string} id */
export const revokeStanding = (id) => order(revokeKey(id), `${plain(id, 40)} stands no longer`, () => api.revokeStanding(id), then);

/** @param {string} agent */
export const endKey = (agent) => `end ${agent}`;
/** @param {string} agent whose session is not waited for any longer */
export const endSession = (agent) => order(endKey(agent), `the session of ${plain(agent, 60)} is being ended`, () => api.endAgentSession(agent), { after: () => { /* the feed brings the change */ } });

/** @param {string} agent */
export const retryKey = (agent) => `retry ${agent}`;
/** @param {string} agent whose provider takes nothing more for now */
export const retryAgent = (agent) => order(retryKey(agent), `${plain(agent, 60)} is tried again`, () => api.retryAgent(agent), { after: () => { /* the feed brings the change */ } });
