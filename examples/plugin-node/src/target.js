// The eight calls of service Target on a Store.
import { createHash } from 'node:crypto';
import { constants, open } from 'node:fs/promises';
import { isAbsolute, join, normalize } from 'node:path';
import { TargetError, targetError } from './errors.js';
import { isKey, Store } from './store.js';
import { detailOf } from './wire.js';

const FRAME = 256 * 1024;

const description = {
  name: 'node',
  version: '0.1.0',
  sdk: `node/${process.versions.node}`,
  doc: 'stores objects as files in a directory; an example of a plugin that is not written in Go',
  schema: { attributes: [{ name: 'dir', type: 'string', required: true, doc: 'the directory that holds the objects, absolute; it must exist' }] },
};

// diagnose gives the faults of a configuration. The host has checked names and types against the schema; the last word is the plugin's. No
// fault repeats a value: it may be a secret in the wrong place.
function diagnose(config) {
  const fault = (attribute, message) => detailOf(new TargetError('INVALID_CONFIG', message, { op: 'validate', attribute }));
  if (typeof config !== 'object' || config === null || Array.isArray(config)) return [fault('', 'the configuration is not a JSON object')];
  const errors = Object.keys(config).filter((name) => name !== 'dir').map((name) => fault(name, 'this plugin has no such attribute'));
  if (typeof config.dir !== 'string' || !isAbsolute(config.dir) || normalize(config.dir) === '/') {
    errors.push(fault('dir', 'want the absolute path of a directory that is not the root'));
  }
  return errors;
}

/** Target answers the host's calls, for one configured store. */
export class Target {
  constructor(calls, log) {
    this.calls = calls;
    this.log = log;
    this.roots = new Map(); // id → path, proven
  }

  /** handlers are what grpc-js serves. */
  handlers() {
    const { calls } = this;
    const moved = () => ({ bytes: 0, event() { return { progress: { bytes: this.bytes } }; } });
    return {
      Describe: calls.unary('describe', () => description),
      Validate: calls.unary('validate', ({ config }) => ({ errors: diagnose(JSON.parse(config)) })),
      Configure: calls.unary('configure', (request) => this.#configure(request)),
      Put: calls.stream('put', moved, (...call) => this.#put(...call)),
      Get: calls.stream('get', moved, (...call) => this.#get(...call)),
      List: calls.stream('list', () => ({ event: () => ({}) }), (...call) => this.#list(...call)),
      Delete: calls.unary('delete', ({ keys }, signal) => this.#delete(keys, signal)),
      Drain: ({ request }, reply) => calls.drain(request.timeout_nanos / 1e6).then((running) => reply(null, { running })),
    };
  }

  async #configure({ target, config: text, roots }) {
    if (this.store) throw new TargetError('UNSUPPORTED', 'the plugin is configured already');
    const config = JSON.parse(text);
    const errors = diagnose(config);
    if (errors.length > 0) return { diagnostics: { errors } };
    this.store = new Store(normalize(config.dir));
    this.store.sweep(Date.now());
    const proofs = [];
    for (const root of roots) {
      try {
        proofs.push({ root: root.id, nonce: await this.#prove(root) });
      } catch (err) { // then it is not proven, and the host decides what that means
        this.log('warn', 'a directory of the host cannot be read here', { root: root.id, path: root.path, error: err.message });
      }
    }
    this.log('debug', 'configured', { target, dir: config.dir });
    return { proofs };
  }

  async #prove({ id, path, nonce_file }) {
    this.roots.set(id, path);
    const file = await this.#openRange({ root: id, path: nonce_file, offset: 0 }, constants.O_RDONLY).catch((err) => {
      this.roots.delete(id);
      throw err;
    });
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  // openRange opens a file of a proven root: a regular one, not through a link, and never waiting for the other end of a pipe.
  async #openRange({ root, path, offset }, flags) {
    const folder = this.roots.get(root);
    if (folder === undefined || offset < 0 || isAbsolute(path) || path.split('/').includes('..')) {
      throw new TargetError('UNSUPPORTED', `file range ${path} at ${offset} in root ${root}, which is not proven or not left`);
    }
    const file = await open(join(folder, path), flags | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if ((await file.stat()).isFile()) return file;
    await file.close();
    throw new TargetError('UNSUPPORTED', `${path} is not a regular file`);
  }

  #configured(...keys) {
    if (!this.store) throw new TargetError('UNSUPPORTED', 'the plugin is not configured');
    for (const key of keys) if (!isKey(key)) throw new TargetError('UNSUPPORTED', 'not a key of the contract', { key });
    return this.store;
  }

  async #put(request, send, signal, progress) {
    await this.#configured(request.key).put(request.key, this.#body(request, signal, progress), request.if_absent, signal);
    await send({ done: {} });
  }

  // body yields the one source of a Put and throws at its end unless size and digest are those that were declared.
  async *#body(request, signal, progress) {
    const hash = createHash('sha256');
    for await (const chunk of request.source === 'inline' ? [request.inline] : this.#read(request.file, request.size)) {
      signal.throwIfAborted();
      hash.update(chunk);
      progress.bytes += chunk.length;
      yield chunk;
    }
    if (progress.bytes !== request.size || !hash.digest().equals(request.sha256)) {
      throw new TargetError('CORRUPT', `the ${progress.bytes} bytes of the body are not the ${request.size} that were declared`);
    }
  }

  async *#read(range, size) {
    const file = await this.#openRange(range, constants.O_RDONLY);
    try {
      yield* frames(file, range.offset, size);
    } finally {
      await file.close();
    }
  }

