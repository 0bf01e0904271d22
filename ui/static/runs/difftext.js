// Reads the text of `git diff` into files and lines. The text is an agent's, so nothing of it is trusted: a line that is
// not understood is shown as it is.

/** @typedef {{kind: 'add' | 'del' | 'hunk' | 'same' | 'note', text: string, at: number}} DiffLine at: the line in the new file; 0: none */
/** @typedef {{name: string, added: number, deleted: number, lines: DiffLine[]}} DiffFile */

const NAME_MAX = 300;

/** @param {string} line after "diff --git " */
const nameOf = (line) => {
  const at = line.lastIndexOf(' b/');
  return (at < 0 ? line : line.slice(at + 3)).slice(0, NAME_MAX);
};

/** @param {string} text @returns {DiffFile[]} */
export function readDiff(text) {
  /** @type {DiffFile[]} */
  const files = [];
  /** @type {DiffFile | null} */
  let file = null;
  let at = 0, inHunk = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('diff --git ')) {
      file = { name: nameOf(line.slice(11)), added: 0, deleted: 0, lines: [] };
      files.push(file);
      inHunk = false;
      continue;
    }
    if (!file) continue;
    const hunk = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      at = Number(hunk[1]);
      inHunk = true;
      file.lines.push({ kind: 'hunk', text: line, at: 0 });
    } else if (!inHunk) {
      if (/^(new file|deleted file|old mode|new mode|rename|copy|similarity|Binary files)/.test(line)) file.lines.push({ kind: 'note', text: line, at: 0 });
    } else if (line.startsWith('+')) {
      file.added++;
      file.lines.push({ kind: 'add', text: line.slice(1), at: at++ });
    } else if (line.startsWith('-')) {
      file.deleted++;
      file.lines.push({ kind: 'del', text: line.slice(1), at: 0 });
    } else if (line.startsWith(' ')) {
      file.lines.push({ kind: 'same', text: line.slice(1), at: at++ });
    } else if (line !== '') {
      file.lines.push({ kind: 'note', text: line, at: 0 });
    }
  }
  return files;
}

/** Splits lines into blocks, so that the browser lays out only those in sight. @template T @param {T[]} list @param {number} size @returns {T[][]} */
export function blocks(list, size) {
  const all = [];
  for (let i = 0; i < list.length; i += size) all.push(list.slice(i, i + size));
  return all;
}
