// Orders about hosts.

import * as api from '../shell/api.js';
import { order } from '../shell/orders.js';
import { plain } from '../shell/text.js';
import { refreshHosts } from './state.js';

/** @param {'drain' | 'remove'} verb @param {string} name */
export const keyOf = (verb, name) => `host ${verb} ${name}`;

/** @param {'drain' | 'remove'} verb @param {string} name */
export const orderHost = (verb, name) => order(keyOf(verb, name), verb === 'drain' ? `${plain(name, 63)} gets no new session` : `${plain(name, 63)} is removed`, () => api.orderHost(name, verb), { after: () => refreshHosts(true) });