  async #get(request, send, signal, progress) {
    const { file, size } = await this.#configured(request.key).open(request.key);
    let sink;
    try {
      const count = rangeOf(request, size);
      if (request.sink) sink = await this.#openRange(request.sink, constants.O_WRONLY);
      await send({ open: { size: count } });
      const hash = createHash('sha256');
      for await (const chunk of frames(file, request.offset, count)) {
        hash.update(chunk);
        await (sink ? sink.write(chunk, 0, chunk.length, request.sink.offset + progress.bytes) : send({ data: Buffer.from(chunk) }));
        progress.bytes += chunk.length;
        signal.throwIfAborted();
      }
      if (progress.bytes !== count) throw new TargetError('CORRUPT', `the object ends after ${progress.bytes} of ${count} bytes`);
      await send({ end: { size: count, sha256: hash.digest() } });
    } finally {
      await sink?.close();
      await file.close();
    }
  }

  async #list({ prefix, start_after }, send, signal) {
    for await (const objects of this.#configured().list(prefix, start_after, signal)) await send({ objects });
    await send({ end: true });
  }

  async #delete(keys, signal) {
    const store = this.#configured(...keys);
    const errors = [];
    for (const key of keys) {
      signal.throwIfAborted();
      await store.delete(key).catch((err) => errors.push(detailOf(Object.assign(targetError(err), { op: 'delete', key }))));
    }
    await store.sync(keys);
    return { errors };
  }
}

// frames reads size bytes from an offset on, or what there is of them. A chunk is valid until the next one is asked for.
async function* frames(file, offset, size) {
  const buffer = Buffer.allocUnsafe(Math.min(FRAME, size));
  for (let done = 0; done < size;) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(FRAME, size - done), offset + done);
    if (bytesRead === 0) return;
    done += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

// rangeOf is the number of bytes that a Get of an object of that size yields.
function rangeOf({ offset, length }, size) {
  if (offset === 0 && length === -1) return size;
  if (offset >= size) throw new TargetError('CORRUPT', `the range begins at byte ${offset} of an object of ${size} bytes`);
  return length === -1 ? size - offset : Math.min(length, size - offset);
}
