// The wire: the service definition from target.proto, calls as promises with an AbortSignal, and failures as gRPC statuses with their detail.
import { once } from 'node:events';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';
import protobuf from 'protobufjs';
import proto from '../target.proto'; // the text, put here by build.js
import { TargetError, targetError } from './errors.js';

// google/rpc/status.proto, as far as it is needed: the envelope of an error's details.
const statusProto = `syntax = "proto3"; package google.rpc; import "google/protobuf/any.proto";
message Status { int32 code = 1; string message = 2; repeated google.protobuf.Any details = 3; }`;

const parse = (...texts) => {
  const root = new protobuf.Root();
  root.addJSON(protobuf.common.get('google/protobuf/any.proto').nested);
  texts.forEach((text) => protobuf.parse(text, root, { keepCase: true }));
  return loader.fromJSON(root.toJSON(), { keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true });
};
const messages = parse(proto, statusProto);

export const service = messages['cairn.target.v1.Target'];

const grpcCodes = {
  NOT_FOUND: 'NOT_FOUND', EXISTS: 'ALREADY_EXISTS', PERMISSION_DENIED: 'PERMISSION_DENIED', UNAUTHENTICATED: 'UNAUTHENTICATED',
  INVALID_CONFIG: 'INVALID_ARGUMENT', THROTTLED: 'RESOURCE_EXHAUSTED', UNAVAILABLE: 'UNAVAILABLE', NO_SPACE: 'RESOURCE_EXHAUSTED',
  CORRUPT: 'DATA_LOSS', CANCELLED: 'CANCELLED', UNSUPPORTED: 'UNIMPLEMENTED',
};

/** detailOf is an error as a message TargetError. */
export const detailOf = ({ message, code, op, key, attribute, provider, hint }) => ({ message, code, op, key, attribute, provider, hint });

// The host acts on the detail; the gRPC code is for tools.
function statusOf(err) {
  const code = grpc.status[grpcCodes[err.code] ?? 'INTERNAL'];
  const value = messages['cairn.target.v1.TargetError'].serialize(detailOf(err));
  const details = [{ type_url: 'type.googleapis.com/cairn.target.v1.TargetError', value }];
  const metadata = new grpc.Metadata();
  metadata.set('grpc-status-details-bin', messages['google.rpc.Status'].serialize({ code, message: err.message, details }));
  return { code, details: err.message, metadata };
}

/** Calls is the account of what runs: it lets calls in, cancels them all, and waits for them. */
export class Calls {
  constructor() {
    this.running = new Set();
    this.idle = undefined; // while draining: the promise that nothing runs any more
  }

  /** unary makes a gRPC handler of answer(request, signal). */
  unary(op, answer) {
    return (call, callback) => {
      this.#run(op, call, (signal) => answer(call.request, signal)).then((reply) => callback(null, reply), (err) => callback(statusOf(err)));
    };
  }

  /** stream makes a gRPC handler of work(request, send, signal, beat). While it works the host hears beat.event() at once and every second. */
  stream(op, newBeat, work) {
    return (call) => {
      const beat = newBeat();
      const timer = setInterval(() => call.write(beat.event()), 1000);
      call.write(beat.event());
      const send = async (event, signal) => {
        // A host that does not read holds the sender, not this process's memory.
        if (!call.write(event)) await once(call, 'drain', { signal }).catch(() => {});
        signal.throwIfAborted();
      };
      this.#run(op, call, (signal) => work(call.request, (event) => send(event, signal), signal, beat))
        .then(() => call.end(), (err) => call.emit('error', statusOf(err)))
        .finally(() => clearInterval(timer));
    };
  }

  async #run(op, call, work) {
    const abort = new AbortController();
    call.on('cancelled', () => abort.abort(new TargetError('CANCELLED', 'the host gave up')));
    if (call.cancelled) abort.abort(new TargetError('CANCELLED', 'the host gave up'));
    this.running.add(abort);
    try {
      if (this.idle) throw new TargetError('UNAVAILABLE', 'the plugin is draining');
      return await work(abort.signal);
    } catch (err) {
      throw Object.assign(targetError(err), { op, key: err.key ?? call.request.key });
    } finally {
      this.running.delete(abort);
      if (this.running.size === 0) this.resolveIdle?.();
    }
  }

  /** drain refuses new calls, cancels those that run and waits for them. It gives the number of those that had not ended in time. */
  async drain(milliseconds) {
    this.idle ??= new Promise((resolve) => { this.resolveIdle = resolve; });
    for (const abort of this.running) abort.abort(new TargetError('UNAVAILABLE', 'the plugin is draining'));
    if (this.running.size > 0) await Promise.race([this.idle, new Promise((late) => setTimeout(late, milliseconds))]);
    return this.running.size;
  }
}
