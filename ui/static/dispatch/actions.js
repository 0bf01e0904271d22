// What a person says to a session, and its beginning and end.

import * as api from '../shell/api.js';
import { order } from '../shell/orders.js';
import { applySession, refreshSessions } from './state.js';
import { showSessionFolder, spoken } from '../shell/router.js';

const after = () => refreshSessions(true);

/** @param {string} name @param {string} text */
export const sayTo = (name, text) => order('session', 'said', () => api.sayToSession(name, text), {
  done: (told) => { applySession(told.now); },
  after,
});

/** @param {string} name */
export const endSession = (name) => order('session', 'the session is closed', () => api.endSession(name), { done: applySession, after });

/** Begins a session and shows it; what is wrong is thrown, for the form. @param {Record<string, string>} body */
export async function startSession(body) {
  const view = await api.startSession(body);
  spoken.value = 'the session has begun';
  applySession(view);
  refreshSessions(true);
  showSessionFolder(view.session.name);
}
