// The router: what is open lives in the address, so that back, reload and a copied link work.
//
//   #/now  #/tasks/T12
//   #/agents/NAME/TAB  #/channels/NAME  #/crew/ID/soul  #/runs/ID/STEP
//   #/dispatch/NAME/conv_002  #/inbox/q17  #/usage  #/history/last-night  #/repositories  #/hosts
//
// Each with ?at=123, which shows it as it was at that change of the journal.
// A link may lead to one spot in a part, which is marked there: a search makes such links.
//
//   #/agents/NAME/history/last-night  #/agents/NAME/output/SESSION/OFFSET  #/agents/NAME/history/SEQ  #/channels/NAME/SEQ
//   #/crew/NAME/transcript/SEQ  #/tasks/ID/request-2  #/history/SEQ

import { batch, computed, signal } from './lib.js';
import { cell, names } from '../agents/state.js';
import { active, concerns } from '../agents/words.js';
import { asOf } from './connection.js';
import { statusOf } from './status.js';
import { isPeriod } from '../history/period.js';

/** @typedef {'now' | 'tasks' | 'agents' | 'crew' | 'runs' | 'channels' | 'dispatch' | 'inbox' | 'usage' | 'history' | 'repositories' | 'hosts'} Place a part of the page */

export const TABS = ['output', 'evidence', 'history'];

export const chosen = signal('');     // name of the selected agent; empty: none
export const tab = signal('output');
export const opened = signal(false);  // on a phone: the agent covers the list
export const sessionShown = signal(/** @type {string} */ ('')); // '' follows the running one
export const place = signal(/** @type {Place} */ ('now'));
export const runID = signal('');  // the open run, or the run of the open task; empty: none
export const askedID = signal(''); // the question that the address names; empty: none
export const stepID = signal(''); // its open step; empty: none
export const channelName = signal(''); // the open channel; empty: none
export const sessionName = signal(''); // the open dispatch session; empty: none
export const conversationN = signal(0); // its open conversation; 0: none
/** Stands for the lead, which has no document. No id begins with @. */
export const LEAD = '@lead';
export const SIDES = ['soul', 'transcript'];
export const member = signal(''); // the open member: the id of a document, LEAD, or empty
export const memberSide = signal('soul');
/** The spot that a link leads to: a sequence, an offset, or a part of a task; empty: none. Every step in the page ends it. */
export const spot = signal('');
/** The time to which History is narrowed; empty: it is not. */
export const period = signal('');
export const dialog = signal(/** @type {'' | 'agent' | 'find' | 'repositories' | 'help' | 'hold' | 'release' | 'start' | 'cancel' | 'cancel-step' | 'task' | 'drop-task' | 'resume' | 'resume-step' | 'session' | 'drain-host' | 'remove-host'} */ (''));
export const search = signal('');
export const filter = signal(/** @type {'all' | 'running' | 'idle' | 'look'} */ ('all'));
export const notes = signal(/** @type {{id: number, kind: 'refusal' | 'failure', title: string, text: string, more: string}[]} */ ([]));
export const spoken = signal(''); // for screen readers: results of the user's orders, and the state of the connection

/** An unknown agent in the address is not replaced by another one. */
export const chosenCell = computed(() => (names.value.includes(chosen.value) ? cell(chosen.value) : undefined));

/** @type {string[]} */
let lastShown = [];

/** The agents that are listed: first those that wait for a person, failed or are in doubt, then the others as in fairlead.yaml. */
export const shownNames = computed(() => {
  const words = search.value.trim().toLowerCase();
  const want = filter.value;
  const all = urgentFirst(names.value);
  const shown = !words && want === 'all' ? all : all.filter((name) => {
    const a = cell(name)?.agent.value;
    if (!a) return false;
    if (want === 'running' && !active(a)) return false;
    if (want === 'idle' && statusOf(a, false, 0) !== 'idle') return false;
    if (want === 'look' && concerns(a).length === 0) return false;
    return !words || `${name} ${a.description ?? ''} ${a.driver} ${a.note ?? ''}`.toLowerCase().includes(words);
  });
  if (shown.length !== lastShown.length || shown.some((name, i) => name !== lastShown[i])) lastShown = shown;
  return lastShown; // the same list as before redraws nothing
});

