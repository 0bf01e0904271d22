// What the driver understood of the output: the same session, as facts.

import * as api from '../api.js';
import { tokens } from '../format.js';
import { html, useEffect, useSignal } from '../lib.js';
import { plain } from '../text.js';

const AGAIN_MS = 2500;
/** Longest fact shown, in characters. */
const FACT_CHARS_MAX = 2000;

/** @type {Record<string, string>} */
const WORDS = { said: 'said', thought: 'thought', tool_called: 'tool', permission_asked: 'asked', usage_reported: 'usage', stopped: 'stopped', faulted: 'fault' };

/** @param {any} usage */
function usageWords(usage) {
  if (!usage || typeof usage !== 'object') return '';
  return Object.entries(usage).map(([k, v]) => `${plain(k, 40).replaceAll('_', ' ')} ${typeof v === 'number' && k.includes('token') ? tokens(v) : plain(v, 40)}`).join(', ');
}

/** @param {{session: string, open: boolean}} props */
export function Facts({ session, open }) {
  const facts = useSignal(/** @type {import('../api.js').Fact[] | null} */ (null));
  const wrong = useSignal('');
  useEffect(() => {
    const stop = new AbortController();
    const read = async () => {
      try {
        facts.value = (await api.facts(session, stop.signal)).facts ?? [];
        wrong.value = '';
      } catch (err) {
        if (!stop.signal.aborted) wrong.value = err instanceof Error ? err.message : String(err);
      }
    };
    void read();
    const timer = open ? setInterval(read, AGAIN_MS) : undefined;
    return () => { clearInterval(timer); stop.abort(); };
  }, [session, open]);
  if (wrong.value) return html`<div class="quiet-note"><p>${plain(wrong.value)}</p></div>`;
  if (!facts.value) return html`<div class="quiet-note"><p>Reading\u2026</p></div>`;
  if (facts.value.length === 0) return html`<div class="quiet-note"><p>The driver has understood nothing of this output yet; see it as it was said.</p></div>`;
  return html`<div class="tape-frame"><ol class="facts tape" tabIndex=${0} aria-label="Facts">${facts.value.map((f, i) => html`
    <li key=${i} class="fact fact-${WORDS[f.kind] ?? 'other'}"><span class="fact-kind">${WORDS[f.kind] ?? plain(f.kind, 30)}</span>
      <span class="fact-text">${f.tool ? html`<code>${plain(f.tool, 80)}</code> ` : ''}${plain(f.text ?? '', FACT_CHARS_MAX)}${usageWords(f.usage)}${f.stop ? `${f.stop.ok ? 'done' : 'not done'} ${plain(f.stop.reason, 120)} ${plain(f.stop.detail, 400)}` : ''}</span></li>`)}</ol></div>`;
}
