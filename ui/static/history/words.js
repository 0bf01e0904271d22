// A change of the journal in plain words. Pure. The words of the tables stand behind a toggle.

import { plain } from '../shell/text.js';

/** @typedef {import('../shell/api.js').Change} Change */

/** What happened, by machine and event. `{s}` stands for the session. @type {Record<string, string>} */
const WORDS = Object.assign(Object.create(null), {
  'control file_found': 'its state file was found',
  'control file_missing': 'its state file is missing; it was written again',
  'control file_malformed': 'its state file could not be read; a copy was kept',
  'control file_torn': 'its state file was damaged when the machine stopped',
  'control current_contradicted': 'another program wrote a current state; it was corrected',
  'control wish_overtaken': 'an older order in the file was overtaken by a newer one',
  'control extra_written': 'another program wrote fields of its own',
  'control pause_stands': 'a file asked to lift a pause that only a person may lift',
  'control due_continuous': 'it may run again',
  'control due_run_once': 'its one session is due',
  'control due_run_cleanup': 'its cleanup session is due',
  'control due_over_limit': 'it may not run: a daily limit is used up',
  'control session_adopted': 'its session outlived the daemon and goes on',
  'control wanted_continuous': 'ordered to run continuously',
  'control wanted_run_once': 'ordered to run once',
  'control wanted_run_cleanup': 'ordered to clean up',
  'control wanted_pause': 'ordered to pause',
  'control wanted_unknown': 'the file has an order that is not known',
  'control wanted_again': 'ordered to run once more',
  'control wanted_held': 'ordered to run, and waits for the hold',
  'control wanted_stopping': 'ordered to run after the next start',
  'control wanted_over_limit': 'ordered to run, and waits for its daily limit',
  'control ended_go_on': 'the session ended; the next one follows',
  'control ended_cleanup_due': 'the session ended; a cleanup follows',
  'control ended_wish_pause': 'the session ended; it pauses as ordered',
  'control ended_wish_run_once': 'the session ended; one more follows',
  'control ended_wish_run_cleanup': 'the session ended; a cleanup follows',
  'control ended_limited': 'the session ended; a daily limit is used up',
  'control ended_held': 'the session ended; the team is held',
  'control ended_stopping': 'the session ended; Fairlead is stopping',
  'control lost_go_on': 'the session was lost with the machine; the next one follows',
  'control provider_waits': 'its provider takes nothing at present; it waits',
  'control conversation_lost': 'its program no longer knows the conversation; a new one follows',
  'control failed_backing_off': 'the session failed; it is tried again later',
  'control failed_for_good': 'it failed too often and gave up',
  'control one_shot_ended': 'its one session is done',
  'control one_shot_failed': 'its one session failed',
  'control one_shot_lost': 'its one session was lost with the machine',
  'control one_shot_again': 'its one session is done; one more follows',
  'control one_shot_still_owing': 'its one session has not begun yet and is due again',
  'control limit_reached': 'a limit is reached',
  'control backoff_elapsed': 'the pause after a failure is over',
  'control hold_set': 'the team was held',
  'control hold_lifted': 'the hold was lifted',
  'control stop_asked': 'Fairlead was asked to stop',
  'control reported': 'it reported what it does',
  'control program_due': 'its program is to be started',
  'control program_postponed': 'its program waits for a daily limit',
  'control program_ended': 'its program ended',
  'session opened': '{s} is about to start',
  'session started': '{s} started',
  'session adopted': '{s} outlived the daemon and goes on',
  'session end_asked': '{s} was asked to end',
  'session told': '{s} was given its prompt',
  'session named': '{s} told the name of its conversation',
  'session status_said': '{s} said what it works on',
  'session token_given': '{s} was given its token for Fairlead\u2019s tools',
  'session person_told': 'a person told {s} something',
  'session tell_given': '{s} was given what a person told',
  'session ended': '{s} ended',
  'session lost': '{s} was lost with the machine',
  'session withdrawn': '{s} was withdrawn before it started',
  'session claimed': 'another request waits for the slot',
  'session claim_dropped': 'a request that waited is no longer wanted',
  'team hold_asked': 'the team was held',
  'team release_asked': 'the hold was lifted',
  'team stop_asked': 'Fairlead was asked to stop',
  'run run_started': 'the run started',
  'run run_paused': 'the run was paused',
  'run run_released': 'the run goes on',
  'run run_cancelled': 'the run was cancelled',
  'run run_resumed': 'the run was resumed',
});

/** The name after the machine. @param {string} entity */
const nameIn = (entity) => plain(entity.slice(entity.indexOf('/') + 1), 80);

/** What a change did, without its time and its subject. @param {Change} ch */
export function changeWords(ch) {
  const known = WORDS[`${ch.machine} ${ch.trigger}`];
  if (!known) return plain(ch.trigger, 160).replaceAll('_', ' ') + (ch.from === ch.to ? '' : `: ${plain(ch.to, 40)}`);
  const id = plain(ch.data?.session?.id ?? '', 60);
  return known.replaceAll('{s}', id ? `session ${id}` : 'the session');
}

/** A change as one line: its subject and what it did. @param {Change} ch */
export const changeLine = (ch) => (ch.machine === 'team' ? changeWords(ch) : `${nameIn(ch.entity)}: ${changeWords(ch)}`);

/** Who made a change, as short as possible. @param {Change} ch */
export function changeActor(ch) {
  const { kind = '', id = '' } = ch.actor ?? {};
  if (kind === 'human') return id && id !== 'human' ? plain(id, 40) : 'a person';
  if (kind === 'agent') return `agent ${plain(id, 40)}`;
  return 'Fairlead';
}
