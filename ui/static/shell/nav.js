// The links to the parts of the page, with a count for each.

import { computed, html, useLayoutEffect, useRef } from './lib.js';
import { underWay } from '../channels/state.js';
import { awake } from '../crew/state.js';
import { all as hosts, toLookAt } from '../hosts/state.js';
import { needs } from '../inbox/state.js';
import { runs } from '../runs/state.js';
import { conversing } from '../dispatch/state.js';
import { needYou } from '../tasks/state.js';
import { Icon } from './icons.js';
import { go, place } from './router.js';

/** @param {{to: import('./router.js').Place, n: number, what: string, children?: any}} props */
const Place = ({ to, n, what, children }) => html`<a class="place" href=${`#/${to}`} aria-current=${place.value === to ? 'page' : undefined}
  onClick=${(/** @type {MouseEvent} */ e) => { if (!e.ctrlKey && !e.metaKey && !e.shiftKey) { e.preventDefault(); go(to); } }}>
  <${Icon} name=${`place-${to}`} /><span>${children}</span>${n > 0 && html`<span class="place-count place-count-${to}"><span class="num">${n > 99 ? '99+' : n}</span><span class="hidden"> ${what}</span></span>`}</a>`;

/** All parts of the page in their order, with the key of each. @type {[import('./router.js').Place, string, string][]} */
const ALL = [
  ['now', 'Now', 'G'], ['agents', 'Team', 'A'], ['tasks', 'Tasks', 'B'], ['crew', 'Crew', 'W'], ['runs', 'Runs', 'R'], ['channels', 'Channels', 'M'],
  ['dispatch', 'Dispatch', 'D'], ['inbox', 'Inbox', 'I'], ['history', 'History', 'Y'], ['usage', 'Usage', 'U'], ['hosts', 'Hosts', 'L'],
];

/** The parts that there are: hosts only if the repository is a cluster's. */
export const places = computed(() => ALL.filter(([to]) => to !== 'hosts' || hosts.value.on));

/** How many things in a part a person may want to know of, and what they are. @type {Partial<Record<import('./router.js').Place, [() => number, string]>>} */
const COUNTS = {
  now: [() => needs.value.length, 'waiting for you'], tasks: [() => needYou.value, 'waiting for you'], crew: [() => awake.value, 'awake'],
  runs: [() => runs.value.filter((r) => r.status === 'running' || r.status === 'waiting').length, 'running'],
  channels: [() => underWay.value, 'with a turn in progress'], dispatch: [() => conversing.value, 'with an open conversation'], hosts: [() => toLookAt.value, 'to look at'],
};

export function Places() {
  const here = useRef(/** @type {HTMLElement | null} */ (null));
  const counts = places.value.map(([to]) => COUNTS[to]?.[0]() ?? 0);
  // On a phone the links are one row that is pushed sideways. A new count pushes those behind it.
  useLayoutEffect(() => { here.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }); }, [place.value, counts.join(' ')]);
  return html`<nav ref=${here} class="places" aria-label="Parts of this page">
  ${places.value.map(([to, label], i) => html`<${Place} key=${to} to=${to} n=${counts[i]} what=${COUNTS[to]?.[1] ?? ''}>${label}<//>`)}</nav>`;
}
