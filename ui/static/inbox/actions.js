// Answers to agents' questions, and the revocation of saved answers. A failed order is explained
// next to its button.

import * as api from '../shell/api.js';
import { refreshRuns } from '../runs/state.js';
import { refreshQuestions } from './state.js';
import { order } from '../shell/orders.js';
import { plain } from '../shell/text.js';

const then = { after: () => refreshQuestions(true) };

/** @param {string} id of a question */
export const answerKey = (id) => `answer ${id}`;
/** @param {string} id of a saved answer */
export const revokeKey = (id) => `revoke ${id}`;

/** @param {string} id @param {import('../shell/api.js').AnswerBody} body @param {string} words for screen readers */
export const answerQuestion = (id, body, words) => order(answerKey(id), `${plain(id, 40)}: ${words}`, () => api.answerQuestion(id, body), then);

/** @param {string} id */
export const revokeAnswer = (id) => order(revokeKey(id), `${plain(id, 40)} is no longer valid`, () => api.revokeAnswer(id), then);

/** @param {string} agent */
export const endKey = (agent) => `end ${agent}`;
/** @param {string} agent the agent whose session ends early */
export const endSession = (agent) => order(endKey(agent), `the session of ${plain(agent, 60)} is being ended`, () => api.endAgentSession(agent), { after: () => { /* the feed brings the change */ } });

/** @param {string} agent */
export const retryKey = (agent) => `retry ${agent}`;
/** @param {string} agent the agent whose provider has a rate limit */
export const retryAgent = (agent) => order(retryKey(agent), `${plain(agent, 60)} is tried again`, () => api.retryAgent(agent), { after: () => { /* the feed brings the change */ } });

/** The note that goes with an order, for the journal. @type {Record<'start' | 'stop', string>} */
const NOTES = { start: 'Started again via Mission Control', stop: 'Left stopped via Mission Control' };

/** @param {string} agent */
export const orderKey = (agent) => `order ${agent}`;
/** @param {string} agent an agent that gave up @param {'start' | 'stop'} verb */
export const orderAgent = (agent, verb) => order(orderKey(agent), `${plain(agent, 60)}: ${verb}`, () => api.command(agent, verb, NOTES[verb]), then);

/** @param {string} governing */
export const confirmKey = (governing) => `confirm ${governing}`;
/** @param {string} governing the hash of the change that was shown */
export const confirmConfig = (governing) => order(confirmKey(governing), 'the changed fairlead.yaml is loaded', () => api.confirmConfig(governing), then);

/** @param {string} run */
export const resumeKey = (run) => `resume ${run}`;
/** @param {string} run a run that failed */
export const resumeFailed = (run) => order(resumeKey(run), `${plain(run, 60)} continues`, () => api.resumeRun(run, {}), { after: () => refreshRuns(true) });