/** @param {string[]} list */
function urgentFirst(list) {
  const urgent = new Set(list.filter((name) => { const a = cell(name)?.agent.value; return a && (a.doubt || ['unknown', 'waiting', 'failed'].includes(statusOf(a, false, 0))); }));
  return urgent.size === 0 ? list : [...urgent, ...list.filter((name) => !urgent.has(name))];
}

export const counts = computed(() => {
  let run = 0, idle = 0, look = 0;
  for (const name of names.value) {
    const a = cell(name)?.agent.value;
    if (!a) continue;
    if (active(a)) run++;
    if (statusOf(a, false, 0) === 'idle') idle++;
    if (concerns(a).length) look++;
  }
  return { all: names.value.length, running: run, idle, look };
});

/** The part of the page for each first word of the address. @type {Record<string, Place>} */
const PARTS = Object.assign(Object.create(null), {
  now: 'now', tasks: 'tasks', agents: 'agents', channels: 'channels', crew: 'crew', runs: 'runs', dispatch: 'dispatch', inbox: 'inbox', usage: 'usage', history: 'history', repositories: 'repositories', hosts: 'hosts',
});

/** @param {string} text */
const number = (text) => (/^\d{1,16}$/.test(text) ? text : '');

/** The moment that the query of an address names; 0: now. @param {string} query */
const momentIn = (query) => Number(/^at=(\d{1,15})$/.exec(query)?.[1] ?? 0);

