// The places and actions that can be chosen now.

import { command, LABELS, tell } from '../agents/actions.js';
import { cell, names, team } from '../agents/state.js';
import { running } from '../agents/words.js';
import * as api from '../shell/api.js';
import { configure } from '../configure/state.js';
import { needs } from '../inbox/state.js';
import { summon, wake } from '../crew/actions.js';
import { button, lead, sure } from '../crew/state.js';
import { channelNames } from '../channels/state.js';
import { sessions } from '../dispatch/state.js';
import { openRepository } from '../repositories/actions.js';
import { running as repositories } from '../repositories/state.js';
import { needWords } from '../repositories/words.js';
import { PERIODS } from '../history/period.js';
import { runs } from '../runs/state.js';
import { looking, toggle } from '../moment/state.js';
import { live } from '../shell/connection.js';
import { places } from '../shell/nav.js';
import { nextTheme, theme } from '../shell/prefs.js';
import { choose, dialog, go, showChannel, showDispatch, showNeed, showPeriod, showRun, showTab, showTask, spoken, TABS } from '../shell/router.js';
import { plain } from '../shell/text.js';
import { fit } from './words.js';

/** @typedef {{id: string, group: 'Go to' | 'Do', label: string, hint: string, icon: string, run: () => void}} Command */

/** Commands shown for a query; typing more finds the others. */
export const SHOWN_MAX = 8;

/** @returns {Command[]} what is listed before a word is typed */
export function mainCommands() {
  /** @type {Command[]} */
  const list = places.value.map(([to, label, key]) => ({ id: `go ${to}`, group: 'Go to', label, hint: key, icon: 'shut', run: () => go(to) }));
  list.push({ id: 'go repositories', group: 'Go to', label: 'All repositories', hint: '', icon: 'shut', run: () => go('repositories') });
  const order = (/** @type {string} */ label, /** @type {string} */ hint, /** @type {string} */ icon, /** @type {() => void} */ run) => { list.push({ id: `do ${label}`, group: 'Do', label, hint, icon, run }); };
  if (live.value) {
    order('New task', '', 'plus', () => { go('tasks'); dialog.value = 'task'; });
    order('Add an agent', '', 'plus', () => configure('add'));
    order('Start a run', '', 'play', () => { go('runs'); dialog.value = 'start'; });
    order('Start a dispatch', '', 'play', () => { go('dispatch'); dialog.value = 'session'; });
    order(team.value.hold ? 'Release the team' : 'Hold the team', 'H', 'hold', () => { dialog.value = team.peek().hold ? 'release' : 'hold'; });
  }
  if (live.value) {
    const word = button.value;
    if (word === 'SUMMON' || word === 'WAKE') order(`${word === 'WAKE' ? 'Wake' : 'Summon'} the crew`, '', 'sun', () => { go('crew'); void (word === 'WAKE' ? wake : summon)(); });
    if (lead.value.session) order('Send the crew to sleep\u2026', '', 'moon', () => { go('crew'); sure.value = true; });
  }
  order(looking.value ? 'Back to now' : 'Look back: the page as it was', 'P', 'clock', toggle);
  order(`Change the theme (now ${theme.value})`, 'T', 'sun', nextTheme);
  order('Keys and words', '?', 'look', () => { dialog.value = 'help'; });
  return list;
}

/** Takes an agent out of its channels, or back. @param {string} name @param {'enable' | 'disable'} verb */
const ableOrTell = (name, verb) => void api.ableAgent(name, verb).then(() => { spoken.value = `${plain(name, 60)} ${verb}d`; }, (err) => tell(`${verb} ${plain(name, 60)}`, err));

