// Fetches the vendored modules again and writes static/vendor/ and its
// VENDORED.json. Run it by hand (`npm run vendor`) when a version changes, and
// read the diff: the same versions give the same bytes.
//
// What is done to each file, and nothing else:
//   1. bare imports become relative ones ("preact" -> "./preact.mjs"), because
//      an import map would be an inline script, which the page's policy forbids;
//   2. the pointer to a source map is cut, because the map is not shipped.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const packages = [
  { name: 'preact', version: '11.2.0', licence: 'MIT', files: { 'dist/preact.mjs': 'preact.mjs', 'hooks/dist/hooks.mjs': 'hooks.mjs' } },
  { name: 'htm', version: '3.1.1', licence: 'Apache-2.0', files: { 'dist/htm.mjs': 'htm.mjs' } },
  { name: '@preact/signals', version: '2.11.4', licence: 'MIT', files: { 'dist/signals.mjs': 'signals.mjs' } },
  { name: '@preact/signals-core', version: '1.14.5', licence: 'MIT', files: { 'dist/signals-core.mjs': 'signals-core.mjs' } },
  { name: 'uplot', version: '1.6.32', licence: 'MIT', files: { 'dist/uPlot.esm.js': 'uplot.mjs', 'dist/uPlot.min.css': 'uplot.css' } },
  { name: '@dagrejs/dagre', version: '3.1.3', licence: 'MIT', files: { 'dist/dagre.esm.js': 'dagre.mjs' } }, // with @dagrejs/graphlib in it, by the same author under the same licence
];

/** @type {Record<string, string>} */
const relative = {
  'preact': './preact.mjs',
  'preact/hooks': './hooks.mjs',
  'htm': './htm.mjs',
  '@preact/signals': './signals.mjs',
  '@preact/signals-core': './signals-core.mjs',
};

const out = new URL('./static/vendor/', import.meta.url).pathname;
const sha256 = (/** @type {string | Buffer} */ b) => createHash('sha256').update(b).digest('hex');

/** @param {string} text */
function rewrite(text) {
  const imports = text.replace(/(from\s*|import\s*)"([^"./\s][^"\s]*)"/g, (_, lead, name) => {
    if (!relative[name]) throw new Error(`no relative path is known for the import "${name}"; add it to the table`);
    return `${lead}"${relative[name]}"`;
  });
  return imports.replace(/\n?\/\/# sourceMappingURL=.*\n?/g, '\n').trimEnd() + '\n';
}

const work = mkdtempSync(join(tmpdir(), 'fairlead-vendor-'));
const record = {
  about: 'Written by vendor.mjs. upstream_sha256 is the file in the published package; sha256 is the file here. They differ by two rewrites: bare imports are relative paths, and the source map pointer is cut.',
  imports: relative,
  /** @type {object[]} */ files: [],
};
try {
  mkdirSync(join(out, 'licences'), { recursive: true });
  for (const p of packages) {
    const archive = execFileSync('npm', ['pack', '--silent', `${p.name}@${p.version}`], { cwd: work, encoding: 'utf8' }).trim();
    const folder = join(work, archive.replace(/\.tgz$/, ''));
    mkdirSync(folder);
    execFileSync('tar', ['xzf', join(work, archive), '-C', folder]);
    const licence = `licences/${p.name.replace('@', '').replace('/', '-')}.txt`;
    writeFileSync(join(out, licence), readFileSync(join(folder, 'package', 'LICENSE')));
    for (const [from, to] of Object.entries(p.files)) {
      const original = readFileSync(join(folder, 'package', from));
      const text = rewrite(original.toString('utf8'));
      writeFileSync(join(out, to), text);
      record.files.push({ file: to, package: p.name, version: p.version, path: from, licence: p.licence, licence_file: licence, upstream_sha256: sha256(original), sha256: sha256(text) });
    }
  }
  writeFileSync(join(out, 'VENDORED.json'), JSON.stringify(record, null, 2) + '\n');
} finally {
  rmSync(work, { recursive: true, force: true });
}
