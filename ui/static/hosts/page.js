// The hosts: a card each, what waits for one, and how to invite another.

import { skew } from '../shell/api.js';
import { Mark } from '../runs/list.js';
import { asOf, live, seenUntil, now } from '../shell/connection.js';
import { Sheet } from '../shell/dialogs.js';
import { moment, plural, span } from '../shell/format.js';
import { batch, html } from '../shell/lib.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { choose, dialog, go, showRun } from '../shell/router.js';
import { plain } from '../shell/text.js';
import { keyOf, orderHost } from './actions.js';
import { about, all, known, readAt, toLookAt } from './state.js';
import { hostLook, journalWords, leaseWords, lostWords, mayDrain, mayRemove, placesWords } from './words.js';

/** @typedef {import('../shell/api.js').Host} Host */

/** Sessions and late reports shown per host; the command line lists all of them. */
const SHOWN_MAX = 50;

/** What a session is for, as a link. @param {{s: {session: string, agent: string, run?: string, step?: string}}} props */
const What = ({ s }) => html`<button type="button" class="link" onClick=${() => { if (s.run) showRun(s.run, s.step); else batch(() => { go('agents'); choose(s.agent); }); }}><bdi>${plain(s.agent || s.session, 80)}</bdi></button>${' '}
  ${s.run && html`<span class="soft">${plain(s.step, 64)} of <code>${plain(s.run, 48)}</code></span>`} <code class="soft">${plain(s.session, 60)}</code>`;

/** A sentence with its commands. @param {string} text @param {number} max */
const marked = (text, max) => plain(text, max).split('`').map((part, n) => (n % 2 ? html`<code key=${n}>${part}</code>` : part));

/** @param {{of: Host}} props */
function Card({ of: h }) {
  const lease = asOf.value > 0 ? '' : leaseWords(h, seenUntil.value - readAt.value);
  const ask = (/** @type {'drain-host' | 'remove-host'} */ what) => async () => batch(() => { about.value = h.name; dialog.value = what; });
  const id = `host-${plain(h.name, 63)}`;
  return html`<li class="host host-${plain(h.state, 20)}"><article aria-labelledby=${id}>
    <header class="host-head"><h3 id=${id}><bdi>${plain(h.name, 63)}</bdi></h3><${Mark} look=${hostLook(h.state)} />${h.leader && html`<span class="soft">leader</span>`}</header>
    <p class="host-why">${marked(h.why, 400)}</p>
    <dl class="host-facts">
      ${h.state !== 'left' && html`<div><dt>Sessions</dt><dd><span class="gauge" aria-hidden="true"><i style=${{ width: `${Math.min(100, (100 * h.sessions.length) / Math.max(1, h.capacity))}%` }}></i></span><span class="num">${placesWords(h)}</span></dd></div>`}
      ${lease && html`<div><dt>Lease</dt><dd class="num">${lease}</dd></div>`}
      ${h.labels.length > 0 && html`<div><dt>Labels</dt><dd>${h.labels.map((l) => html`<code key=${l} class="host-label">${plain(l, 63)}</code>`)}</dd></div>`}
      <div><dt>${h.state === 'lost' ? 'Lost' : 'Joined'}</dt><dd class="num">${moment(Date.parse((h.state === 'lost' ? h.lost_at : h.joined_at) ?? ''), now.value)}</dd></div>
      ${(h.address || h.version) && html`<div><dt>Program</dt><dd class="soft">${h.version ? `fairlead ${plain(h.version, 40)}` : ''}${h.address ? ` at ${plain(h.address, 80)}` : ''}</dd></div>`}
    </dl>
    ${h.sessions.length > 0 && html`<ul class="host-sessions" aria-label="Sessions on ${plain(h.name, 63)}">${h.sessions.slice(0, SHOWN_MAX).map((s) => html`<li key=${s.session}><span class="host-what"><${What} s=${s} /></span><span class="num soft">${span(seenUntil.value + skew.ms - Date.parse(s.since))}</span><span class="soft host-onlost">${lostWords(s.on_lost)}</span></li>`)}
      ${h.sessions.length > SHOWN_MAX && html`<li class="soft">and ${h.sessions.length - SHOWN_MAX} more</li>`}</ul>`}
    ${h.missing.length > 0 && html`<div class="host-missing"><p class="soft">${h.state === 'lost' ? 'Fetched when it is back, without effect:' : 'Being fetched, without effect:'} what it still has of</p><ul>${h.missing.slice(0, SHOWN_MAX).map((s) => html`<li key=${s.session}><span class="host-what"><${What} s=${s} /></span></li>`)}</ul></div>`}
    ${h.late.length > 0 && html`<details class="host-late"><summary>${plural(h.late.length, 'late report')} that changed nothing</summary><ul>${h.late.slice(-SHOWN_MAX).map((l) => html`<li key=${`${l.session} ${l.at}`}><span class="host-what"><${What} s=${l} /></span><p>${plain(l.what, 200)} <time class="num soft">${moment(Date.parse(l.at), now.value)}</time></p><p class="soft">Kept: ${plain(l.kept, 900)}</p></li>`)}</ul></details>`}
    ${(mayDrain(h) || mayRemove(h)) && html`<div class="host-orders">
      ${mayDrain(h) && html`<${Act} look="plain" icon="down" label="Drain" act=${ask('drain-host')} at=${keyOf('drain', h.name)} />`}
      ${mayRemove(h) && html`<${Act} look="stop" icon="cross" label="Remove" act=${ask('remove-host')} at=${keyOf('remove', h.name)} />`}</div>`}
  </article></li>`;
}