/** @param {string} name @param {(c: Command) => void} add @param {number} words that were typed: one finds the agent, more find its times too */
function ofAgent(name, add, words) {
  const a = cell(name)?.agent.value;
  if (!a) return;
  const shown = plain(name, 80);
  const open = (/** @type {string} */ tab) => () => { go('agents'); choose(name); showTab(tab); };
  add({ id: `agent ${name}`, group: 'Go to', label: shown, hint: 'agent', icon: 'shut', run: open('output') });
  for (const tab of TABS.slice(1)) add({ id: `${tab} ${name}`, group: 'Go to', label: `${shown}: ${tab}`, hint: 'agent', icon: 'shut', run: open(tab) });
  if (words > 1) for (const [word, label] of PERIODS.slice(1)) add({ id: `${word} ${name}`, group: 'Go to', label: `${shown}: ${label.toLowerCase()}`, hint: 'history', icon: 'shut', run: () => { open('history')(); showPeriod(word); } });
  if (!live.value) return;
  const order = (/** @type {import('../shell/api.js').Verb} */ verb, /** @type {string} */ icon) => add({ id: `${verb} ${name}`, group: 'Do', label: `${LABELS[verb]}: ${shown}`, hint: '', icon, run: () => void command(name, verb) });
  if (!running(a) || a.desired_state !== 'continuous') order('start', 'play');
  if (running(a) || a.desired_state !== 'pause') order('stop', 'stop');
  if (channelNames.value.length > 0) {
    for (const [verb, icon] of /** @type {['enable' | 'disable', string][]} */ ([['disable', 'hold'], ['enable', 'play']])) {
      add({ id: `${verb} ${name}`, group: 'Do', label: `${verb === 'enable' ? 'Enable' : 'Disable'}: ${shown}`, hint: 'in channels', icon, run: () => ableOrTell(name, verb) });
    }
  }
  order('once', 'once');
  for (const [op, label] of /** @type {['edit' | 'remove', string][]} */ ([['edit', 'Edit agent'], ['remove', 'Remove agent']])) add({ id: `${op} ${name}`, group: 'Do', label: `${label}: ${shown}`, hint: 'fairlead.yaml', icon: op === 'edit' ? 'pen' : 'close', run: () => configure(op, name) });
  order('cleanup', 'broom');
}

/** The best commands for some words. @param {string[]} words @returns {Command[]} */
export function commandsFor(words) {
  if (words.length === 0) return mainCommands();
  /** @type {{score: number, command: Command}[]} */
  const fits = [];
  const add = (/** @type {Command} */ c) => {
    const score = fit(`${c.label} ${c.group === 'Go to' && c.hint.length > 1 ? c.hint : ''}`, words);
    if (score > 0) fits.push({ score, command: c });
  };
  mainCommands().forEach(add);
  for (const i of needs.value) {
    const what = i.question ? `${i.agent}: ${i.question.what}` : i.task?.title || (i.step_id ? `${i.step_id} of ${i.workflow_name}` : i.agent || i.workflow_name || i.why || '');
    add({ id: `need ${i.id}`, group: 'Go to', label: `${i.kind === 'step' ? 'Approve or reject' : i.question ? 'Answer' : 'Look at'}: ${plain(what, 120)}`, hint: 'needs you', icon: 'look', run: () => showNeed(i.question?.id ?? i.id) });
  }
  for (const [word, label] of PERIODS.slice(1)) add({ id: `history ${word}`, group: 'Go to', label: `History: ${label.toLowerCase()}`, hint: 'of the team', icon: 'shut', run: () => { go('history'); showPeriod(word); } });
  for (const name of names.value) ofAgent(name, add, words.length);
  for (const name of channelNames.value) add({ id: `channel ${name}`, group: 'Go to', label: `#${plain(name, 80)}`, hint: 'channel', icon: 'shut', run: () => showChannel(name) });
  for (const r of repositories.value) if (!r.here) add({ id: `repository ${r.id}`, group: 'Go to', label: `Switch to repository ${plain(r.name, 80)}`, hint: needWords(r), icon: 'shut', run: () => void openRepository(r) });
  for (const d of sessions.value) add({ id: `dispatch ${d.name}`, group: 'Go to', label: plain(d.name, 80), hint: 'dispatch', icon: 'shut', run: () => showDispatch(d.name) });
  for (const r of runs.value) {
    const id = plain(r.run_id, 60);
    if (r.task) add({ id: `task ${r.run_id}`, group: 'Go to', label: `${id} ${plain(r.task.title, 120)}`, hint: 'task', icon: 'shut', run: () => showTask(r.run_id) });
    else add({ id: `run ${r.run_id}`, group: 'Go to', label: `${plain(r.workflow_name, 80)} ${id}`, hint: 'run', icon: 'shut', run: () => showRun(r.run_id) });
  }
  fits.sort((a, b) => b.score - a.score || a.command.label.localeCompare(b.command.label));
  return fits.slice(0, SHOWN_MAX).map((f) => f.command);
}
