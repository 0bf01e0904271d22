// One step: its result, its output, and the orders for it. Reports of agents are shown as text.

import * as api from '../shell/api.js';
import { WaitsForHost } from '../hosts/onhost.js';
import { elsewhere } from '../hosts/state.js';
import { moment, span } from '../shell/format.js';
import { html, useEffect, useRef, useSignal } from '../shell/lib.js';
import { inbox, isOver, shown, step, stepIDs } from './state.js';
import { stepLook, tries } from './words.js';
import { live, now, seenUntil } from '../shell/connection.js';
import { lines, plain } from '../shell/text.js';
import { readPast, sessionOf, trailed } from './trail.js';
import { dialog, showRun, showTask, stepID } from '../shell/router.js';
import { Answer } from '../inbox/approval.js';
import { Icon } from '../shell/icons.js';
import { Tape } from '../agents/outputtab.js';
import { Mark } from './list.js';

/** Artifacts, metrics and log lines shown at most; the report has all of them. */
const LIST_MAX = 200;

/** @param {{label: string, children?: any}} props */
const Fact = ({ label, children }) => html`<div class="step-fact"><dt>${label}</dt><dd>${children}</dd></div>`;

/** @param {{list: string[]}} props */
const Texts = ({ list }) => html`<ul class="texts">${list.slice(0, LIST_MAX).map((t, i) => html`<li key=${i}><code>${plain(t, 400)}</code></li>`)}
  ${list.length > LIST_MAX && html`<li class="soft">and ${list.length - LIST_MAX} more</li>`}</ul>`;

/** @param {{s: import('../shell/api.js').StepView}} props */
function Took({ s }) {
  const from = Date.parse(s.started_at ?? '');
  if (!Number.isFinite(from)) return html`<span class="soft">not yet</span>`;
  const to = s.ended_at ? Date.parse(s.ended_at) : seenUntil.value + api.skew.ms;
  return html`<span class="num">${moment(from, now.value)}, ${span(to - from)}</span>`;
}

/** @param {{s: import('../shell/api.js').StepView}} props */
function Reported({ s }) {
  const metrics = Object.entries(s.metrics ?? {});
  const artifacts = s.artifacts ?? [], logs = s.logs ?? [];
  if (metrics.length + artifacts.length + logs.length === 0) return null;
  return html`<div class="reported">
    ${artifacts.length > 0 && html`<section><h4>Artifacts</h4><${Texts} list=${artifacts} /></section>`}
    ${metrics.length > 0 && html`<section><h4>Metrics</h4><dl class="metrics">${metrics.slice(0, LIST_MAX).map(([k, v]) => html`<div key=${k}><dt>${plain(k, 120)}</dt><dd>${plain(v, 200)}</dd></div>`)}</dl></section>`}
    ${logs.length > 0 && html`<section><h4>Reported log</h4><${Texts} list=${logs} /></section>`}
  </div>`;
}

/** @param {{run: string, s: import('../shell/api.js').StepView}} props */
function Orders({ run, s }) {
  const over = shown.value ? isOver(shown.value) : false;
  const off = live.value ? undefined : 'true';
  return html`<div class="step-orders">
    ${s.status === 'RUNNING' && html`<button type="button" class="order order-quiet" aria-disabled=${off} onClick=${() => { if (live.value) dialog.value = 'cancel-step'; }}><${Icon} name="cross" /><span>Cancel step</span></button>`}
    ${over && s.status !== 'PENDING' && html`<button type="button" class="order order-plain" aria-disabled=${off} onClick=${() => { if (live.value) dialog.value = 'resume-step'; }}><${Icon} name="once" /><span>Resume from here</span></button>`}
    <button type="button" class="icon-button" aria-label="Close the step" onClick=${() => showRun(run)}><${Icon} name="close" /></button>
  </div>`;
}

