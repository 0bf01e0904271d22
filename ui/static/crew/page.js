// The crew on its nine seats, with the lead in the middle, and the main button.

import { button, crew, crewKnown, crewWrong, documentCell, lead, LEAD_SEAT, members, onSeat, seatless, SEATS, sure, tally, memberOf } from './state.js';
import { imported, importFiles, importing, sleep, summon, wake } from './actions.js';
import { lastWords } from './lastwords.js';
import { evidenceOf, headline, leadLook, leadWords, lookOf, nameOf, statusAt, NOTICES, ago } from './words.js';
import { skew } from '../shell/api.js';
import { html, signal, useEffect, useLayoutEffect, useRef, useSignal } from '../shell/lib.js';
import { asked, faults } from '../shell/orders.js';
import { answers, live, seenUntil } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { LEAD, member, showMember } from '../shell/router.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Egg, Face, LeadFace, NoFace } from './facedrawing.js';
import { Icon } from '../shell/icons.js';
import { Portrait } from './member.js';

/** Older notices are listed on the lead's page only. */
const FRESH_MS = 15 * 60_000;

/** The newest notice that a person has dismissed on this page. */
const putAway = signal('');

/** Now, by the server's clock. */
const serverNow = () => seenUntil.value + skew.ms;

/** The selected member; a wide page always shows one. */
export const shownMember = () => memberOf(member.value) || LEAD;

/** @param {{look: string}} props */
const Dot = ({ look }) => html`<span class="seat-dot seat-dot-${look}" aria-hidden="true"></span>`;

/** What a member said last. @param {{by: string}} props */
function Said({ by }) {
  const text = lastWords.value.get(by);
  return text ? html`<q class="seat-said"><bdi>${plain(text, 160)}</bdi></q>` : null;
}

/** @param {{id: string, seat: number, roving: boolean}} props */
function Seat({ id, seat, roving }) {
  const d = documentCell(id)?.value;
  if (!d) return null;
  const look = lookOf(statusAt(d, serverNow()), answers.value);
  const shown = shownMember() === id;
  return html`<li class="seat seat-${look} ${shown ? 'seat-shown' : ''}" data-seat=${seat} data-status=${plain(statusAt(d, serverNow()), 12)}>
    <span class="seat-face">${look === 'egg' ? html`<${Egg} seat=${seat} />` : html`<${Face} color=${d.color} eyes=${d.faceVariant?.eyes} mouth=${d.faceVariant?.mouth} name=${d.name ?? d.id} />`}<${Dot} look=${look} /></span>
    <button type="button" class="seat-name" tabIndex=${roving ? 0 : -1} aria-current=${shown ? 'true' : undefined} onClick=${() => showMember(id)}><bdi>${nameOf(d)}</bdi>${!d.name && html`<span class="hidden"> on seat ${d.gridPosition}</span>`}</button>
    ${d.colorName && html`<span class="seat-color"><bdi>${plain(d.colorName, 60)}</bdi></span>`}
    <span class="seat-words num">${evidenceOf(d, answers.value, serverNow())}</span><${Said} by=${d.name ?? ''} />
  </li>`;
}

/** @param {{roving: boolean}} props */
function LeadSeat({ roving }) {
  const l = lead.value;
  if (!l.agent) return html`<li class="seat seat-free" data-seat=${LEAD_SEAT}><span class="seat-face"><${NoFace} /></span><span class="seat-words">the lead's seat</span></li>`;
  const look = leadLook(l, answers.value);
  const shown = shownMember() === LEAD;
  return html`<li class="seat seat-lead seat-${look} ${shown ? 'seat-shown' : ''}" data-seat=${LEAD_SEAT} data-status=${plain(l.state, 12)}>
    <span class="seat-face"><${LeadFace} asleep=${look === 'dim'} /><${Dot} look=${look} /></span>
    <button type="button" class="seat-name" tabIndex=${roving ? 0 : -1} aria-current=${shown ? 'true' : undefined} onClick=${() => showMember(LEAD)}><bdi>${plain(l.agent, 64)}</bdi></button>
    <span class="seat-color">lead</span><span class="seat-words num">${leadWords(l, answers.value, serverNow())}</span><${Said} by=${l.agent} />
  </li>`;
}

