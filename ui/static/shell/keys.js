// The keyboard. Arrow keys move through the list of agents while it has the focus. Single-letter
// keys can be switched off, because they interfere with speech input.

import { all as hosts } from '../hosts/state.js';
import { command } from '../agents/actions.js';
import { running } from '../agents/words.js';
import { letterKeys, nextTheme } from './prefs.js';
import { focusOn } from './focus.js';
import { live } from './connection.js';
import { looking, step, toggle } from '../moment/state.js';
import { cell, team } from '../agents/state.js';
import { backToTeam, channelName, choose, chosen, conversationN, dialog, go, member, opened, place, runID, search, sessionName, shownNames, showRun, showDispatch, showTab, stepID, TABS, wide } from './router.js';

/** Rows that Page Up and Page Down move. */
const PAGE = 6;

/** @param {KeyboardEvent} e */
function walk(e) {
  const list = shownNames.value;
  const at = list.indexOf(chosen.value);
  /** @type {Record<string, number>} */
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.length - 1, PageDown: at + PAGE, PageUp: at - PAGE };
  if (!(e.key in to) || list.length === 0) return false;
  choose(list[Math.min(list.length - 1, Math.max(0, to[e.key]))], false);
  return true;
}

/** @param {string} key */
function order(key) {
  const a = cell(chosen.value)?.agent.value;
  if (!a) return false;
  if (key === 's' && (!running(a) || a.desired_state !== 'continuous')) void command(a.name, 'start');
  else if (key === 'x' && (running(a) || a.desired_state !== 'pause')) void command(a.name, 'stop');
  else if (key === 'o') void command(a.name, 'once');
  else if (key === 'c') void command(a.name, 'cleanup');
  else return false;
  return true;
}

/** Moves the focus to the message field of a channel or a session. */
function focusWords() {
  const field = (place.value === 'channels' || place.value === 'dispatch') && document.getElementById('words');
  if (!(field instanceof HTMLTextAreaElement) || !field.checkVisibility()) return false;
  field.focus();
  return true;
}

/** Moves the focus to the search field of a transcript. */
function focusSaid() {
  const field = place.value === 'crew' && document.getElementById('said-search');
  if (!(field instanceof HTMLInputElement) || !field.checkVisibility()) return false;
  field.focus();
  return true;
}

/** @param {KeyboardEvent} e @param {Element} at @returns {boolean} handled */
function handle(e, at) {
  const onTeam = place.value === 'agents';
  const inRoster = onTeam && (at.closest('.roster-scroll') !== null || at === document.body);
  if (e.key === 'Escape' && onTeam && opened.value) { backToTeam(); return true; }
  if (e.key === 'Escape' && place.value === 'tasks' && runID.value) { go('tasks'); return true; }
  if (e.key === 'Escape' && runID.value) { if (stepID.value) showRun(runID.value); else if (!wide.value) go('runs'); return true; }
  if (e.key === 'Escape' && channelName.value && !wide.value) { go('channels'); return true; }
  if (e.key === 'Escape' && sessionName.value) { if (conversationN.value) showDispatch(sessionName.value); else if (!wide.value) go('dispatch'); return true; }
  if (e.key === 'Escape' && member.value) { go('crew'); return true; }
  if (inRoster && walk(e)) return true;
  if (e.key === 'Enter' && at.classList.contains('row-name')) { choose(chosen.value); focusOn('agent-title'); return true; }
  if (letterKeys.value !== 'on') return false;
  const key = e.key.toLowerCase();
  if ((place.value === 'now' || place.value === 'inbox') && cardKey(key, at)) return true;
  switch (key) {
    case '?': dialog.value = 'help'; return true;
    case 'g': go('now'); return true;
    case 'a': go('agents'); return true;
    case 'b': go('tasks'); return true;
    case 'w': go('crew'); return true;
    case 'r': go('runs'); return true;
    case 'm': go('channels'); return true;
    case 'd': go('dispatch'); return true;
    case 'i': go('inbox'); return true;
    case 'u': go('usage'); return true;
    case 'y': go('history'); return true;
    case 'l': if (hosts.value.on) { go('hosts'); return true; } break;
    case 't': nextTheme(); return true;
    case 'p': toggle(); return true;
    case '[': step(-1); return looking.value;
    case ']': step(1); return looking.value;
    case 'h': if (live.value) dialog.value = team.value.hold ? 'release' : 'hold'; return true;
    case 'n': /** @type {HTMLElement | null} */ (document.querySelector('[data-jump]'))?.click(); return true;
    case '/': dialog.value = 'find'; return true;
    case 'e': if (focusWords() || focusSaid()) return true; break;
    default:
  }
  return onTeam && teamKey(e, key);
}

/**
 * Keys for the cards of what needs a person: the next, the one before, yes, no. The answer is for the card
 * that has the focus; without one nothing is answered.
 * @param {string} key @param {Element} at
 */
function cardKey(key, at) {
  const cards = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('.need')]);
  if (cards.length === 0 || !'jkar'.includes(key)) return false;
  const here = /** @type {HTMLElement | null} */ (at.closest('.need'));
  if (key === 'a' || key === 'r') {
    const button = here?.querySelector(`[data-answer=${key === 'a' ? 'yes' : 'no'}]`);
    if (button instanceof HTMLElement) button.click();
    return true; // also without a card: these letters never lead away from here
  }
  const n = here ? cards.indexOf(here) + (key === 'j' ? 1 : -1) : key === 'j' ? 0 : cards.length - 1;
  const card = cards[Math.min(cards.length - 1, Math.max(0, n))];
  card.focus();
  card.scrollIntoView({ block: 'nearest' });
  return true;
}

/** Keys for the selected agent; they work only where it is visible. @param {KeyboardEvent} e @param {string} key */
function teamKey(e, key) {
  switch (key) {
    case '1': case '2': case '3': showTab(TABS[Number(key) - 1]); return true;
    default: return !e.repeat && order(key);
  }
}

export function startKeys() {
  addEventListener('keydown', (e) => {
    const at = e.target instanceof Element ? e.target : document.body;
    if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k' && (!dialog.value || dialog.value === 'find')) {
      e.preventDefault(); // the browser's own search
      dialog.value = dialog.value ? '' : 'find';
      return;
    }
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || dialog.value) return;
    if (at.matches('input, textarea, select')) {
      if (e.key === 'Escape' && (at.id === 'words' || at.id === 'said-search')) { /** @type {HTMLElement} */ (at).blur(); e.preventDefault(); }
      if (e.key === 'Escape' && at.id === 'search') { search.value = ''; /** @type {HTMLElement} */ (at).blur(); e.preventDefault(); }
      return;
    }
    if (handle(e, at)) e.preventDefault();
  });
}
