// The past of one agent: its changes and its sessions.

import { outcomeOf } from '../agents/words.js';
import { moment, size, span } from '../shell/format.js';
import { html } from '../shell/lib.js';
import { TRAIL_TAIL } from '../agents/state.js';
import { now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { period, showSession } from '../shell/router.js';
import { Changes } from './changes.js';
import { teamLink } from './words.js';

/** @param {{sessions: import('../shell/api.js').Session[]}} props */
function Sessions({ sessions }) {
  if (sessions.length === 0) return html`<p class="quiet-note">No session yet.</p>`;
  return html`<table class="sheet-table"><caption class="hidden">Sessions</caption>
    <thead><tr><th scope="col">Session</th><th scope="col">Ended</th><th scope="col">Began</th><th scope="col" class="right">Took</th><th scope="col" class="right">Output</th></tr></thead>
    <tbody>${sessions.map((s) => {
      const o = s.ended_at ? outcomeOf(s.outcome || 'ok') : outcomeOf('');
      const from = Date.parse(s.started_at ?? s.opened_at ?? '');
      const to = s.ended_at ? Date.parse(s.ended_at) : now.value;
      return html`<tr key=${s.id}>
        <td><button type="button" class="link" onClick=${() => showSession(s.id)} title="Show its output">${plain(s.id, 60)}</button>${s.kind === 'cleanup' ? html` <span class="soft">cleanup</span>` : ''}</td>
        <td class="wide"><span class="outcome outcome-${o.look}"><i aria-hidden="true">${o.mark}</i>${plain(o.label, 30)}</span>${s.why ? html` <span class="soft">${plain(s.why, 200)}</span>` : ''}</td>
        <td class="num">${moment(from, now.value)}</td><td class="num right">${Number.isFinite(from) ? span(to - from) : '\u2013'}</td><td class="num right">${size(s.bytes ?? 0)}</td></tr>`;
    })}</tbody></table>`;
}

/** @param {{cell: import('../agents/state.js').Cell, sessions: import('../shell/api.js').Session[]}} props */
export function HistoryTab({ cell: c, sessions }) {
  return html`<div class="history"><${Changes} agent=${c.name} trail=${c.trail.value} older=${c.trail.value.length >= TRAIL_TAIL} more=${html`<a class="link" href=${teamLink(period.value)}>Whole team</a>`} />
    ${!period.value && html`<h3>Sessions</h3><${Sessions} sessions=${sessions} />`}
  </div>`;
}
