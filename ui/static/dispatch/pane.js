// The open session: its state and how it came to it, the permissions of the state, denials, the
// ranking of an input, and its conversations.

import { plural } from '../shell/format.js';
import { html, useEffect, useLayoutEffect, useRef, useSignal } from '../shell/lib.js';
import { asked, faults } from '../shell/orders.js';
import { endSession } from './actions.js';
import { sessionWrong, shownSession } from './state.js';
import { cameBy, display, HOSTS, isOpen, MODES, PERMISSIONS, permissionWords, dispatchLook } from './words.js';
import { live } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { conversationN, go, sessionName, showDispatch } from '../shell/router.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Conversation } from './conversation.js';
import { Denials, Ranked } from './denials.js';
import { Icon } from '../shell/icons.js';
import { Transition, When } from './transition.js';
import { Mark } from '../runs/list.js';
import { InputForm } from './input.js';

/** @typedef {import('../shell/api.js').DispatchView} View */

/** Lines of the history, and conversations, shown at first. */
const LINES_FIRST = 12, CONVERSATIONS_FIRST = 30;
const FILES_SHOWN_MAX = 6;

/** Ends the session. It asks for confirmation, because permissions are not enforced afterwards. @param {{name: string}} props */
function End({ name }) {
  const sure = useSignal(false);
  const here = useRef(/** @type {HTMLElement | null} */ (null));
  const asks = useRef(false);
  useLayoutEffect(() => { if (asks.current !== sure.value) here.current?.querySelector('button')?.focus(); asks.current = sure.value; }, [sure.value]);
  const off = !live.value || asked.value !== '';
  if (!sure.value) return html`<span ref=${here} class="session-end"><button type="button" class="order order-quiet" aria-disabled=${off ? 'true' : undefined} onClick=${() => { if (!off) sure.value = true; }}><${Icon} name="stop" /><span>End dispatch\u2026</span></button></span>`;
  return html`<span ref=${here} class="sure session-end" role="group" aria-label="End the dispatch?"><span>End it? Running agents are cancelled, and permissions are no longer enforced.</span>
    <button type="button" class="order order-quiet" onClick=${() => { sure.value = false; }}>No</button>
    <${Act} look="plain" icon="stop" label="Yes, end it" at="session" act=${() => endSession(name).then((done) => { sure.value = false; return done; })} /></span>`;
}

/** @param {{v: View}} props */
function Head({ v }) {
  const s = v.session;
  return html`<header class="run-head session-head">
    <button type="button" class="back" onClick=${() => go('dispatch')}><${Icon} name="back" />Dispatch</button>
    <div class="agent-title"><h2 id="session-title" tabIndex=${-1}><bdi>${plain(s.name, 120)}</bdi></h2><${Mark} look=${dispatchLook(s)} />${isOpen(s) && html`<${End} name=${s.name} />`}</div>
    <p class="about"><span><b>${plain(s.mode, 20)}</b> ${MODES[s.mode] ?? ''}</span><span>${HOSTS[s.host] ?? plain(s.host, 20)}</span><span class="soft">begun <${When} at=${s.began} /></span></p>
    <p class="about soft session-path-line"><code>${plain(s.path, 300)}</code></p>
    ${s.ended && html`<p class="soft">Closed: ${plain(s.ended, 300)}</p>`}
    ${(v.notes ?? []).map((n, i) => html`<p key=${i} class="worry-box"><${Icon} name="look" /><span>${plain(n, 400)}</span></p>`)}
    <${Fault} at="session" />
  </header>`;
}

/** The state: MAIN, QUEUE or an agent. @param {{v: View}} props */
function State({ v }) {
  const by = cameBy(v.lines ?? []), work = v.at_work ?? [];
  const closed = v.session.phase === 'closed';
  return html`<section class="card state-card" aria-labelledby="state-title"><h3 id="state-title">${closed ? 'Last state' : 'State'}</h3>
    <p class="state-now ${v.session.phase === 'working' || v.session.phase === 'serving' ? 'state-now-agent' : ''}"><bdi>${display(v.session.state)}</bdi></p>
    ${by && html`<p class="state-came"><${Transition} line=${by} /> <${When} at=${by.at} /></p>`}
    ${work.length > 0 && html`<ul class="at-work" aria-label="At work">${work.map((t) => html`<li key=${t.id}><b><bdi>${plain(t.agent, 80)}</bdi></b>${t.by ? html`<span class="soft"> for ${plain(t.by, 80)}</span>` : ''} <span class="soft">since <${When} at=${t.began} /></span>${t.text && html`<span class="at-work-text">${plain(t.text, 240)}</span>`}</li>`)}</ul>`}
    ${(v.waits_for ?? []).map((w, i) => html`<p key=${i} class="worry-box"><${Icon} name="clock" /><span>${plain(w, 300)}</span></p>`)}</section>`;
}

/** The last transitions. @param {{v: View}} props */
function Came({ v }) {
  const more = useSignal(LINES_FIRST);
  const lines = v.lines ?? [];
  return html`<section class="card came" aria-labelledby="came-title"><h3 id="came-title">How it came there</h3>
    <ol class="came-lines" tabIndex=${0} aria-labelledby="came-title">${lines.slice(-more.value).reverse().map((l, i) => html`<li key=${`${l.line}/${i}`} class=${l.foreign ? 'came-foreign' : ''}><${When} at=${l.at} /><code class="rule">${plain(l.row, 8) || '\u2013'}</code><span class="came-what">${l.conversation && html`<span class="came-conv">${plain(l.conversation, 20)}</span> `}<${Transition} line=${l} />
      ${l.foreign ? html` <span class="tag">another program wrote this line</span>` : ''}</span></li>`)}</ol>
    ${lines.length > more.value ? html`<button type="button" class="link" onClick=${() => { more.value += 100; }}>Show older lines</button>` : v.lines_left_out > 0 && html`<p class="soft">${plural(v.lines_left_out, 'older line')} in <code>state.jsonl</code></p>`}</section>`;
}

