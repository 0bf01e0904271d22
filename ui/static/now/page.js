// Now: what needs this person, what works, what has finished, what comes next.

import * as api from '../shell/api.js';
import { Terminal } from '../agents/ansi.js';
import { OnHost } from '../hosts/onhost.js';
import { waitOf } from '../hosts/state.js';
import { names, team } from '../agents/state.js';
import { FirstAgent } from '../agents/list.js';
import { StatusMark } from '../agents/controls.js';
import { Cards } from '../inbox/card.js';
import { needs } from '../inbox/state.js';
import { Mark } from '../runs/list.js';
import { runLook } from '../runs/words.js';
import { runsKnown } from '../runs/state.js';
import { taskLook } from '../tasks/words.js';
import { answers, asOf, live, seenUntil } from '../shell/connection.js';
import { brief, money, plural } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { plain } from '../shell/text.js';
import { letterKeys } from '../shell/prefs.js';
import { dialog } from '../shell/router.js';
import { Icon } from '../shell/icons.js';
import { open } from './actions.js';
import { JustBefore } from '../history/page.js';
import { SinceYouLooked } from './digest.js';
import { next, rows, working, workingKnown } from './state.js';
import { countWork, headline, workFor } from './words.js';

/** Rows shown at first, and added by each "more". */
const PAGE = 12;

/** @param {{n: number, more: () => void}} props */
const More = ({ n, more }) => (n > 0 ? html`<button type="button" class="plain-button" onClick=${more}>${n} more</button>` : null);

/** The last line of an output, without what a terminal would obey. @param {string} text */
function lastLine(text) {
  const terminal = new Terminal();
  const whole = terminal.write(text);
  return terminal.line.text.trim() || (whole[whole.length - 1]?.text ?? '').trim();
}

/** @param {{work: api.Work}} props */
function WorkRow({ work: w }) {
  const since = w.since ? Date.parse(w.since) : NaN;
  const waits = w.session_id ? waitOf((x) => x.session === w.session_id) : '';
  const what = workFor(w), said = lastLine(w.last ?? '');
  return html`<li class="now-row"><${StatusMark} status=${w.status} />
    <div class="now-what"><p class="now-name"><button type="button" class="now-open" onClick=${() => open(w)}><bdi>${plain(w.agent || w.title || w.step_id, 80)}</bdi></button>${what && html`<span class="now-for">${what}</span>`}</p>
      ${waits ? html`<p class="now-why">${plain(waits, 300)}</p>` : w.status === 'unknown' ? html`<p class="now-why">${plain(w.status_why, 200)}</p>` : said && html`<p class="now-said">${said.slice(0, 200)}</p>`}</div>
    <p class="now-facts num"><${OnHost} name=${w.host} />${w.context_percent ? html`<span class=${w.context_percent >= 80 ? 'now-full' : ''} title="of the model's context, as its program reported last">context ${w.context_percent} %</span>` : ''}${w.files_changed ? html`<span>${plural(w.files_changed, 'file')}</span>` : ''}${w.cost_usd_today ? html`<span title="what ${plain(w.agent, 60)} reported today">${money(w.cost_usd_today)} today</span>` : ''}${Number.isFinite(since) && html`<span>${brief(seenUntil.value + api.skew.ms - since)}</span>`}</p></li>`;
}

function Working() {
  const most = useSignal(PAGE);
  const list = rows.value;
  return html`<section class="now-part" aria-labelledby="now-working"><header><h3 id="now-working">Working</h3>${workingKnown.value && html`<span class="num soft">${list.length}</span>`}</header>
    ${list.length === 0 ? html`<p class="now-none">${workingKnown.value ? asOf.value > 0 ? 'No agent worked.' : html`No agent works. Start one: <code>fairlead start NAME</code>` : 'Asking\u2026'}</p>`
      : html`<ul class="now-rows">${list.slice(0, most.value).map((w) => html`<${WorkRow} key=${w.session_id || w.agent} work=${w} />`)}</ul>`}
    <${More} n=${list.length - most.value} more=${() => { most.value += PAGE; }} /></section>`;
}

function NextUp() {
  const most = useSignal(PAGE);
  const list = next.value;
  return html`<section class="now-part" aria-labelledby="now-next"><header><h3 id="now-next">Next up</h3>${runsKnown.value && html`<span class="num soft">${list.length}</span>`}</header>
    ${list.length === 0 ? html`<p class="now-none">${runsKnown.value ? html`Nothing is queued. A task that waits for another: <code>fairlead task --after T1 "\u2026"</code>` : 'Asking\u2026'}</p>`
      : html`<ul class="now-rows">${list.slice(0, most.value).map((x) => html`<li key=${x.key} class="now-row">${x.run ? html`<${Mark} look=${x.run.task ? taskLook(x.status) : runLook(x.run)} />` : html`<${StatusMark} status=${x.status} />`}
        <div class="now-what"><p class="now-name"><button type="button" class="now-open" onClick=${() => open(x)}><bdi>${x.title}</bdi></button></p>${x.why && html`<p class="now-why">${x.why}</p>`}</div></li>`)}</ul>`}
    <${More} n=${list.length - most.value} more=${() => { most.value += PAGE; }} /></section>`;
}

/** What to do if nothing goes on. */
const Teach = () => html`<div class="now-teach"><p>Give an agent something to do:</p>
  <p><button type="button" class="order order-primary" aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.value) dialog.value = 'task'; }}><${Icon} name="plus" /><span>New task</span></button></p>
  <p class="soft">or in a terminal: <code>fairlead task "Fix the flaky upload test"</code></p></div>`;

export function NowPage() {
  const list = needs.value;
  const known = runsKnown.value && workingKnown.value;
  const n = countWork(working.value);
  const { act, rest } = headline({ needs: list.length, working: n, held: team.value.hold, known, live: answers.value });
  if (known && names.value.length === 0 && list.length === 0) return html`<div class="now now-empty"><h2 class="hidden" id="now-title" tabIndex=${-1}>Now</h2><${FirstAgent} /></div>`;
  const quiet = known && asOf.value === 0 && list.length === 0 && n === 0 && next.value.length === 0;
  return html`<div class="now">
    <header class="now-head ${list.length > 0 ? 'now-act' : ''}"><h2 id="now-title" tabIndex=${-1}>${act}</h2>${rest && html`<p class="soft">${rest}</p>`}</header>
    <div class="now-sides">
      <section class="now-needs" aria-labelledby="now-needs"><h3 class="hidden" id="now-needs">Needs you</h3>
        ${list.length > 0 ? html`<${Cards} list=${list} title="now-title" short />
          ${letterKeys.value === 'on' && html`<p class="now-keys soft"><kbd>J</kbd> <kbd>K</kbd> next, before<span><kbd>A</kbd> yes</span><span><kbd>R</kbd> no</span></p>`}`
          : known && html`<div class="now-clear"><${Icon} name="check" /><p>What needs a person appears here: approvals, questions, and what failed.</p></div>`}
        ${quiet && html`<${Teach} />`}
        ${list.length === 0 && !quiet && html`<${Working} />`}</section>
      <div class="now-rest">${(list.length > 0 || quiet) && html`<${Working} />`}${asOf.value > 0 ? html`<${JustBefore} />` : html`<${SinceYouLooked} />`}<${NextUp} /></div>
    </div>
  </div>`;
}