/** @param {{run: string}} props */
export function StepDetail({ run }) {
  const id = stepID.value;
  const s = step(id)?.value;
  const title = useRef(/** @type {HTMLElement | null} */ (null));
  const hidden = useSignal(document.hidden);
  useEffect(() => {
    const see = () => { hidden.value = document.hidden; };
    document.addEventListener('visibilitychange', see);
    return () => document.removeEventListener('visibilitychange', see);
  }, []);
  useEffect(() => { if (s) void readPast(run, id); }, [run, id, s === undefined]);
  useEffect(() => { title.current?.scrollIntoView({ block: 'nearest' }); }, [id, s === undefined]);
  if (!s) {
    return stepIDs.value.length > 0 ? html`<section class="step"><p class="quiet-note">This run has no step called ${plain(id, 64)}.</p></section>` : null;
  }
  const look = stepLook(s.status);
  void trailed.value;
  const session = s.session || s.last_session || sessionOf(run, id);
  const words = tries(s);
  return html`<section class="step" aria-labelledby="step-title">
    <header class="step-head"><h3 id="step-title" ref=${title}><bdi>${plain(id, 64)}</bdi></h3><${Mark} look=${look} />${words && html`<span class="soft">${words}</span>`}<${Orders} run=${run} s=${s} /></header>
    ${s.denied && html`<p class="soft step-denied">${plain(s.denied, 400)}</p>`}
    ${s.cut && html`<p class="soft step-denied">${plain(s.cut, 400)}</p>`}
    ${s.last_error && html`<p class="worry-box"><${Icon} name="look" /><span class="step-error">${lines(s.last_error, 1000)}</span></p>`}
    <${WaitsForHost} is=${(/** @type {import('../shell/api.js').WaitingSession} */ w) => w.run === run && w.step === id} />
    ${s.waits_for && html`<p class="soft step-waits">${plain(s.waits_for, 400)}</p>`}
    ${s.status === 'WAITING_ON_HUMAN' && (shown.value?.task && !s.input_schema ? html`<div class="answer-foot"><button type="button" class="order order-primary" onClick=${() => showTask(run)}><${Icon} name="look" /><span>Look at the changes</span></button></div>` : html`<${Answer} key=${`${run}/${id}`} run=${run} step=${id} schema=${s.input_schema} bad=${s.bad_input} path=${s.manual_input_path} shown=${inbox.value.find((i) => i.kind === 'step' && i.run_id === run && i.step_id === id)?.shown} id="answer" />`)}
    <dl class="step-facts">
      <${Fact} label="Agent">${plain(s.agent || 'a command', 80)}<//>
      ${elsewhere(s.host) && html`<${Fact} label="Host"><a class="link" href="#/hosts"><bdi>${plain(s.host, 63)}</bdi></a><//>`}
      <${Fact} label="Began, took"><${Took} s=${s} /><//>
      <${Fact} label="Attempts"><span class="num">${s.attempts}</span>${s.iteration_count > 0 ? html`, <span class="num">${s.iteration_count}</span> loop-backs` : ''}<//>
      ${(s.needs ?? []).length > 0 && html`<${Fact} label="Needs">${(s.needs ?? []).slice(0, 20).map((n, i) => html`${i > 0 ? ', ' : ''}<button key=${n} type="button" class="link" onClick=${() => showRun(run, n)}>${plain(n, 64)}</button>`)}<//>`}
      ${s.loop_back_to && html`<${Fact} label="Leads back to"><button type="button" class="link" onClick=${() => showRun(run, s.loop_back_to)}>${plain(s.loop_back_to, 64)}</button><//>`}
      ${s.blocked_by_loop && html`<${Fact} label="Blocked by the loop of">${plain(s.blocked_by_loop, 64)}<//>`}
      ${s.answer && html`<${Fact} label="Answer">${plain(s.answer.words, 300)}<//>`}
      ${s.prompt_path && html`<${Fact} label="Prompt"><code>${plain(s.prompt_path, 300)}</code><//>`}
      ${s.report_path && html`<${Fact} label="Report"><code>${plain(s.report_path, 300)}</code><//>`}
      ${s.log_path && html`<${Fact} label="Log"><code>${plain(s.log_path, 300)}</code><//>`}
    </dl>
    <${Reported} s=${s} />
    ${session && !hidden.value && html`<div class="step-said"><h4>${s.session ? 'Output' : 'Last output'}</h4><${Tape} key=${session} session=${session} onFollow=${() => {}} /></div>`}
  </section>`;
}