/** The permissions of the current state. @param {{v: View}} props */
function May({ v }) {
  const p = v.permissions ?? {}, layers = v.layers ?? [];
  const closed = v.session.phase === 'closed';
  return html`<section class="card may-card" aria-labelledby="may-title"><h3 id="may-title">What ${display(v.session.state)} may do</h3>
    ${closed && html`<p class="soft">Permissions are not enforced: the dispatch is closed.</p>`}
    <dl class="may">${PERMISSIONS.map(([key, label, can]) => (p[key] ?? []).length > 0 && html`<div key=${key} class=${can ? 'may-can' : 'may-cannot'}><dt><${Icon} name=${can ? 'check' : 'cross'} />${label}</dt>
      <dd><ul>${(p[key] ?? []).slice(0, 60).map((e, i) => html`<li key=${i}><code>${permissionWords(e)}</code></li>`)}</ul></dd></div>`)}</dl>
    ${layers.length > 0 && html`<details class="layers"><summary>What holds MAIN to that</summary><ul class="held-by">${layers.map((l) => html`<li key=${l.name} class=${l.holds ? 'layer-holds' : 'layer-not'}><${Icon} name=${l.holds ? 'check' : 'look'} /><span><b>${plain(l.name, 40)}</b>${l.holds ? '' : ' does not enforce:'} ${plain(l.text, 400)}</span></li>`)}</ul></details>`}
    <details class="layers"><summary>${plural((v.agents ?? []).length, 'agent')} by description</summary>${(v.agents ?? []).length === 0 ? html`<p class="soft">None was found when the dispatch started. Describe one in <code>.claude/agents</code>.</p>` : html`<ul class="described">${(v.agents ?? []).slice(0, 100).map((a) => html`<li key=${a.name}><b><bdi>${plain(a.name, 80)}</bdi></b> <span class="soft">${plain(a.description, 300)}</span></li>`)}</ul>`}</details>
  </section>`;
}

/** @param {{v: View}} props */
function Conversations({ v }) {
  const more = useSignal(CONVERSATIONS_FIRST);
  const list = v.conversations ?? [];
  return html`<section class="card convs-card" aria-labelledby="convs-title"><h3 id="convs-title">Conversations</h3>
    ${list.length === 0 ? html`<p class="soft">None yet. Each input starts one.</p>` : html`<ol class="convs">${list.slice(0, more.value).map((c) => {
      const files = c.files ?? [];
      return html`<li key=${c.n} class="conv-row ${c.open ? 'conv-row-open' : ''}"><span class="conv-row-head"><button type="button" class="link conv-name" onClick=${() => showDispatch(v.session.name, c.n)}>${plain(c.id, 20)}</button>${c.open && html`<span class="tag">open</span>`}<${When} at=${c.began} /></span>
        <span class="conv-row-words">${plain(c.summary, 300) || '\u2013'}</span>
        ${((c.agents ?? []).length > 0 || files.length > 0) && html`<span class="conv-row-more soft">${(c.agents ?? []).slice(0, 12).map((a) => html`<span key=${a} class="conv-agent"><bdi>${plain(a, 60)}</bdi></span>`)}
          ${files.slice(0, FILES_SHOWN_MAX).map((f) => html`<code key=${f.path}>${plain(f.output || f.path, 160)}</code>`)}${files.length + c.more_files > FILES_SHOWN_MAX && html`<span>and ${files.length + c.more_files - FILES_SHOWN_MAX} more files</span>`}</span>`}</li>`;
    })}</ol>`}
    ${list.length > more.value && html`<button type="button" class="link" onClick=${() => { more.value += CONVERSATIONS_FIRST; }}>Show older conversations</button>`}</section>`;
}

/** @param {{v: View}} props */
function Whole({ v }) {
  return html`<div class="session-grid"><div class="session-main"><${State} v=${v} /><${InputForm} v=${v} /><${Conversations} v=${v} /><${Came} v=${v} /></div>
    <div class="session-side"><${May} v=${v} /><${Denials} v=${v} /><${Ranked} of=${v.ranking} /></div></div>`;
}

export function DispatchPane() {
  const at = sessionName.value, v = shownSession.value;
  useEffect(() => { faults.value = {}; }, [at]); // faults of other sessions do not belong here
  if (!at) return html`<section class="run-pane run-none" aria-label="Selected dispatch"><div class="empty"><p>Select a dispatch to see its state, its permissions and its conversations.</p></div></section>`;
  if (!v || v.session.name !== at) {
    return html`<section class="run-pane run-none" aria-label="Selected dispatch"><button type="button" class="back" onClick=${() => go('dispatch')}><${Icon} name="back" />Dispatch</button>
      <div class="empty">${sessionWrong.value ? html`<h2 id="session-title" tabIndex=${-1}>No such dispatch</h2><p>${plain(sessionWrong.value, 400)}</p>` : html`<p>Loading\u2026</p>`}</div></section>`;
  }
  return html`<section class="run-pane session-pane ${conversationN.value ? 'session-pane-conv' : ''}" aria-labelledby="session-title" key=${at}><${Head} v=${v} />${conversationN.value ? html`<${Conversation} key=${conversationN.value} v=${v} n=${conversationN.value} />` : html`<${Whole} v=${v} />`}</section>`;
}