function readAddress() {
  const [path, query = ''] = location.hash.replace(/^#/, '').split('?');
  asOf.value = momentIn(query);
  let [, word, name = '', where = '', one = '', two = ''] = path.split('/');
  try { [name, where, one, two] = [name, where, one, two].map(decodeURIComponent); } catch { return; }
  const part = PARTS[word] ?? 'now';
  const of = (/** @type {Place} */ p, /** @type {string} */ text) => (part === p ? text : '');
  batch(() => {
    place.value = part;
    sessionName.value = of('dispatch', name);
    conversationN.value = Number(/^conv_0*(\d{1,9})$/.exec(of('dispatch', where))?.[1] ?? 0);
    channelName.value = of('channels', name);
    askedID.value = of('inbox', name);
    member.value = of('crew', name);
    if (part === 'crew' && SIDES.includes(where)) memberSide.value = where;
    runID.value = of('runs', name) || of('tasks', name);
    stepID.value = of('runs', where);
    if (part === 'history') period.value = isPeriod(name) ? name : '';
    const agent = word in PARTS ? of('agents', name) : '';
    if (agent) {
      choose(agent, false);
      if (TABS.includes(where)) tab.value = where;
      if (where === 'output' && one) sessionShown.value = one;
      if (where === 'history') period.value = isPeriod(one) ? one : '';
    }
    opened.value = agent !== '';
    spot.value = part === 'history' ? number(name) : part === 'channels' ? number(where) : part === 'tasks' ? where : part === 'crew' ? number(one)
      : where === 'output' ? number(two) : where === 'history' ? number(one) : '';
  });
}

function address() {
  const at = (/** @type {(string | number)[]} */ ...parts) => '#/' + parts.filter(Boolean).map(encodeURIComponent).join('/');
  switch (place.value) {
    case 'inbox': return at('inbox', askedID.value);
    case 'now': case 'usage': case 'repositories': case 'hosts': return at(place.value);
    case 'history': return at('history', period.value);
    case 'crew': return member.value ? at('crew', member.value, memberSide.value) : at('crew');
    case 'channels': return at('channels', channelName.value);
    case 'dispatch': return at('dispatch', sessionName.value, sessionName.value && conversationN.value ? `conv_${String(conversationN.value).padStart(3, '0')}` : '');
    case 'tasks': return at('tasks', runID.value);
    case 'runs': return at('runs', runID.value, runID.value && stepID.value);
    default: return opened.value && chosen.value ? at('agents', chosen.value, tab.value, tab.value === 'history' ? period.value : '') : '#/agents';
  }
}

/** Opens another part of the page. @param {Place} where */
export function go(where) {
  batch(() => { place.value = where; runID.value = ''; askedID.value = ''; stepID.value = ''; channelName.value = ''; member.value = ''; sessionName.value = ''; conversationN.value = 0; });
  writeAddress(true);
}

/** Is there room for a list and one of its entries side by side? */
export const wide = signal(true);

/** Opens an entry beside its list, in the same step of the history: a wide page always shows one. @param {() => void} set */
export function fill(set) {
  batch(set);
  writeAddress(false);
}

/** Opens the card of one thing that needs a person. @param {string} id of the thing, or of a question */
export function showNeed(id) {
  go('inbox');
  askedID.value = id;
  writeAddress(false);
}

/** @param {string} run @param {string} [step] */
export function showRun(run, step = '') {
  const push = place.value !== 'runs' || runID.value !== run;
  batch(() => { place.value = 'runs'; runID.value = run; stepID.value = step; });
  writeAddress(push);
}

/** @param {string} id */
export function showTask(id) {
  const push = place.value !== 'tasks' || runID.value !== id;
  batch(() => { place.value = 'tasks'; runID.value = id; stepID.value = ''; });
  writeAddress(push);
}

/** @param {string} name */
export function showChannel(name) {
  const push = place.value !== 'channels' || channelName.value !== name;
  batch(() => { place.value = 'channels'; channelName.value = name; });
  writeAddress(push);
}

/** Opens a dispatch session, or one of its conversations. @param {string} name @param {number} [conversation] */
export function showDispatch(name, conversation = 0) {
  const push = place.value !== 'dispatch' || sessionName.value !== name || conversationN.value !== conversation;
  batch(() => { place.value = 'dispatch'; sessionName.value = name; conversationN.value = conversation; });
  writeAddress(push);
}

/** Opens a member of the crew; on a phone it covers the others. @param {string} who @param {string} [side] */
export function showMember(who, side = memberSide.value) {
  const push = place.value !== 'crew' || member.value === '';
  batch(() => { place.value = 'crew'; member.value = who; memberSide.value = side; });
  writeAddress(push);
}

function writeAddress(/** @type {boolean} */ push) {
  spot.value = '';
  const hash = address() + (asOf.peek() > 0 ? `?at=${asOf.peek()}` : '');
  if (location.hash === hash) return;
  history[push ? 'pushState' : 'replaceState'](null, '', hash);
}

/** @param {string} name @param {boolean} [open] */
export function choose(name, open = true) {
  if (chosen.value !== name) {
    chosen.value = name;
    sessionShown.value = '';
  }
  if (open) {
    const push = !opened.value;
    opened.value = true;
    writeAddress(push);
  }
}

/** @param {string} name */
export function showTab(name) {
  tab.value = name;
  opened.value = true;
  writeAddress(false);
}

/** Narrows the history of the team or of the open agent to a time. @param {string} word */
export function showPeriod(word) {
  period.value = word;
  if (place.value === 'history') writeAddress(false);
  else showTab('history');
}

export function backToTeam() {
  opened.value = false;
  writeAddress(true);
}

/** @param {string} id */
export function showSession(id) {
  sessionShown.value = id;
  showTab('output');
}

/** While the page shows an earlier moment, its own links stay there. @param {MouseEvent} e */
function stayAtMoment(e) {
  const link = e.target instanceof Element && e.target.closest('a[href^="#/"]')?.getAttribute('href');
  if (!link || asOf.peek() === 0 || link.includes('?') || e.defaultPrevented || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  location.hash = `${link}?at=${asOf.peek()}`;
}

export function startView() {
  const room = matchMedia('(min-width: 821px)');
  wide.value = room.matches;
  room.addEventListener('change', () => { wide.value = room.matches; });
  readAddress();
  asOf.subscribe((at) => { if (momentIn(location.hash.split('?')[1] ?? '') !== at) writeAddress(false); });
  addEventListener('click', stayAtMoment);
  addEventListener('hashchange', readAddress);
  addEventListener('popstate', readAddress);
}
