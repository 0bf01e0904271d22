// The top of the page: the team's name, the hold, and whether the page is live.

import { focusHeading } from './focus.js';
import { moment, when } from './format.js';
import { html, signal } from './lib.js';
import { retryNow } from './feed.js';
import { connection, live, now, polls } from './connection.js';
import { holdPending, team } from '../agents/state.js';
import { plain } from './text.js';
import { nextTheme, theme } from './prefs.js';
import { dialog, place } from './router.js';
import { Fairlead, Icon } from './icons.js';
import { Places } from './nav.js';
import { looking, toggle } from '../moment/state.js';

/** @type {Record<string, string>} */
const PHASES = { live: 'Live', past: 'Earlier', connecting: 'Connecting', lost: 'Cut off' };

function Line() {
  const { phase } = connection.value;
  const asks = phase === 'live' && polls.value;
  return html`<span class="line-state line-${phase} ${asks ? 'line-polls' : ''}" role="status" title=${asks ? 'A proxy holds the live stream back. This page asks for news several times a second instead.' : undefined}><i aria-hidden="true"></i>${asks ? 'Polling' : PHASES[phase]}</span>`;
}

function Hold() {
  const held = team.value.hold;
  const off = !live.value || holdPending.value;
  return html`<button type="button" class="hold ${held ? 'hold-on' : ''}" aria-pressed=${held ? 'true' : 'false'} aria-disabled=${off ? 'true' : undefined}
    title=${held ? 'The team is held: nothing starts' : 'Stop anything new from starting'}
    onClick=${() => { if (!off) dialog.value = held ? 'release' : 'hold'; }}><${Icon} name="hold" /><span>${held ? 'Held' : 'Hold team'}</span></button>`;
}

/** @param {Event} e */
function skip(e) {
  e.preventDefault();
  focusHeading();
}

export function Masthead() {
  const t = theme.value;
  return html`<header class="masthead">
    <a class="skip" href="#content" onClick=${skip}>Skip to ${place.value === 'agents' ? 'the chosen agent' : 'the content'}</a>
    <h1 class="brand"><${Fairlead} /><span class="brand-name">Fairlead</span><button type="button" class="brand-team brand-switch" aria-haspopup="dialog" title="Switch repository" onClick=${() => { dialog.value = 'repositories'; }}><bdi>${plain(team.value.name, 60) || 'Mission Control'}</bdi></button></h1>
    <button type="button" class="plain-button find-button" aria-haspopup="dialog" aria-keyshortcuts="Control+K Meta+K" aria-label="Search and commands" title="Search and commands (Ctrl K)" onClick=${() => { dialog.value = 'find'; }}><${Icon} name="search" /><span>Search</span><kbd aria-hidden="true" data-keys=${/Mac|iP/.test(navigator.platform) ? '\u2318 K' : 'Ctrl K'}></kbd></button>
    <${Places} />
    <div class="masthead-side">
      <${Line} /><${Hold} />
      <button type="button" class="icon-button" aria-pressed=${looking.value ? 'true' : 'false'} onClick=${toggle} title="Look back: the page as it was at an earlier moment (P)" aria-label="Look back"><${Icon} name="clock" /></button>
      <button type="button" class="icon-button" onClick=${nextTheme} title="Theme: ${t}" aria-label="Theme: ${t}. Change"><${Icon} name=${t === 'auto' ? 'auto' : t === 'dark' ? 'moon' : 'sun'} /></button>
      <button type="button" class="icon-button help-button" onClick=${() => { dialog.value = 'help'; }} title="Keys and words (?)" aria-label="Help: keys and words">?</button>
    </div>
  </header>`;
}

/** The person knows that the page polls. */
const pollsSeen = signal(false);

/** Messages that concern the whole page. */
export function Banners() {
  const c = connection.value;
  const wait = Math.max(0, Math.ceil((c.retryAt - now.value) / 1000));
  return html`<section class="banners" aria-label="Notices about the team">
    ${c.phase === 'lost' && html`<div class="banner banner-lost"><p><b>Cut off since <time class="num">${moment(c.since, now.value)}</time>.</b>${' '}
      <span>${c.words ? plain(c.words, 120) + ' ' : ''}What you see is what was known then. ${c.trying ? 'Trying now\u2026' : wait > 0 ? `Trying again in ${wait} s.` : 'Trying again\u2026'}</span></p>
      <button type="button" class="plain-button" onClick=${retryNow}>Try now</button></div>`}
    ${c.phase === 'connecting' && !c.trying && html`<div class="banner banner-lost"><p><b>No answer yet.</b> <span>${plain(c.words, 200)}</span></p>
      <button type="button" class="plain-button" onClick=${retryNow}>Try now</button></div>`}
    ${polls.value && c.phase === 'live' && !pollsSeen.value && html`<div class="banner"><p><b>A proxy holds the live stream back.</b> <span>This page asks for news again and again instead, which costs more. Switch off the buffering of answers in the proxy; the page then notices by itself.</span></p>
      <button type="button" class="plain-button" onClick=${() => { pollsSeen.value = true; }}>Close</button></div>`}
    ${team.value.noLeaderSince && c.phase === 'live' && html`<div class="banner banner-lost"><p><b>Most engine hosts do not answer since <time class="num">${moment(when(team.value.noLeaderSince), now.value)}</time>.</b> <span>What you see is what was known then. Another one may lead by now.</span></p></div>`}
    ${team.value.stopping && html`<div class="banner banner-hold"><p><b>Fairlead is stopping.</b> <span>Current sessions finish; nothing new starts.</span></p></div>`}
    ${team.value.hold && !team.value.stopping && html`<div class="banner banner-hold"><p><b>The team is held.</b> <span>Nothing new starts; current sessions finish.${team.value.note ? html` <q>${plain(team.value.note, 200)}</q>` : ''}</span></p>
      <button type="button" class="plain-button" aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.value) dialog.value = 'release'; }}>Release</button></div>`}
  </section>`;
}
