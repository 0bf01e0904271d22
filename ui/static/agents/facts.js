// A session's output as the driver understood it: a live list of facts.

import { Terminal } from './ansi.js';
import * as api from '../shell/api.js';
import { moment, tokens } from '../shell/format.js';
import { html, useEffect, useLayoutEffect, useRef, useSignal } from '../shell/lib.js';
import { Output } from './output.js';
import { plain } from '../shell/text.js';
import { End, Jump, SpotEnd, useFollow } from '../shell/follow.js';

/** @typedef {import('../shell/api.js').Fact} Fact */

/** Time between two requests while the session writes; the server also waits for new facts. */
const AGAIN_MS = 300;
/** Characters shown of one fact. */
const FACT_CHARS_MAX = 4000;

/** @type {Record<string, string>} */
const WORDS = { said: 'said', thought: 'thought', tool_called: 'tool', permission_asked: 'asked', permission_answered: 'answered', permission_withdrawn: 'withdrawn', conversation_named: 'conversation', rate_limited: 'limited', provider_away: 'waits', usage_reported: 'usage', text_read: 'told', stopped: 'stopped', faulted: 'fault' };

/** @param {Fact} usage */
function usageWords(usage) {
  const words = [];
  if (usage.input_tokens) words.push(`${tokens(Number(usage.input_tokens))} tokens in`);
  if (usage.output_tokens) words.push(`${tokens(Number(usage.output_tokens))} out`);
  if (usage.cost_usd) words.push(`$${Number(usage.cost_usd).toFixed(3)}`);
  return words.join(', ');
}

/** The program's own description of its conversation. @param {any} c */
function conversationWords(c) {
  if (!c || typeof c !== 'object') return '';
  return [c.id, c.program, c.model && `model ${c.model}`, c.mode && `mode ${c.mode}`, c.resumed && 'resumed', c.enforced].filter(Boolean).map((w) => plain(w, 200)).join(', ');
}

/** @param {Fact} stop */
function stopWords(stop) {
  return [stop.ok ? 'done' : 'not done', plain(stop.reason ?? '', 120), plain(stop.detail ?? '', 400)].filter(Boolean).join(', ');
}

/** Joins facts that arrived in parts, also where usage was reported between two parts. @param {Fact[]} facts @returns {Fact[]} */
function join(facts) {
  /** @type {Fact[]} */
  const whole = [];
  for (const f of facts) {
    let at = whole.length - 1;
    while (at >= 0 && whole[at].type === 'usage_reported') at--;
    const last = whole[at];
    if (last?.part && last.type === f.type) whole[at] = { ...f, offset: last.offset, text: (last.text ?? '') + (f.text ?? '') };
    else whole.push(f);
  }
  return whole;
}

/** Text of several lines, with line breaks and tabs; escape sequences are removed. @param {string} text */
function prose(text) {
  const terminal = new Terminal();
  const lines = terminal.write(text.slice(0, FACT_CHARS_MAX));
  return [...lines, terminal.line].map((l) => l.text).join('\n').trimEnd() + (text.length > FACT_CHARS_MAX ? '\u2026' : '');
}

/** Facts shown from the place on that a link leads to. */
const SPOT_FACTS = 400;

/** @param {{fact: Fact, marked: boolean}} props */
function Row({ fact: f, marked }) {
  // Text that names a tool is the tool's output.
  const kind = f.type === 'said' && f.tool ? 'result' : WORDS[f.type] ?? 'other';
  return html`<li class="fact fact-${kind} ${marked ? 'spot' : ''}"><span class="fact-kind">${kind === 'other' ? plain(f.type, 30) : kind === 'result' ? '' : kind}</span>
    <span class="fact-text">${f.tool && kind !== 'result' ? html`<code class="fact-tool">${plain(f.tool, 80)}</code> ` : ''}${f.type === 'stopped' ? stopWords(f) : prose(f.text ?? '')}${usageWords(f)}${conversationWords(f.conversation)}${f.until ? ` until ${moment(Date.parse(f.until), Date.now())}` : ''}</span></li>`;
}

/** @param {{session: string, onFollow: (following: boolean, jumped: boolean) => void, from?: number}} props from: the offset that a link leads to */
export function Facts({ session, onFollow, from = -1 }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const facts = useSignal(/** @type {Fact[] | null} */ (null));
  const wrong = useSignal('');
  const end = useSignal(/** @type {{outcome: string, why: string} | null} */ (null));
  const follow = useFollow(box, onFollow);

  useEffect(() => {
    const stop = new AbortController();
    let reading = false, again = false;
    const read = async () => {
      if (reading) { again = true; return; }
      reading = true;
      again = false;
      try {
        const whole = join((await api.facts(session, stop.signal, from >= 0 ? { from, tail: SPOT_FACTS } : undefined)).facts ?? []);
        if (from >= 0) { facts.value = whole; wrong.value = ''; return; }
        follow.drawn(0);
        const added = whole.length - (facts.peek()?.length ?? 0);
        facts.value = whole;
        wrong.value = '';
        if (!follow.following.peek()) follow.drawn(Math.max(0, added));
      } catch (err) {
        if (!stop.signal.aborted) wrong.value = err instanceof Error ? err.message : String(err);
      }
      reading = false;
      if (again && !stop.signal.aborted) setTimeout(read, AGAIN_MS);
    };
    if (from >= 0) {
      follow.stay();
      void read();
      return () => stop.abort();
    }
    // New output means new facts, so the output stream triggers the next request.
    const bell = new Output(session, () => {
      if (bell.over) end.value = { outcome: bell.outcome, why: bell.why };
      void read();
    });
    void read();
    return () => { bell.close(); stop.abort(); };
  }, [session, from]);
  useLayoutEffect(() => { if (from < 0) follow.drawn(0); else box.current?.querySelector('.spot')?.scrollIntoView({ block: 'nearest' }); }, [facts.value, end.value]);

  if (wrong.value && !facts.value) return html`<div class="quiet-note"><p>${plain(wrong.value)}</p></div>`;
  if (!facts.value) return html`<div class="quiet-note"><p>Reading\u2026</p></div>`;
  return html`<div class="tape-frame">
    <div class="facts tape" ref=${box} onScroll=${follow.onScroll} tabIndex=${0} role="region" aria-label="What session ${plain(session, 60)} did">
      ${facts.value.length === 0 && html`<p class="tape-note">The driver has found no facts in this output yet. "As said" shows the output itself.</p>`}
      <ol>${facts.value.map((f, i) => html`<${Row} key=${`${f.offset} ${f.type} ${f.tool ?? ''}`} fact=${f} marked=${from >= 0 && i === 0} />`)}</ol>
      ${end.value && html`<${End} ...${end.value} />`}
      ${from >= 0 && html`<${SpotEnd} session=${session} />`}
    </div>${from < 0 && html`<${Jump} follow=${follow} />`}
  </div>`;
}
