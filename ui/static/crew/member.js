// One member of the crew: its soul, its transcript, and the age of what is known.

import * as api from '../shell/api.js';
import { crew, crewKnown, documentCell, lead } from './state.js';
import { wakeOne } from './actions.js';
import { ago, evidenceOf, leadLook, leadWords, lookOf, nameOf, NOTICES, shortSession, statusAt } from './words.js';
import { moment } from '../shell/format.js';
import { html, useEffect, useSignal } from '../shell/lib.js';
import { answers, now, seenUntil } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { go, LEAD, member, memberSide, showMember, SIDES } from '../shell/router.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Egg, Face, LeadFace } from './facedrawing.js';
import { Icon } from '../shell/icons.js';
import { Words } from '../channels/entrylist.js';
import { Transcript } from './transcriptlist.js';

/** @typedef {import('../shell/api.js').Document} Document */

const serverNow = () => seenUntil.value + api.skew.ms;

/** @param {string | null} iso */
const at = (iso) => (iso ? moment(Date.parse(iso), now.value) : 'never');

/** Arrow keys switch between the two tabs. @param {KeyboardEvent} e */
function walkTabs(e) {
  if (e.key !== 'ArrowRight' && e.key !== 'ArrowLeft') return;
  e.preventDefault();
  const next = SIDES[1 - SIDES.indexOf(memberSide.value)];
  showMember(member.value || LEAD, next);
  document.getElementById(`side-${next}`)?.focus();
}

/** @param {{words: Record<string, string>}} props the words on each tab */
const Tabs = ({ words }) => html`<div class="tabs" role="tablist" aria-label="About this member" onKeyDown=${walkTabs}>${SIDES.map((s) => html`<button type="button" key=${s} id=${`side-${s}`} role="tab" aria-selected=${memberSide.value === s ? 'true' : 'false'} aria-controls="side"
  tabIndex=${memberSide.value === s ? 0 : -1} onClick=${() => showMember(member.value || LEAD, s)}>${words[s]}</button>`)}</div>`;

const Back = () => html`<button type="button" class="back" onClick=${() => go('crew')}><${Icon} name="back" />Crew</button>`;

/** The text in which the agent described itself when it hatched. @param {{d: Document}} props */
function Soul({ d }) {
  const fetched = useSignal('');
  const wrong = useSignal('');
  const leftOut = !d.individuationArtifact && d.status !== 'hatching' && crew.value.soulsLeftOut > 0;
  useEffect(() => {
    if (!leftOut || !answers.value) return;
    api.soul(d.id).then((text) => { fetched.value = text; }, (err) => { wrong.value = err instanceof Error ? err.message : String(err); });
  }, [d.id, leftOut, answers.value]);
  const text = d.individuationArtifact || fetched.value;
  if (d.status === 'hatching') return html`<p class="quiet-note">Not hatched yet. The agent will choose a name, a colour and a face, and describe itself.</p>`;
  if (!text) return html`<p class="quiet-note">${leftOut ? wrong.value ? plain(wrong.value, 300) : 'Reading\u2026' : 'This member has no soul text.'}</p>`;
  return html`<div class="soul"><${Words} key=${d.id} text=${text} /></div>`;
}

/** @param {{d: Document}} props */
function Wake({ d }) {
  const waking = crew.value.inProgress !== '';
  if (d.status !== 'sleeping' && d.status !== 'unknown') return null;
  if (waking) return html`<button type="button" class="order order-plain" aria-disabled="true"><${Icon} name="sun" /><span>WAKING\u2026</span></button>`;
  return html`<${Act} look="plain" icon="sun" label="Wake ${nameOf(d)}" at=${`wake ${d.id}`} act=${() => wakeOne(d.id, nameOf(d))} hint="Wakes only this member" />`;
}