/** Arrow keys move between the seats as they are arranged. @param {KeyboardEvent & {currentTarget: HTMLElement}} e */
function walk(e) {
  /** @type {Record<string, [number, number]>} */
  const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const step = by[e.key];
  const from = e.target instanceof Element ? e.target.closest('.seat') : null;
  if (!step || !(from instanceof HTMLElement)) return;
  e.preventDefault();
  let at = Number(from.dataset.seat);
  for (;;) {
    const x = (at % 3) + step[0], y = Math.floor(at / 3) + step[1];
    if (x < 0 || x > 2 || y < 0 || y > 2) return;
    at = y * 3 + x;
    const there = e.currentTarget.querySelector(`.seat[data-seat="${at}"] .seat-name`);
    if (there instanceof HTMLElement) { there.focus(); return; }
  }
}

function Seats() {
  const ids = SEATS.map((s) => (s === LEAD_SEAT ? LEAD : onSeat(s)));
  const rover = ids.includes(shownMember()) ? shownMember() : LEAD;
  return html`<ol class="seats" aria-label="Seats" onKeyDown=${walk}>${SEATS.map((s) => (s === LEAD_SEAT ? html`<${LeadSeat} key="lead" roving=${rover === LEAD} />`
    : ids[s] ? html`<${Seat} key=${ids[s]} id=${ids[s]} seat=${s} roving=${rover === ids[s]} />`
    : html`<li key=${`free${s}`} class="seat seat-free" data-seat=${s}><span class="seat-face"><${NoFace} /></span><span class="seat-words">free</span></li>`))}</ol>
    ${seatless.value.length > 0 && html`<h3 class="seatless-title">Without a seat of their own</h3><ul class="seats">${seatless.value.map((id) => html`<${Seat} key=${id} id=${id} seat=${-1} roving=${true} />`)}</ul>`}`;
}

/** The main button. */
function Button() {
  const word = button.value;
  if (word === 'SUMMON') return html`<${Act} look="start crew-button" icon="spark" label="SUMMON" at="crew" act=${summon} hint="For a new crew: puts an egg on each free seat, and the lead hatches them" />`;
  if (word === 'WAKE') return html`<${Act} look="start crew-button" icon="sun" label="WAKE" at="crew" act=${wake} hint="Asks the lead which members are awake; it wakes the others with their souls" />`;
  if (word === 'none' || !word) return null;
  return html`<button type="button" class="order order-start crew-button" aria-disabled="true" aria-busy="true"><${Icon} name="sun" /><span>${plain(word, 20)}</span></button>`;
}

/** Puts the crew to sleep. It asks for confirmation, because it ends a session. */
function Sleep() {
  const open = lead.value.session !== '';
  const here = useRef(/** @type {HTMLElement | null} */ (null));
  const asks = useRef(false);
  useEffect(() => { if (!open) sure.value = false; }, [open]);
  useEffect(() => () => { sure.value = false; }, []);
  // before drawing: if the focus moved later, a key press could miss the button
  useLayoutEffect(() => { if (asks.current !== sure.value) here.current?.querySelector('button')?.focus(); asks.current = sure.value; }, [sure.value]);
  if (!open) return null;
  if (!sure.value) {
    const off = !live.value || asked.value !== '';
    return html`<span ref=${here}><button type="button" class="order order-quiet" aria-disabled=${off ? 'true' : undefined} title="Ends the lead's session; no member is lost" onClick=${() => { if (!off) sure.value = true; }}><${Icon} name="moon" /><span>Sleep\u2026</span></button></span>`;
  }
  return html`<span ref=${here} class="sure" role="group" aria-label="End the lead's session?"><span>End ${plain(lead.value.agent, 40)}\u2019s session? All members sleep; none is lost.</span>
    <button type="button" class="order order-quiet" onClick=${() => { sure.value = false; }}>No</button>
    <${Act} look="plain" icon="moon" label="Yes, sleep" at="crew" act=${() => sleep().then((done) => { sure.value = false; return done; })} /></span>`;
}

