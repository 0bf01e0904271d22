// Beside a session: the host on which it runs, or why it waits for one.

import { html } from '../shell/lib.js';
import { plain } from '../shell/text.js';
import { elsewhere, waitOf } from './state.js';

/** @param {{name?: string}} props */
export function OnHost({ name }) {
  const host = elsewhere(name);
  return host ? html`<span class="on-host" title="It runs on this host of the team">on <bdi>${plain(host, 63)}</bdi></span>` : null;
}

/** Why a session waits for a host. @param {{is: (w: import('../shell/api.js').WaitingSession) => boolean}} props */
export function WaitsForHost({ is }) {
  const why = waitOf(is);
  return why ? html`<span class="waits-host">${plain(why, 300)}</span>` : null;
}
