// The open channel: the state of the turn, its entries and its rotation.

import { channelWrong, shownChannel } from './state.js';
import { override, skip } from './actions.js';
import { html, useEffect, useSignal } from '../shell/lib.js';
import { faults } from '../shell/orders.js';
import { channelLook, parkedWords } from './words.js';
import { plain } from '../shell/text.js';
import { channelName, go } from '../shell/router.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Rotation } from './rotation.js';
import { Countdown } from './list.js';
import { Composer } from './composer.js';
import { Icon } from '../shell/icons.js';
import { Mark } from '../runs/list.js';
import { Entries } from './entrylist.js';

/** @typedef {import('../shell/api.js').Channel} Channel */

/** The state of the turn, as one sentence. @param {{c: Channel}} props */
function Standing({ c }) {
  if (!c.holder) return html`<p class="standing"><span>${parkedWords(c)}.</span></p>`;
  const next = (c.queue ?? [])[0];
  const waiting = c.state === 'WAITING';
  return html`<p class="standing"><span><b><bdi>${plain(c.holder, 60)}</bdi></b> ${waiting ? 'waits' : 'has the turn'}${c.why ? html`: ${plain(c.why, 200)}` : ''}</span>
    <span class="standing-time">${c.deadline ? html`<${Countdown} deadline=${c.deadline} /> left` : 'no time limit'}</span>
    ${next && html`<span class="soft">then <bdi>${plain(next, 60)}</bdi></span>`}</p>`;
}

/** @param {{c: Channel}} props */
function Head({ c }) {
  return html`<header class="channel-head">
    <button type="button" class="back" onClick=${() => go('channels')}><${Icon} name="back" />Channels</button>
    <div class="channel-title"><h2 id="channel-title" tabIndex=${-1}><span class="hash" aria-hidden="true">#</span><bdi>${plain(c.name, 80)}</bdi></h2><${Mark} look=${channelLook(c)} />
      <span class="channel-acts" role="group" aria-label="The turn">
        ${c.holder && c.state === 'WAITING' && html`<${Act} look="start" icon="play" label="Resume" at="head" act=${() => override(c.name, true)} hint="The turn continues with its remaining time" />
          <${Act} look="plain" icon="stop" label="End its turn" at="head" act=${() => override(c.name, false)} hint="The turn is forfeited; the next agent has it" />`}
        ${c.holder && c.state !== 'WAITING' && html`<${Act} look="plain" icon="once" label="Skip" at="head" act=${() => skip(c.name, c.turn)} hint="Ends this turn; the next agent has it" />`}
      </span></div>
    <${Standing} c=${c} />
    ${c.aside && html`<p class="aside-line"><${Icon} name="look" /><span><b><bdi>${plain(c.aside.agent, 60)}</bdi></b> answers message ${c.aside.message} first; every turn waits for that. <${Countdown} deadline=${c.aside.deadline} /></span></p>`}
    ${!c.configured && html`<p class="aside-line"><${Icon} name="look" /><span>This channel is no longer in <code>fairlead.yaml</code>.</span></p>`}
    <${Fault} at="head" />
  </header>`;
}

const SIDES = /** @type {const} */ ([['messages', 'Messages'], ['rotation', 'Rotation']]);

export function ChannelPane() {
  const name = channelName.value;
  const c = shownChannel.value;
  if (!name) return html`<section class="channel-pane run-none" aria-label="Selected channel"><div class="empty"><p>Select a channel to read it.</p></div></section>`;
  if (!c) {
    return html`<section class="channel-pane run-none" aria-label="Selected channel"><button type="button" class="back" onClick=${() => go('channels')}><${Icon} name="back" />Channels</button>
      <div class="empty">${channelWrong.value ? html`<h2 id="channel-title" tabIndex=${-1}>No such channel</h2><p>${plain(channelWrong.value, 400)}</p>` : html`<p>Loading\u2026</p>`}</div></section>`;
  }
  return html`<${Pane} key=${name} c=${c} />`;
}

/** @param {{c: Channel}} props */
function Pane({ c }) {
  useEffect(() => { faults.value = {}; }, []); // faults of other channels do not belong here
  const side = useSignal(/** @type {'messages' | 'rotation'} */ ('messages'));
  return html`<section class="channel-pane" aria-labelledby="channel-title" data-side=${side.value}>
    <${Head} c=${c} />
    <span class="seg sides" role="group" aria-label="Side">${SIDES.map(([key, label]) => html`<button type="button" key=${key} aria-pressed=${side.value === key ? 'true' : 'false'} onClick=${() => { side.value = key; }}>${label}</button>`)}</span>
    <div class="messages-side"><${Entries} c=${c} /><${Composer} c=${c} /></div>
    <${Rotation} c=${c} />
  </section>`;
}
