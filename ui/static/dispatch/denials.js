// Denied tool calls and what happened instead, and why an input was given to its agent.

import { plural } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { display, rankingWords, share } from './words.js';
import { plain } from '../shell/text.js';
import { showDispatch } from '../shell/router.js';
import { Transition, When } from './transition.js';

/** Denials shown at first; scores and terms of a ranking. */
const FIRST = 5, SCORES_MAX = 12, TERMS_MAX = 12;

/** @param {{v: import('../shell/api.js').DispatchView}} props */
export function Denials({ v }) {
  const more = useSignal(FIRST);
  const list = v.denials ?? [];
  return html`<section class="card denials-card" aria-labelledby="denials-title"><h3 id="denials-title">Denied${v.session.denied > 0 && html` <span class="num soft">${v.session.denied}</span>`}</h3>
    ${list.length === 0 ? html`<p class="soft">No tool call was denied.</p>` : html`<ol class="denials">${list.slice(0, more.value).map((d, i) => html`<li key=${`${d.at}/${i}`} class="denial">
      <p class="denial-what"><code class="rule">${plain(d.row, 8)}</code><b>${display(d.by)}</b> <span>${plain(d.tool, 60)}</span> <${When} at=${d.at} />${d.conversation && html`<button type="button" class="link" onClick=${() => showDispatch(v.session.name, Number(/\d+/.exec(d.conversation)?.[0] ?? 0))}>${plain(d.conversation, 20)}</button>`}</p>
      ${d.call && html`<pre class="denial-call">${plain(d.call, 600)}</pre>`}
      <p class="denial-why">${plain(d.reason, 600)}</p>
      <p class="denial-then"><span class="soft">Instead: </span>${d.then ? html`<${Transition} line=${d.then} /> <${When} at=${d.then.at} />` : d.delegate_to ? html`<span>nothing so far; <b><bdi>${plain(d.delegate_to, 80)}</bdi></b> could do it</span>` : html`<span>nothing so far; no agent\u2019s description fits</span>`}</p></li>`)}</ol>`}
    ${list.length > more.value && html`<button type="button" class="link" onClick=${() => { more.value += 50; }}>Show ${plural(list.length - more.value, 'older one')}</button>`}</section>`;
}

/** @param {{of: import('../shell/api.js').DispatchView['ranking']}} props */
export function Ranked({ of }) {
  if (!of) return html`<section class="card" aria-labelledby="ranked-title"><h3 id="ranked-title">Ranking of the last input</h3><p class="soft">No input yet.</p></section>`;
  const r = of.ranking, scores = r.scores ?? [];
  return html`<section class="card ranked-card" aria-labelledby="ranked-title"><h3 id="ranked-title">Ranking of the last input</h3>
    <blockquote class="ranked-input">${plain(of.input, 240)}</blockquote>
    <p>${rankingWords(r)}</p>
    ${scores.length > 0 && html`<ol class="scores">${scores.slice(0, SCORES_MAX).map((c) => html`<li key=${c.name} class=${c.name === r.best ? 'score-best' : ''}>
      <span class="score-name"><bdi>${plain(c.name, 80)}</bdi></span><span class="num score-n">${c.score.toFixed(2)}</span>
      <span class="score-bar" aria-hidden="true"><i style=${{ width: `${share(c.score, r).toFixed(1)}%` }}></i><b style=${{ left: `${share(r.threshold, r).toFixed(1)}%` }}></b></span>
      <span class="score-terms soft">${(c.terms ?? []).slice(0, TERMS_MAX).map((t, i) => html`${i > 0 && ' + '}<span key=${t.word}>\u201c${plain(t.word, 40)}\u201d <span class="num">${t.score.toFixed(2)}</span></span>`)}</span></li>`)}</ol>`}
    ${scores.length > SCORES_MAX && html`<p class="soft">and ${scores.length - SCORES_MAX} more with a word in common</p>`}
    <p class="soft">Who takes over needs ${Number(r.threshold).toFixed(2)} or more, the line in each bar.${(r.terms ?? []).length > 0 && html` Looked for: ${(r.terms ?? []).slice(0, 20).map((t) => plain(t, 40)).join(', ')}.`}</p></section>`;
}