function Waiting() {
  const list = all.value.waiting;
  return list.length === 0 ? null : html`<section class="host-waiting" aria-labelledby="host-waiting"><h3 id="host-waiting">${list.length === 1 ? '1 session waits for a host' : `${list.length} sessions wait for a host`}</h3>
    <ul>${list.slice(0, SHOWN_MAX).map((w) => html`<li key=${w.session}><span class="host-what"><${What} s=${w} /></span><p>${plain(w.why, 600)}</p></li>`)}</ul></section>`;
}

/** @param {{leader?: string}} props */
const Invite = ({ leader }) => html`<section class="host-invite" aria-labelledby="host-invite"><h3 id="host-invite">Invite a host</h3>
  <p class="soft">The token is secret and valid for 15 minutes, for one host. It is printed in a terminal only.</p>
  <ol><li>On the leader${leader && html` (<bdi>${plain(leader, 63)}</bdi>)`}: <code>fairlead host invite --label gpu</code></li><li>On the other machine, in an empty folder or a clone of the repository: <code>fairlead host join TOKEN</code></li><li>There: <code>fairlead up</code></li></ol>
  <p class="soft">A host that also keeps the journal, and can lead if the leader is lost: <code>fairlead host invite --engine</code>. It takes three of them, the leader included.</p></section>`;

export function HostsPage() {
  const { on, team, leader, hosts, mixed } = all.value;
  const n = toLookAt.value, journal = journalWords(all.value);
  return html`<div class="hosts-page"><h2 id="hosts-title" tabIndex=${-1}>Hosts</h2>
    ${!known.value ? html`<p class="quiet-note">Asking Fairlead for the hosts\u2026</p>`
      : !on ? html`<p class="soft">Everything runs on this machine. To run sessions on other machines too: <code>fairlead cluster init</code></p>`
      : html`<p class="soft">${team && html`Team <bdi>${plain(team, 63)}</bdi>. `}${n === 0 ? 'All is well.' : `${n} to look at.`}</p>
        ${journal && html`<p class="soft host-journal">${marked(journal, 800)}</p>`}
        ${mixed && html`<p class="soft host-mixed">${plain(mixed, 600)}</p>`}
        <${Waiting} /><ul class="hosts">${hosts.map((h) => html`<${Card} key=${h.name} of=${h} />`)}</ul><${Invite} leader=${leader} />`}</div>`;
}

/** The dialogs that ask before a host is drained or removed. */
export function HostDialogs() {
  const verb = dialog.value === 'drain-host' ? 'drain' : dialog.value === 'remove-host' ? 'remove' : null;
  const h = verb && all.value.hosts.find((h) => h.name === about.value);
  if (!verb || !h) return null;
  const name = plain(h.name, 63), busy = plural(h.sessions.length, 'session');
  const send = async () => {
    if (!live.peek() || !await orderHost(verb, h.name)) return;
    dialog.value = '';
  };
  return html`<${Sheet} title="${verb === 'drain' ? 'Drain' : 'Remove'} ${name}?"><ul class="plain-list">
      ${verb === 'drain' ? html`<li>It gets no new session.</li><li>${h.sessions.length > 0 ? `Its ${busy} will finish. It leaves when the last one has ended.` : 'It has no session, so it leaves at once.'}</li>`
        : h.state === 'lost' ? html`<li>It is given up. Sessions that wait for it stay until a person ends them.</li>`
        : html`<li>${h.sessions.length > 0 ? `Its lease is closed now. Its ${busy} will end by their deadline, within 45 seconds, also if it cannot be reached.` : 'Its lease is closed now.'}</li>${h.sessions.length > 0 && html`<li>Then their work begins elsewhere or waits, as on_lost says.</li>`}`}
      <li>To come back it needs a new invitation.</li></ul>
    <${Fault} at=${keyOf(verb, h.name)} />
    <div class="dialog-foot"><button type="button" class="plain-button" onClick=${() => { dialog.value = ''; }}>Keep it</button><button type="button" class="order ${verb === 'drain' ? 'order-primary' : 'order-stop'}" onClick=${send}>${verb === 'drain' ? 'Drain the Host' : 'Remove the Host'}</button></div><//>`;
}