/** @param {{d: Document}} props */
function Member({ d }) {
  const look = lookOf(statusAt(d, serverNow()), answers.value);
  const side = memberSide.value;
  return html`<section class="portrait portrait-${look}" aria-labelledby="crew-who"><${Back} />
    <header class="portrait-head"><span class="portrait-face">${look === 'egg' ? html`<${Egg} seat=${d.gridPosition} />` : html`<${Face} color=${d.color} eyes=${d.faceVariant?.eyes} mouth=${d.faceVariant?.mouth} name=${d.name ?? d.id} />`}</span>
      <div class="portrait-who"><h2 id="crew-who"><bdi>${nameOf(d)}</bdi></h2>
        <p class="portrait-words"><span class="seat-dot seat-dot-${look}" aria-hidden="true"></span><span class="num">${evidenceOf(d, answers.value, serverNow())}</span></p>
        <p class="portrait-about">${[d.colorName, d.gender].filter(Boolean).map((w, i) => html`<bdi key=${i}>${plain(w, 80)}</bdi>`)}<span>seat ${d.gridPosition}</span></p></div><${Wake} d=${d} /></header>
    <${Fault} at=${`wake ${d.id}`} />
    <dl class="portrait-facts"><div><dt>Hatched</dt><dd class="num">${at(d.createdAt)}</dd></div><div><dt>Last alive</dt><dd class="num">${at(d.lastAliveAt)}</dd></div>
      <div><dt>In session</dt><dd>${d.lastSessionId ? html`<code title=${plain(d.lastSessionId, 140)}>${shortSession(d.lastSessionId)}</code>` : 'none yet'}</dd></div><div><dt>Document</dt><dd><code>${plain(d.id, 64)}</code></dd></div></dl>
    <${Tabs} words=${{ soul: 'Soul', transcript: 'Transcript' }} />
    <div id="side" class="side side-${side}" role="tabpanel" aria-labelledby=${`side-${side}`} tabIndex=${side === 'soul' ? 0 : undefined}>
      ${side === 'soul' ? html`<${Soul} d=${d} />` : d.name ? html`<${Transcript} key=${d.id} speaker=${d.name} session=${d.lastSessionId ?? ''} />` : html`<p class="quiet-note">A member without a name has no transcript.</p>`}</div>
  </section>`;
}

/** Notices about the lead's messages. */
function Notices() {
  const list = [...crew.value.notices].reverse();
  if (list.length === 0) return html`<p class="quiet-note">No notices. Messages of the lead about the crew that are invalid or refused appear here.</p>`;
  return html`<ol class="notices">${list.map((n, i) => html`<li key=${`${n.at}/${i}`} class="noticed-${plain(n.kind, 10)}"><span class="tag">${NOTICES[n.kind] ?? plain(n.kind, 20)}</span><span class="notice-words">${plain(n.text, 2400)}</span>
    <span class="soft notice-when"><time class="num">${moment(Date.parse(n.at), now.value)}</time>${n.session && html` <code>${shortSession(n.session)}</code>`}</span></li>`)}</ol>`;
}

function LeadPortrait() {
  const l = lead.value;
  if (!l.agent) return html`<section class="portrait portrait-none" aria-label="The lead"><div class="empty"><p>The lead answers for the crew: only its reports change the state of members.</p></div></section>`;
  const look = leadLook(l, answers.value);
  const side = memberSide.value;
  return html`<section class="portrait portrait-${look}" aria-labelledby="crew-who"><${Back} />
    <header class="portrait-head"><span class="portrait-face"><${LeadFace} asleep=${look === 'dim'} /></span>
      <div class="portrait-who"><h2 id="crew-who"><bdi>${plain(l.agent, 64)}</bdi></h2>
        <p class="portrait-words"><span class="seat-dot seat-dot-${look}" aria-hidden="true"></span><span class="num">${leadWords(l, answers.value, serverNow())}</span></p>
        <p class="portrait-about"><span>leads this crew</span><a class="link" href="#/agents/${encodeURIComponent(l.agent)}/output">its output</a></p></div></header>
    <dl class="portrait-facts"><div><dt>Session</dt><dd>${l.session ? html`<code>${plain(l.session, 60)}</code>` : 'none'}</dd></div><div><dt>Reported</dt><dd class="num">${l.reported_at ? ago(l.reported_at, serverNow()) : l.session ? 'not yet' : '\u2013'}</dd></div></dl>
    <${Tabs} words=${{ soul: `Notices${crew.value.notices.length ? ` (${crew.value.notices.length})` : ''}`, transcript: 'Transcript' }} />
    <div id="side" class="side side-${side}" role="tabpanel" aria-labelledby=${`side-${side}`} tabIndex=${side === 'soul' ? 0 : undefined}>
      ${side === 'soul' ? html`<${Notices} />` : html`<${Transcript} key="lead" speaker=${l.agent} session="" />`}</div>
  </section>`;
}

/** @param {{who: string}} props the id of a document, or LEAD */
export function Portrait({ who }) {
  if (who === LEAD) return html`<${LeadPortrait} key="lead" />`;
  const d = crewKnown.value ? documentCell(who)?.value : undefined;
  if (!d || d.status === 'expired') {
    return html`<section class="portrait portrait-none" aria-label="Selected member"><${Back} /><div class="empty">${crewKnown.value ? html`<h2>No such member</h2><p>The crew has no document <code>${plain(who, 64)}</code>. An egg that did not hatch in time is removed.</p>
      <button type="button" class="plain-button" onClick=${() => go('crew')}>To the crew</button>` : html`<p>Loading\u2026</p>`}</div></section>`;
  }
  return html`<${Member} key=${who} d=${d} />`;
}
