// Orders to a dispatch session: start, input and end.

import * as api from '../shell/api.js';
import { order } from '../shell/orders.js';
import { applyDispatch, refreshDispatch } from './state.js';
import { showDispatch, spoken } from '../shell/router.js';

const after = () => refreshDispatch(true);

/** @param {string} name @param {string} text */
export const sendInput = (name, text) => order('session', 'sent', () => api.sayToSession(name, text), {
  done: (told) => { applyDispatch(told.now); },
  after,
});

/** @param {string} name */
export const endSession = (name) => order('session', 'the dispatch is closed', () => api.endSession(name), { done: applyDispatch, after });

/** Starts a session and opens it. Throws what is wrong, for the form. @param {Record<string, string>} body */
export async function startSession(body) {
  const view = await api.startSession(body);
  spoken.value = 'the dispatch has started';
  applyDispatch(view);
  refreshDispatch(true);
  showDispatch(view.session.name);
}
