// All channels: the agent with the turn, waiting messages, and the last entry.

import { skew } from '../shell/api.js';
import { channelCell, channelNames, channelsKnown, unread } from './state.js';
import { count, plural, span } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { seenUntil } from '../shell/connection.js';
import { channelLook, parkedShort } from './words.js';
import { plain } from '../shell/text.js';
import { channelName, showChannel } from '../shell/router.js';
import { Icon } from '../shell/icons.js';
import { Mark } from '../runs/list.js';

/** Rows shown at first, and added by each "more". */
const PAGE = 100;
/** With this many channels a search field appears. */
const FIND_FROM = 8;

/** The time left of a turn or a wait; empty if there is no deadline. @param {{deadline: string | null | undefined}} props */
export function Countdown({ deadline }) {
  const left = deadline ? Date.parse(deadline) - (seenUntil.value + skew.ms) : NaN;
  return Number.isFinite(left) ? html`<span class="num countdown">${span(left)}</span>` : null;
}

/** @param {{name: string}} props */
function Row({ name }) {
  const c = channelCell(name)?.value;
  if (!c) return null;
  const isShown = channelName.value === name;
  const fresh = unread(c), open = (c.open ?? []).length, queued = (c.queue ?? []).length;
  const last = c.last?.text ? c.last : null;
  return html`<li class="channel-row ${isShown ? 'channel-row-shown' : ''} ${c.configured ? '' : 'channel-row-gone'}">
    <span class="channel-row-head"><button type="button" class="channel-name" aria-current=${isShown ? 'true' : undefined} onClick=${() => showChannel(name)}>
      <span class="hash" aria-hidden="true">#</span><bdi>${plain(name, 80)}</bdi></button>
      ${fresh > 0 && !isShown && html`<span class="fresh"><span class="num">${fresh > 99 ? '99+' : fresh}</span><span class="hidden"> not read</span></span>`}<${Mark} look=${channelLook(c)} /></span>
    <span class="channel-row-line">${c.holder ? html`<b><bdi>${plain(c.holder, 60)}</bdi></b> <${Countdown} deadline=${c.deadline} />` : html`<span>${parkedShort(c)}</span>`}</span>
    <span class="channel-row-line soft">${c.holder ? `${count(queued)} in the queue` : plural((c.agents ?? []).length, 'agent')}${open > 0 && html`<span class="waits-count">${count(open)} not answered</span>`}</span>
    ${last && html`<span class="channel-row-last"><b>${plain(last.by, 40)}</b> ${plain(last.text, 160)}</span>`}
  </li>`;
}

const Empty = () => html`<div class="empty"><h2>No channels yet</h2><p>Agents and people talk in a channel, and one agent at a time has the turn. Add one in <code>fairlead.yaml</code>:</p>
  <pre class="sample">channels:
  reviews:
    agents: [coder, reviewer]</pre></div>`;

/** Arrow keys move between the rows. @param {KeyboardEvent & {currentTarget: HTMLElement}} e */
function walk(e) {
  const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
  if (!step || !(e.target instanceof HTMLElement) || !e.target.classList.contains('channel-name')) return;
  const all = /** @type {HTMLElement[]} */ ([...e.currentTarget.querySelectorAll('.channel-name')]);
  all[all.indexOf(e.target) + step]?.focus();
  e.preventDefault();
}

export function ChannelList() {
  const more = useSignal(PAGE);
  const find = useSignal('');
  const words = find.value.trim().toLowerCase();
  const list = words ? channelNames.value.filter((n) => n.toLowerCase().includes(words)) : channelNames.value;
  return html`<nav class="channel-list" aria-label="Channels">
    <div class="run-tools"><h2 id="channels-title" tabIndex=${-1}>Channels</h2></div>
    ${channelNames.value.length >= FIND_FROM && html`<div class="channel-find"><label class="field"><${Icon} name="search" /><span class="hidden">Find a channel</span>
      <input type="search" placeholder="Find a channel" autocomplete="off" spellcheck=${false} value=${find.value} onInput=${(/** @type {any} */ e) => { find.value = e.target.value; }} /></label></div>`}
    <div class="run-scroll">
      ${!channelsKnown.value ? html`<div class="empty"><p>Loading\u2026</p></div>`
        : channelNames.value.length === 0 ? html`<${Empty} />`
        : list.length === 0 ? html`<div class="empty"><p>No channel has this name.</p></div>`
        : html`<ul class="channel-rows" aria-label="Channels" onKeyDown=${walk}>${list.slice(0, more.value).map((n) => html`<${Row} key=${n} name=${n} />`)}</ul>`}
      ${list.length > more.value && html`<button type="button" class="plain-button run-more" onClick=${() => { more.value += PAGE; }}>Show more</button>`}
    </div>
  </nav>`;
}
