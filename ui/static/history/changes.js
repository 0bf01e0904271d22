// Changes as a list: of one agent or of the team, in plain words, of all times or of one.

import * as api from '../shell/api.js';
import { outcomeOf } from '../agents/words.js';
import { count, moment, plural } from '../shell/format.js';
import { html, signal, useEffect, useSignal } from '../shell/lib.js';
import { isReport } from '../agents/state.js';
import { seenAt } from '../now/digest.js';
import { answers, asOf, now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { period, showPeriod, spot } from '../shell/router.js';
import { useChange } from './change.js';
import { PERIODS, periodOf } from './period.js';
import { changeActor, changeLine, changeWords, isDetail, pageOf, subjectOf } from './words.js';
import { lookBackTo } from '../moment/state.js';
import { showDetails } from '../shell/prefs.js';

/** @typedef {import('../shell/api.js').Change} Change */

/** Rows shown at first. */
const PAGE = 60;
/** Requests for one part of the past; the command line has no such limit. */
const REQUESTS_MAX = 20;
/** Rows of one part of the past. */
const ROWS_MAX = 5000;

/** The reason for each rule, by machine, row, state and event; read once from the server's tables. */
const reasons = signal(/** @type {Map<string, string>} */ (new Map()));
let asked = false;

async function learnReasons() {
  if (asked) return;
  asked = true;
  try {
    const { machines } = await api.machines();
    const map = new Map();
    for (const m of machines ?? []) for (const r of m.rows ?? []) if (r.why) map.set(`${m.name} ${r.id} ${r.from} ${r.event}`, r.why);
    reasons.value = map;
  } catch { asked = false; /* the list works without reasons */ }
}

/** @param {{change: Change, whole?: boolean}} props whole: the list is about the team, so the row names its subject */
export function ChangeRow({ change: ch, whole }) {
  const why = reasons.value.get(`${ch.machine} ${ch.row} ${ch.from} ${ch.trigger}`);
  const details = showDetails.value === 'on';
  const subject = whole ? subjectOf(ch) : '', page = subject && pageOf(ch);
  const words = whole || /^(control|session)\//.test(ch.entity) ? changeWords(ch) : changeLine(ch);
  return html`<li class="change change-${ch.machine === 'session' ? 'session' : 'control'}" data-seq=${ch.seq}>
    <button type="button" class="link num change-time" title="Show the page as it was then" onClick=${() => lookBackTo(ch.seq)}><time dateTime=${ch.time}>${moment(Date.parse(ch.time), now.value)}</time></button>
    <span class="change-what">${subject ? html`<b class="change-of">${page ? html`<a class="link" href=${page}><bdi>${subject}</bdi></a>` : html`<bdi>${subject}</bdi>`}</b> ${words}` : html`<b>${words.charAt(0).toUpperCase() + words.slice(1)}</b>`}
      ${details && html`<span class="change-why"><code class="rule">${plain(ch.row, 12) || '\u2013'}</code> ${plain(ch.from, 40) || 'nothing'}<span aria-hidden="true"> \u2192 </span><span class="hidden"> to </span>${plain(ch.to, 40)}, ${plain(ch.trigger, 160)}</span>`}
      ${details && why && html`<span class="change-why">${plain(why, 300)}</span>`}</span>
    <span class="soft who">${changeActor(ch)}</span>
    ${details && html`<span class="num soft seq">#${ch.seq}</span>`}
  </li>`;
}

/** The text that a change carries: a question, a note, a status. @param {{change: Change}} props */
export function Said({ change: ch }) {
  const d = ch.data ?? {}, q = d.question?.question ?? {};
  const texts = [q.what, q.call, q.why, q.text, q.option, d.control?.value?.desired?.note, d.says?.text, d.limited?.why, d.session?.why, d.team?.hold?.note].filter((t) => typeof t === 'string' && t);
  return texts.map((t, i) => html`<p key=${i} class="history-said">${plain(t, 2000)}</p>`);
}

/** The choice of a time: a word, or from and to. */
function Periods() {
  const custom = period.value.includes('..');
  const asked = useSignal(false), typed = asked.value || custom;
  const [from = '', to = ''] = custom ? period.value.split('..') : [];
  const wrong = useSignal('');
  const set = (/** @type {string} */ a, /** @type {string} */ b) => {
    const word = a || b ? `${a}..${b}` : '';
    wrong.value = word && !periodOf(word, 0, 0) ? 'The end is before the beginning.' : '';
    if (!wrong.value) showPeriod(word);
  };
  return html`<div class="history-times"><span class="seg" role="group" aria-label="Time shown">${PERIODS.map(([word, label]) => html`<button type="button" key=${word} aria-pressed=${!typed && period.value === word ? 'true' : 'false'} onClick=${() => { asked.value = false; showPeriod(word); }}>${label}</button>`)}
      <button type="button" aria-pressed=${typed ? 'true' : 'false'} onClick=${() => { asked.value = true; }}>From\u2026 to\u2026</button></span>
    ${typed && html`<span class="history-ends">${[['From', from], ['To', to]].map(([label, value], i) => html`<label key=${label}><span class="soft">${label}</span><input type="datetime-local" value=${value}
      onChange=${(/** @type {any} */ e) => (i === 0 ? set(e.target.value.slice(0, 16), to) : set(from, e.target.value.slice(0, 16)))} /></label>`)}</span>`}
    ${wrong.value && html`<span role="alert">${wrong.value}</span>`}</div>`;
}

/** What a list says of sessions, in one line. @param {Change[]} list */
function ended(list) {
  /** @type {Map<string, number>} */
  const tally = new Map();
  for (const ch of list) {
    const s = ch.data?.session;
    if (ch.machine === 'session' && ch.to === 'none' && s?.outcome) tally.set(s.outcome, (tally.get(s.outcome) ?? 0) + 1);
  }
  const n = [...tally.values()].reduce((a, b) => a + b, 0);
  return n === 0 ? 'No session ended in this time.' : `${plural(n, 'session')} ended: ${[...tally].map(([o, k]) => `${k} ${plain(outcomeOf(o).label, 30)}`).join(', ')}.`;
}

/**
 * What happened in the chosen time: as the journal has it, and what happens meanwhile.
 * @param {string} agent empty: the whole team @param {Change[]} trail the newest changes, as the feed has them
 */
function useNarrowed(agent, trail) {
  const read = useSignal({ word: '', list: /** @type {Change[]} */ ([]), cut: false, wrong: '' });
  const word = period.value;
  const seen = word === 'since-you-looked' ? seenAt.value : 0;
  const waits = word === 'since-you-looked' && !seen;
  const span = word && !waits ? periodOf(word, now.peek(), seen) : null;
  useEffect(() => {
    if (!span || !answers.value) return undefined;
    let gone = false;
    const take = async () => {
      /** @type {Change[]} */
      let list = [];
      let after = 0, cut = false, n = 0;
      const query = { ...(agent && { agent }), since: new Date(span.from).toISOString(), ...(Number.isFinite(span.to) && { until: new Date(span.to).toISOString() }) };
      do {
        const page = await api.journal({ after, ...query });
        if (gone) return;
        list = [...list, ...(page.changes ?? []).filter((ch) => !isReport(ch))];
        after = page.next ?? 0;
        cut = after > 0 && (++n >= REQUESTS_MAX || list.length >= ROWS_MAX);
      } while (after > 0 && !cut);
      read.value = { word, list, cut, wrong: '' };
    };
    take().catch((err) => { if (!gone) read.value = { word, list: [], cut: false, wrong: err instanceof Error ? err.message : String(err) }; });
    return () => { gone = true; };
  }, [agent, word, seen, answers.value, asOf.value]);
  if (!span || read.value.word !== word) return { ...read.value, list: [], wrong: '', known: false };
  const known = read.value.list, last = known.length ? known[known.length - 1].seq : 0;
  const fresh = read.value.cut ? [] : trail.filter((ch) => ch.seq > last && Date.parse(ch.time) >= span.from && Date.parse(ch.time) <= span.to);
  return { ...read.value, list: [...known, ...fresh], known: true };
}

/** The change that a link led to. @param {{whole?: boolean}} props */
function Linked({ whole }) {
  const { change, wrong } = useChange(Number(spot.value));
  if (!spot.value) return null;
  return html`<section class="spot history-spot" aria-label="The change that a link led to">${change ? html`<ol class="change-list"><${ChangeRow} change=${change} whole=${whole} /></ol><${Said} change=${change} />`
    : html`<p class="quiet-note">${wrong ? plain(wrong, 300) : 'Reading\u2026'}</p>`}</section>`;
}

/**
 * The list of changes, with the choice of a time.
 * @param {{agent?: string, trail: Change[], known?: boolean, older: boolean, more?: any}} props agent: absent: the whole team; trail: the newest changes; known: they were read; older: there may be older ones; more: stands beside the heading
 */
export function Changes({ agent = '', trail, known = true, older, more }) {
  const most = useSignal(PAGE);
  const whole = !agent;
  void learnReasons();
  const narrowed = useNarrowed(agent, trail);
  const all = period.value ? narrowed.list : trail;
  const rows = showDetails.value === 'on' ? all : all.filter((ch) => !isDetail(ch));
  const newest = rows.slice(-most.value).reverse();
  const none = period.value && narrowed.wrong ? plain(narrowed.wrong, 300) : !(period.value ? narrowed.known : known) ? 'Reading\u2026' : period.value ? 'Nothing happened in this time.' : 'Nothing has changed yet.';
  return html`<${Linked} whole=${whole} /><${Periods} key=${agent} />
    <div class="history-head"><h3>Changes</h3>${more}<label class="soft"><input type="checkbox" checked=${showDetails.value === 'on'} onChange=${(/** @type {any} */ e) => { showDetails.value = e.target.checked ? 'on' : 'off'; }} /> Show details</label></div>
    ${period.value && all.length > 0 && html`<p class="soft history-sum">${ended(all)}${narrowed.cut ? ` Only the first ${count(all.length)} changes of this time were read; fairlead events${agent && ` --agent ${plain(agent, 80)}`} has all.` : ''}</p>`}
    ${newest.length === 0 ? html`<p class="quiet-note">${none}</p>` : html`<ol class="change-list">${newest.map((ch) => html`<${ChangeRow} key=${ch.seq} change=${ch} whole=${whole} />`)}</ol>`}
    ${rows.length > most.value && html`<button type="button" class="plain-button" onClick=${() => { most.value += PAGE * 2; }}>Show older changes</button>`}
    ${!period.value && older && rows.length <= most.value && html`<p class="soft history-sum">For older changes, choose a time.</p>`}`;
}
