// The selected agent: its status, its orders, and everything that is known of it.

import * as api from '../shell/api.js';
import { concerns, contactWords, wallWords } from './words.js';
import { OpenPort } from './openport.js';
import { channelCell } from '../channels/state.js';
import { clock, money, span, tokens } from '../shell/format.js';
import { html, useEffect, useSignal } from '../shell/lib.js';
import { answers, head, live, seenUntil } from '../shell/connection.js';
import { addHistory, applyAgent, loaded, mergeSessions, names, TRAIL_TAIL } from './state.js';
import { plain } from '../shell/text.js';
import { backToTeam, chosen, chosenCell, opened, showTab, tab, TABS } from '../shell/router.js';
import { OnHost, WaitsForHost } from '../hosts/onhost.js';
import { Badge, Intent, Orders } from './controls.js';
import { Age, EvidenceTab } from './evidence.js';
import { HistoryTab } from '../history/tab.js';
import { useFocus } from '../shell/focus.js';
import { Icon } from '../shell/icons.js';
import { OutputTab } from './outputtab.js';
import { configure } from '../configure/state.js';
import { FirstAgent } from './list.js';
import { Conversation } from './conversation.js';
import { Timeline } from '../history/timeline.js';

/** @typedef {import('./state.js').Cell} Cell */

/** Time between two requests for evidence while the evidence tab is open. */
const WHY_AGAIN_MS = 5000;
/** Channels shown for one agent. */
const CHIPS_MAX = 12;
/** Evidence older than this is marked as old. */
const OLD_MS = 30_000;

/** A duration in Go's notation (1h30m), in ms; 0 if there is none. @param {string | undefined} text */
function goSpan(text) {
  let ms = 0;
  for (const [, n, unit] of (text ?? '').matchAll(/([\d.]+)(h|ms|m|s)/g)) ms += Number(n) * { h: 3.6e6, m: 6e4, s: 1e3, ms: 1 }[/** @type {'h'} */ (unit)];
  return ms;
}

/** The used part of a limit. @param {{part: number, label: string}} props */
const Gauge = ({ part, label }) => html`<span class="gauge ${part >= 0.9 ? 'gauge-high' : ''}" role="img" aria-label=${label}>
  <i style=${{ width: `${Math.min(100, Math.max(0, part * 100)).toFixed(1)}%` }}></i></span>`;

/** The leased ports of a session. @param {import('../shell/api.js').OpenSession} s */
const ports = (s) => (s.ports?.length ? html` <span class="num">port ${s.ports.join(', ')}</span>` : '');

