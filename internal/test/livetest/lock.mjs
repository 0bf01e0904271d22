// Takes out of package-lock.json what was not to be had when it was written: packages for other
// systems than this one, which not every registry holds. `npm ci` would want each of them to be in
// the lock, and fail. Run it after `npm install --package-lock-only --ignore-scripts`, in the folder
// of the lock: `node lock.mjs`, or `node ../lock.mjs`.
import { readFileSync, writeFileSync } from "node:fs";

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const there = Object.entries(lock.packages).filter(([path, p]) => path === "" || p.version || p.link);
lock.packages = Object.fromEntries(there);
for (const p of Object.values(lock.packages)) {
	for (const name of Object.keys(p.optionalDependencies ?? {})) {
		if (!there.some(([path]) => path.endsWith(`node_modules/${name}`))) delete p.optionalDependencies[name];
	}
}
writeFileSync("package-lock.json", JSON.stringify(lock, null, 2) + "\n");
