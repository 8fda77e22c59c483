// A Cairn plugin in Node.js. The host starts it, reads one line from its standard output and then speaks gRPC to it: see docs/protocol.md.
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import grpc from '@grpc/grpc-js';
import { newCertificate } from './certificate.js';
import { Target } from './target.js';
import { Calls, service } from './wire.js';

const MESSAGE_LIMIT = 8 * 1024 * 1024;
const { CAIRN_PLUGIN, PLUGIN_CLIENT_CERT, PLUGIN_UNIX_SOCKET_DIR } = process.env;

if (CAIRN_PLUGIN !== 'target-f7b2c7e6a1d84c0f') {
  process.stderr.write('This is a plugin of Cairn. It is not run by hand: name it in a target block of the configuration.\n');
  process.exit(1);
}
console.log = console.error; // standard output is for the handshake

// Standard error goes to the host's log, a line each.
function log(level, message, more = {}) {
  process.stderr.write(JSON.stringify({ '@level': level, '@message': message, ...more }) + '\n');
}

const calls = new Calls();

async function endAfter(reason, milliseconds) {
  const running = await calls.drain(milliseconds);
  log('debug', 'plugin ends', { reason, calls_given_up: running });
  process.exit(0);
}

// The host holds the other end of standard input and never writes to it: its end is the end of the host.
process.stdin.resume().once('close', () => endAfter('standard input ended', 1000)).on('error', () => {});
process.on('SIGTERM', () => endAfter('SIGTERM', 5000));
process.on('SIGINT', () => {}); // a terminal sends it to everybody; the host decides
process.stderr.on('error', () => {}); // the host may be gone

const certificate = newCertificate();
const credentials = grpc.ServerCredentials.createSsl(
  Buffer.from(PLUGIN_CLIENT_CERT), // nobody but this host is served
  [{ cert_chain: certificate.pem, private_key: certificate.key }],
  true,
);
const server = new grpc.Server({
  'grpc.max_receive_message_length': MESSAGE_LIMIT,
  'grpc.max_send_message_length': MESSAGE_LIMIT,
});
server.addService(service, new Target(calls, log).handlers());

const socket = join(PLUGIN_UNIX_SOCKET_DIR, 'plugin.sock');
server.bindAsync(`unix:${socket}`, credentials, (err) => {
  if (err) {
    log('error', 'cannot listen', { socket, error: err.message });
    process.exit(1);
  }
  const encoded = certificate.der.toString('base64').replaceAll('=', ''); // the host refuses padding
  writeSync(1, `1|1|unix|${socket}|grpc|${encoded}\n`);
});