/** @param {{cell: Cell}} props */
function Figures({ cell: c }) {
  const a = c.agent.value;
  const use = a.usage_today ?? {};
  const lim = a.limits ?? {};
  const sessionMs = a.session?.started_at ? seenUntil.value + api.skew.ms - Date.parse(a.session.started_at) : 0;
  const sessionMax = goSpan(lim.session);
  const answers = ['channels', 'lead'].includes(a.session?.for ?? ''); // the limit is for each answer
  const whole = answers ? 0 : sessionMax;
  const limit = span(sessionMax).replace(/ 00[ms]$/, '');
  const total = (use.input_tokens ?? 0) + (use.output_tokens ?? 0);
  return html`<dl class="figures">
    <div><dt>Session</dt>
      ${a.session ? html`<dd class="num">${a.session.started_at ? span(sessionMs) : 'starting'}${whole > 0 && html`<span class="of"> of ${limit}</span>`}</dd>
        <dd class="sub"><code>${plain(a.session.id, 40)}</code>${a.session.kind === 'cleanup' ? ' cleanup' : ''}${a.session.pid ? html` <span class="num">pid ${a.session.pid}</span>` : ''}${ports(a.session)} <${OnHost} name=${a.session.host} /></dd>
        <dd class="sub"><${WaitsForHost} is=${(/** @type {import('../shell/api.js').WaitingSession} */ w) => w.session === a.session?.id} /></dd>
        ${a.session.context_percent ? html`<dd class="sub">context ${a.session.context_percent} % used</dd><dd><${Gauge} part=${a.session.context_percent / 100} label="${a.session.context_percent} per cent of the model's context used" /></dd>` : ''}
        ${answers && sessionMax > 0 && html`<dd class="sub">each answer ends after ${limit}</dd>`}
        ${whole > 0 && html`<dd><${Gauge} part=${sessionMs / whole} label="${Math.round((sessionMs / whole) * 100)} per cent of the session limit" /></dd>`}`
        : html`<dd class="none">none</dd>`}
      ${(a.sessions ?? []).filter((s) => (s.slot ?? 0) > 0).map((s) => html`<dd class="sub" key=${s.id}><code>${plain(s.id, 40)}</code> ${plain(s.for ?? '', 60)}${ports(s)} <${OnHost} name=${s.host} /> <${WaitsForHost} is=${(/** @type {import('../shell/api.js').WaitingSession} */ w) => w.session === s.id} /></dd>`)}</div>
    <div><dt>Cost today</dt>
      <dd class="num">${money(use.cost_usd ?? 0)}${lim.cost_per_day_usd ? html`<span class="of"> of ${money(lim.cost_per_day_usd).replace('.00', '')}</span>` : ''}</dd>
      <dd class="sub">${lim.cost_per_day_usd ? 'pauses at the limit' : lim.team_cost_per_day_usd ? `the team's limit is ${money(lim.team_cost_per_day_usd).replace('.00', '')}` : 'no limit set'}, <a class="link" href="#/usage">all usage</a></dd>
      ${lim.cost_per_day_usd ? html`<dd><${Gauge} part=${(use.cost_usd ?? 0) / lim.cost_per_day_usd} label="${Math.round(((use.cost_usd ?? 0) / lim.cost_per_day_usd) * 100)} per cent of the day's cost limit" /></dd>` : ''}</div>
    <div><dt>Tokens today</dt>
      <dd class="num">${tokens(total)}${lim.tokens_per_day ? html`<span class="of"> of ${tokens(lim.tokens_per_day)}</span>` : ''}</dd>
      <dd class="sub num">${tokens(use.input_tokens ?? 0)} in, ${tokens(use.output_tokens ?? 0)} out</dd>
      ${lim.tokens_per_day ? html`<dd><${Gauge} part=${total / lim.tokens_per_day} label="${Math.round((total / lim.tokens_per_day) * 100)} per cent of the day's tokens" /></dd>` : ''}</div>
    <div><dt>Evidence</dt>
      <dd><${Age} ms=${a.evidence_age_ms} readAt=${c.readAt} oldMs=${OLD_MS} /></dd>
      <dd class="sub"><button type="button" class="link" onClick=${() => showTab('evidence')}>see the evidence</button></dd></div>
    ${wallWords(a).length > 0 && html`<div><dt>Wall</dt>${wallWords(a).map((w) => html`<dd class="sub" key=${w}>${plain(w, 400)}</dd>`)}</div>`}
    ${contactWords(a).length > 0 && html`<div><dt>Network</dt>${contactWords(a).map((w) => html`<dd class="sub" key=${w}>${plain(w, 400)}</dd>`)}</div>`}
    ${a.wall === 'namespaces' && a.session?.pid ? html`<div><dt>Port</dt><dd><${OpenPort} of=${a.session.id} /></dd></div>` : ''}
    <div class="figure-note"><dt>Last order</dt>
      <dd class="note-text">${plain(a.note || 'no note', 300)}</dd>
      <dd class="sub">by ${plain(a.set_by || 'no one yet', 20)}${a.timestamp ? html`, <time class="num">${clock(Date.parse(a.timestamp))}</time>` : ''}</dd></div>
  </dl>`;
}

/** @type {[import('../configure/state.js').Op, string, string][]} */
const EDITS = [['edit', 'pen', 'Edit'], ['remove', 'close', 'Remove']];

/** @param {{cell: Cell}} props */
function Head({ cell: c }) {
  const a = c.agent.value;
  const worries = concerns(a);
  const title = useFocus('agent-title');
  return html`<header class="agent-head">
    <button type="button" class="back" onClick=${backToTeam}><${Icon} name="back" />Team</button>
    <div class="agent-title">
      <h2 ref=${title} id="agent-title" tabIndex=${-1}><bdi>${plain(a.name, 80)}</bdi></h2>
      <${Badge} cell=${c} /><${Intent} cell=${c} />
      ${a.removed ? html`<span class="intent">no longer in fairlead.yaml</span>` : html`<span class="configure-agent">${EDITS.map(([op, icon, label]) => html`<button type="button" key=${op} class="icon-button" title="${label} in fairlead.yaml" aria-label="${label} ${plain(a.name, 80)}" aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.value) configure(op, a.name); }}><${Icon} name=${icon} /></button>`)}</span>`}
    </div>
    <p class="about">${a.description ? html`<span>${plain(a.description, 200)}</span>` : ''}
      <span class="soft">${a.driver ? `driver ${plain(a.driver, 30)}` : ''}${a.loop === 'foreign' ? ', runs its own loop' : ''}${a.presence ? `, ${plain(a.presence, 30)}` : ''}</span></p>
    <${Conversation} agent=${a} />
    <${Turns} name=${a.name} turn=${a.turn} />
    <${Orders} cell=${c} />
    ${worries.length > 0 && html`<ul class="worries">${worries.map((w) => html`<li key=${w}><${Icon} name="look" /><span>${plain(w, 400)}</span></li>`)}</ul>`}
  </header>`;
}

/** The agent's state in its channels. @param {{name: string, turn: Record<string, string> | null | undefined}} props */
function Turns({ name, turn }) {
  const all = Object.entries(turn ?? {});
  if (all.length === 0) return null;
  const held = all.map(([channel]) => channelCell(channel)?.value).filter((c) => c?.holder === name && c.why);
  return html`<ul class="turn-chips" aria-label="Turns">${all.slice(0, CHIPS_MAX).map(([channel, state]) => html`<li key=${channel}><a class="turn-chip turn-chip-${plain(state, 12).toLowerCase()}" href="#/channels/${encodeURIComponent(channel)}"><bdi>${plain(channel, 60)}</bdi>: ${plain(state, 20)}</a></li>`)}
    ${all.length > CHIPS_MAX && html`<li class="soft">and ${all.length - CHIPS_MAX} more</li>`}
    ${held.map((c) => html`<li key=${`why ${c?.name}`} class="soft"><bdi>${plain(c?.name, 60)}</bdi>: ${plain(c?.why, 300)}</li>`)}</ul>`;
}

/** @type {Record<string, string>} */
const TAB_WORDS = { output: 'Output', evidence: 'Evidence', history: 'History' };

function Tabs() {
  const onKeyDown = (/** @type {KeyboardEvent} */ e) => {
    const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    e.preventDefault();
    const next = TABS[(TABS.indexOf(tab.value) + step + TABS.length) % TABS.length];
    showTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label="About this agent" onKeyDown=${onKeyDown}>
    ${TABS.map((t) => html`<button type="button" key=${t} id="tab-${t}" role="tab" aria-selected=${tab.value === t ? 'true' : 'false'} aria-controls="panel"
      tabIndex=${tab.value === t ? 0 : -1} onClick=${() => showTab(t)}>${TAB_WORDS[t]}</button>`)}
  </div>`;
}