/** The last notice, until a person dismisses it. */
function Noticed() {
  const list = crew.value.notices;
  const last = list[list.length - 1];
  if (!last || last.at <= putAway.value || serverNow() - Date.parse(last.at) > FRESH_MS) return null;
  const count = list.filter((n) => n.at > putAway.value && serverNow() - Date.parse(n.at) <= FRESH_MS).length;
  return html`<p class="noticed"><${Icon} name="look" /><span><b>${NOTICES[last.kind] ?? plain(last.kind, 20)}</b> ${plain(last.text, 240)} <span class="soft num">${ago(last.at, serverNow())}</span></span>
    ${count > 1 && html`<button type="button" class="link" onClick=${() => showMember(LEAD, 'soul')}>all ${count}</button>`}
    <button type="button" class="icon-button" aria-label="Dismiss" onClick=${() => { putAway.value = last.at; }}><${Icon} name="close" /></button></p>`;
}

/** The results of dropped files. */
function Imported() {
  const list = imported.value;
  return html`<div class="imported" role="status">${importing.value && html`<p class="soft">Reading\u2026</p>`}${list.length > 0 && html`<ul>${list.map((r, i) => html`<li key=${i} class=${r.ok ? 'import-ok' : 'import-no'}><${Icon} name=${r.ok ? 'check' : 'look'} /><span><b><bdi>${r.file}</bdi></b> ${r.words}</span></li>`)}</ul>
    <button type="button" class="icon-button" aria-label="Dismiss" onClick=${() => { imported.value = []; }}><${Icon} name="close" /></button>`}</div>`;
}

function Import() {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const off = !live.value || importing.value;
  return html`<span class="take-in"><input ref=${input} type="file" accept=".json,application/json" multiple hidden onChange=${() => { const el = /** @type {HTMLInputElement} */ (input.current); void importFiles([...(el.files ?? [])]).then(() => { el.value = ''; }); }} />
    <button type="button" class="order order-quiet" aria-disabled=${off ? 'true' : undefined} title="Documents from another device. You can also drop them here." onClick=${() => { if (!off) input.current?.click(); }}><${Icon} name="save" /><span>Import a document\u2026</span></button></span>`;
}

/** @param {DragEvent} e */
const hasFiles = (e) => [...(e.dataTransfer?.types ?? [])].includes('Files');

const NoLead = () => html`<div class="empty crew-empty"><h3>This team has no lead yet</h3><p>Name one of the agents as lead in <code>fairlead.yaml</code> and start Fairlead again. <code>fairlead init --lead</code> writes its instructions.</p>
  <pre class="sample">team:
  lead: julian
  size: 8</pre></div>`;

export function CrewPage() {
  const over = useSignal(0); // dragenter and dragleave fire for each element under the pointer
  useEffect(() => { faults.value = {}; }, []);
  const body = !crewKnown.value ? html`<div class="empty"><p>${crewWrong.value ? plain(crewWrong.value, 400) : 'Loading\u2026'}</p></div>`
    : !lead.value.agent && members.value.length === 0 ? html`<${NoLead} />` : html`<${Seats} />`;
  return html`<section class="crew ${over.value > 0 ? 'crew-over' : ''}" aria-labelledby="crew-title"
      onDragEnter=${(/** @type {DragEvent} */ e) => { if (hasFiles(e)) { e.preventDefault(); over.value++; } }}
      onDragOver=${(/** @type {DragEvent} */ e) => { if (hasFiles(e)) e.preventDefault(); }}
      onDragLeave=${(/** @type {DragEvent} */ e) => { if (hasFiles(e)) over.value = Math.max(0, over.value - 1); }}
      onDrop=${(/** @type {DragEvent} */ e) => { if (!hasFiles(e)) return; e.preventDefault(); over.value = 0; void importFiles([...(e.dataTransfer?.files ?? [])]); }}>
    <header class="crew-head"><div><h2 id="crew-title" tabIndex=${-1}>Crew</h2><p class="crew-line">${crewKnown.value && headline(crew.value, lead.value, tally.value, answers.value)}</p></div><${Button} /></header>
    <${Fault} at="crew" /><${Noticed} /><${Imported} />
    <div class="crew-grid">${body}</div>
    ${crewKnown.value && lead.value.agent && html`<footer class="crew-foot"><${Import} /><${Sleep} /></footer>`}
    <div class="crew-drop" aria-hidden="true"><p>Drop a document to import it</p></div>
  </section><${Portrait} who=${shownMember()} />`;
}
