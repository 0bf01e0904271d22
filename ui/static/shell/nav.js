// The links to the parts of the page, with a count for each.

import { html } from './lib.js';
import { underWay } from '../channels/state.js';
import { awake } from '../crew/state.js';
import { needs } from '../inbox/state.js';
import { runs } from '../runs/state.js';
import { talking } from '../dispatch/state.js';
import { needYou } from '../tasks/state.js';
import { go, place } from './router.js';

/** @param {{to: import('./router.js').Place, n: number, what: string, children?: any}} props */
const Place = ({ to, n, what, children }) => html`<a class="place" href=${`#/${to}`} aria-current=${place.value === to ? 'page' : undefined}
  onClick=${(/** @type {MouseEvent} */ e) => { if (!e.ctrlKey && !e.metaKey && !e.shiftKey) { e.preventDefault(); go(to); } }}>
  ${children}${n > 0 && html`<span class="place-count place-count-${to}"><span class="num">${n > 99 ? '99+' : n}</span><span class="hidden"> ${what}</span></span>`}</a>`;

export function Places() {
  const going = runs.value.filter((r) => r.status === 'running' || r.status === 'waiting').length;
  return html`<nav class="places" aria-label="Parts of this page">
    <${Place} to="now" n=${needs.value.length} what="waiting for you">Now<//>
    <${Place} to="agents" n=${0} what="">Team<//>
    <${Place} to="tasks" n=${needYou.value} what="waiting for you">Tasks<//>
    <${Place} to="crew" n=${awake.value} what="awake">Crew<//>
    <${Place} to="runs" n=${going} what="running">Runs<//>
    <${Place} to="channels" n=${underWay.value} what="with a turn in progress">Channels<//>
    <${Place} to="dispatch" n=${talking.value} what="with an open conversation">Dispatch<//>
    <${Place} to="inbox" n=${0} what="">Inbox<//>
  </nav>`;
}
