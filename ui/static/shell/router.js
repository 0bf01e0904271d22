// What the user looks at. It lives in the address, so that back, reload and a
// link to a colleague keep it: #/agent/NAME/TAB, #/runs, #/run/ID/STEP, #/channels,
// #/channel/NAME, #/inbox, #/usage, #/crew, #/crew/ID/soul, #/sessions, #/session/NAME/conv_002

import { batch, computed, signal } from './lib.js';
import { cell, names } from '../agents/state.js';
import { concerns, running } from '../agents/words.js';

/** @typedef {'team' | 'crew' | 'runs' | 'channels' | 'sessions' | 'inbox' | 'usage'} Place a part of the page */

export const TABS = ['output', 'evidence', 'history'];

export const chosen = signal('');     // the agent's name, or '' for none
export const tab = signal('output');
export const opened = signal(false);  // on a phone: the agent is on top of the list
export const sessionShown = signal(/** @type {string} */ ('')); // '' follows the running one
export const place = signal(/** @type {Place} */ ('team'));
export const runID = signal('');  // the run that is looked at, or '' for none
export const stepID = signal(''); // the step of it, or '' for none
export const channelName = signal(''); // the channel that is looked at, or '' for none
export const sessionName = signal(''); // the session with MAIN that is looked at, or '' for none
export const conversationN = signal(0); // the conversation of it, or 0 for none
/** In the place of an id: the lead, which has no document. No id begins so. */
export const LEAD = '@lead';
export const SIDES = ['soul', 'transcript'];
export const member = signal(''); // who of the crew is looked at: the id of a document, LEAD, or '' for nobody
export const memberSide = signal('soul');
export const dialog = signal(/** @type {'' | 'help' | 'hold' | 'release' | 'start' | 'cancel' | 'cancel-step' | 'resume' | 'resume-step' | 'session'} */ (''));
export const search = signal('');
export const filter = signal(/** @type {'all' | 'running' | 'idle' | 'look'} */ ('all'));
export const notes = signal(/** @type {{id: number, kind: 'refusal' | 'failure', title: string, text: string, more: string}[]} */ ([]));
export const spoken = signal(''); // for screen readers: only what the user asked for, and the line's state

/** Asked for, and not there, is not silently replaced. */
export const chosenCell = computed(() => (names.value.includes(chosen.value) ? cell(chosen.value) : undefined));

export const shownNames = computed(() => {
  const words = search.value.trim().toLowerCase();
  const want = filter.value;
  if (!words && want === 'all') return names.value;
  return names.value.filter((name) => {
    const a = cell(name)?.agent.value;
    if (!a) return false;
    if (want === 'running' && !running(a)) return false;
    if (want === 'idle' && running(a)) return false;
    if (want === 'look' && concerns(a).length === 0) return false;
    return !words || `${name} ${a.description ?? ''} ${a.driver} ${a.note ?? ''}`.toLowerCase().includes(words);
  });
});

export const counts = computed(() => {
  let run = 0, look = 0;
  for (const name of names.value) {
    const a = cell(name)?.agent.value;
    if (!a) continue;
    if (running(a)) run++;
    if (concerns(a).length) look++;
  }
  return { all: names.value.length, running: run, idle: names.value.length - run, look };
});

/** Which part of the page a word of the address means. @type {Record<string, Place>} */
const PARTS = Object.assign(Object.create(null), { runs: 'runs', run: 'runs', channels: 'channels', channel: 'channels', crew: 'crew', inbox: 'inbox', usage: 'usage', sessions: 'sessions', session: 'sessions' });

function readAddress() {
  let [, kind, name = '', where = ''] = location.hash.replace(/^#/, '').split('/');
  try { name = decodeURIComponent(name); where = decodeURIComponent(where); } catch { return; }
  batch(() => {
    place.value = PARTS[kind] ?? 'team';
    sessionName.value = kind === 'session' ? name : '';
    conversationN.value = kind === 'session' ? Number(/^conv_0*(\d{1,9})$/.exec(where)?.[1] ?? 0) : 0;
    channelName.value = kind === 'channel' ? name : '';
    member.value = kind === 'crew' ? name : '';
    if (kind === 'crew' && SIDES.includes(where)) memberSide.value = where;
    runID.value = kind === 'run' ? name : '';
    stepID.value = kind === 'run' ? where : '';
    if (kind === 'agent' && name) {
      choose(name, false);
      if (TABS.includes(where)) tab.value = where;
    }
    opened.value = kind === 'agent' && name !== '';
  });
}

function address() {
  if (place.value === 'inbox') return '#/inbox';
  if (place.value === 'usage') return '#/usage';
  if (place.value === 'crew') return member.value ? `#/crew/${encodeURIComponent(member.value)}/${memberSide.value}` : '#/crew';
  if (place.value === 'channels') return channelName.value ? `#/channel/${encodeURIComponent(channelName.value)}` : '#/channels';
  if (place.value === 'sessions') {
    if (!sessionName.value) return '#/sessions';
    return `#/session/${encodeURIComponent(sessionName.value)}${conversationN.value ? `/conv_${String(conversationN.value).padStart(3, '0')}` : ''}`;
  }
  if (place.value === 'runs') {
    if (!runID.value) return '#/runs';
    return `#/run/${encodeURIComponent(runID.value)}${stepID.value ? `/${encodeURIComponent(stepID.value)}` : ''}`;
  }
  return opened.value && chosen.value ? `#/agent/${encodeURIComponent(chosen.value)}/${tab.value}` : '#/';
}

/** Another part of the page. @param {Place} where */
export function go(where) {
  batch(() => { place.value = where; runID.value = ''; stepID.value = ''; channelName.value = ''; member.value = ''; sessionName.value = ''; conversationN.value = 0; });
  writeAddress(true);
}

/** @param {string} run @param {string} [step] */
export function showRun(run, step = '') {
  const push = place.value !== 'runs' || runID.value !== run;
  batch(() => { place.value = 'runs'; runID.value = run; stepID.value = step; });
  writeAddress(push);
}

/** @param {string} name */
export function showChannel(name) {
  const push = place.value !== 'channels' || channelName.value !== name;
  batch(() => { place.value = 'channels'; channelName.value = name; });
  writeAddress(push);
}

/** Shows a session with MAIN, or a conversation of it. @param {string} name @param {number} [conversation] */
export function showSessionFolder(name, conversation = 0) {
  const push = place.value !== 'sessions' || sessionName.value !== name || conversationN.value !== conversation;
  batch(() => { place.value = 'sessions'; sessionName.value = name; conversationN.value = conversation; });
  writeAddress(push);
}

/** Shows somebody of the crew; on a phone on top of the others. @param {string} who @param {string} [side] */
export function showMember(who, side = memberSide.value) {
  const push = place.value !== 'crew' || member.value === '';
  batch(() => { place.value = 'crew'; member.value = who; memberSide.value = side; });
  writeAddress(push);
}

function writeAddress(/** @type {boolean} */ push) {
  const hash = address();
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

export function backToTeam() {
  opened.value = false;
  writeAddress(true);
}

/** @param {string} id */
export function showSession(id) {
  sessionShown.value = id;
  showTab('output');
}

export function startView() {
  addEventListener('hashchange', readAddress);
  addEventListener('popstate', readAddress);
  readAddress();
}
