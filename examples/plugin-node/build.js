// Makes bin/cairn-plugin-node, one executable file with everything the plugin needs: the host runs a private copy of that one file, from
// another folder, so nothing that lies beside it would be found. A plugin gets no PATH either, so the first line names this very node. Whether
// node reads a file without extension as CommonJS or as an ES module is decided by any package.json above it; this file is both.
import { chmodSync } from 'node:fs';
import { build } from 'esbuild';

const outfile = 'bin/cairn-plugin-node';
await build({
  entryPoints: ['src/main.js'],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'iife',
  loader: { '.proto': 'text' },
  banner: { js: `#!${process.execPath}\nvar require = process.getBuiltinModule('node:module').createRequire(process.execPath);` },
});
chmodSync(outfile, 0o755);
