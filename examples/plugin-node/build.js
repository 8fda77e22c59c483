// Makes bin/cairn-plugin-node, one executable file with everything the plugin needs: the host runs a private copy of that one file, from
// another folder, so nothing that lies beside it would be found. A plugin gets no PATH either, so the first line names this very node.
import { chmodSync } from 'node:fs';
import { build } from 'esbuild';

const outfile = 'bin/cairn-plugin-node';
await build({
  entryPoints: ['src/main.js'],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  loader: { '.proto': 'text' },
  banner: { js: `#!${process.execPath}` },
});
chmodSync(outfile, 0o755);