/** @param {{cell: Cell}} props */
function Known({ cell: c }) {
  const why = useSignal(/** @type {api.Why | null} */ (null));
  const readAt = useSignal(0);
  const wrong = useSignal('');
  const trail = c.trail.value;
  const watching = tab.value === 'evidence';
  // Evidence is not in the journal: while its tab is open, every change requests it again.
  const last = watching && trail.length ? trail[trail.length - 1].seq : 0;

  useEffect(() => {
    if (!answers.value) return undefined;
    const stop = new AbortController();
    const read = async () => {
      const asOf = head.peek();
      try {
        const answer = await api.why(c.name, stop.signal);
        why.value = answer;
        readAt.value = Date.now();
        wrong.value = '';
        applyAgent(answer.agent, asOf);
        mergeSessions(c, answer.sessions ?? [], asOf);
      } catch (err) {
        if (!stop.signal.aborted) wrong.value = err instanceof Error ? err.message : String(err);
      }
    };
    void read();
    const timer = watching ? setInterval(read, WHY_AGAIN_MS) : undefined;
    return () => { clearInterval(timer); stop.abort(); };
  }, [c, last, watching, answers.value]);

  useEffect(() => {
    if (!answers.value) return;
    for (const machine of ['control', 'session']) {
      api.journal({ entity: `${machine}/${c.name}`, tail: TRAIL_TAIL }).then(
        ({ changes }) => { if (changes?.length) addHistory(c, changes); },
        () => { /* the trail from the feed is kept; it is read again after a lost connection */ });
    }
  }, [c, answers.value]);

  const sessions = c.sessions.value;
  return html`<${Tabs} />
    <div id="panel" class="panel panel-${tab.value}" role="tabpanel" aria-labelledby="tab-${tab.value}">
      ${tab.value === 'output' && html`<${OutputTab} cell=${c} sessions=${sessions} />`}
      ${tab.value === 'evidence' && html`<${EvidenceTab} why=${why.value} readAt=${readAt.value} wrong=${wrong.value} />`}
      ${tab.value === 'history' && html`<${HistoryTab} cell=${c} sessions=${sessions} />`}
    </div>`;
}

export function AgentPane() {
  const c = chosenCell.value;
  if (!c) {
    return html`<section class="agent agent-none" id="agent" aria-label="Selected agent">${loaded.value && chosen.value && opened.value
      ? html`<div class="empty"><h2>No such agent</h2><p>There is no agent called ${plain(chosen.value, 80)} in this team.</p><button type="button" class="plain-button" onClick=${backToTeam}>To the team</button></div>`
      : loaded.value && names.value.length === 0 ? html`<${FirstAgent} />`
      : html`<div class="empty"><p>Select an agent to see its output and the evidence for its status.</p></div>`}</section>`;
  }
  return html`<section class="agent" id="agent" aria-labelledby="agent-title" key=${c.name}>
    <${Head} cell=${c} /><${Figures} cell=${c} /><${Timeline} cell=${c} /><${Known} cell=${c} />
  </section>`;
}
