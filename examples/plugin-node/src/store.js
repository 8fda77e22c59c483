// A directory as a store of small immutable objects. Each object is a file whose name is its key with "~" for "/". A key that is longer than
// a file's name may be is cut into pieces: all but the last are folders whose names end in "+", all but the first begin with "+" (else one
// might be ".."). No key holds either character.
import { randomUUID } from 'node:crypto';
import { constants, link, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { TargetError } from './errors.js';

const PAGE = 500;
const TEMPORARY = '+tmp';
const TEMPORARY_MAX_AGE = 24 * 60 * 60 * 1000; // then its writer is dead: the host gives a Put a few minutes

const pathOf = (key) => key.replaceAll('/', '~').match(/.{1,200}/g).join('+/+');
const keyOf = (path) => path.replaceAll('+/+', '').replaceAll('~', '/');

/** isKey says whether a name is one that the contract allows. */
export const isKey = (key) => key.length <= 512 && /^[A-Za-z0-9._/-]+$/.test(key) &&
  key.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && part.length <= 200);

const ignore = (...codes) => (err) => {
  if (!codes.includes(err.code)) throw err;
};

async function syncFolder(folder) {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Store is one directory, which must exist: a disk that is not mounted is not an empty store. Its methods may be called at once. */
export class Store {
  constructor(folder) {
    this.folder = folder;
    this.durable = new Set(); // folders whose names are on disk
  }

  /** put stores what body yields under the key, whole or not at all. body is an async iterable of Buffers that throws unless all of it came. */
  async put(key, body, ifAbsent, signal) {
    const path = join(this.folder, pathOf(key));
    const temporary = join(this.folder, TEMPORARY, randomUUID());
    await this.#makeFolder(dirname(temporary));
    await this.#makeFolder(dirname(path));
    try {
      await this.#fill(temporary, body);
      signal.throwIfAborted();
      // link(2) fails when the name exists, whoever made it and however close; rename(2) replaces.
      await (ifAbsent ? link(temporary, path) : rename(temporary, path));
    } catch (err) {
      if (err.code === 'ENOENT') this.durable.clear(); // somebody removed a folder
      if (err.code !== 'EEXIST') throw err;
      await syncFolder(dirname(path)); // the one who made it may have died before doing so
      throw new TargetError('EXISTS', 'an object has this key');
    } finally {
      await rm(temporary, { force: true });
    }
    await syncFolder(dirname(path));
  }

  async #fill(temporary, body) {
    const file = await open(temporary, 'wx', 0o600);
    try {
      for await (const chunk of body) await file.writeFile(chunk);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** open gives a handle of the object's file, which the caller closes, and its size. */
  async open(key) {
    let file;
    try {
      file = await open(join(this.folder, pathOf(key)), constants.O_RDONLY | constants.O_NOFOLLOW);
    } catch (err) {
      if (err.code !== 'ENOENT') throw err;
      await this.#mustExist();
      throw new TargetError('NOT_FOUND', 'no object has this key');
    }
    return { file, size: (await file.stat()).size };
  }

  /** list yields pages of objects with the prefix, after a key, in the order of keys. */
  async *list(prefix, after, signal) {
    await this.#mustExist();
    const keys = (await this.#keys()).filter((key) => key.startsWith(prefix) && key > after).sort();
    for (let i = 0; i < keys.length; i += PAGE) {
      signal.throwIfAborted();
      const objects = await Promise.all(keys.slice(i, i + PAGE).map((key) => this.#describe(key)));
      yield objects.filter((object) => object !== undefined);
    }
  }

  async #keys(folder = '', keys = []) {
    for (const entry of await readdir(join(this.folder, folder), { withFileTypes: true })) {
      const path = folder + entry.name;
      if (entry.isDirectory() && /^.{200,}\+$/.test(entry.name)) await this.#keys(path + '/', keys);
      if (entry.isFile() && isKey(keyOf(path))) keys.push(keyOf(path)); // a stranger's file that cannot be an object is passed over
    }
    return keys;
  }

  async #describe(key) {
    const info = await stat(join(this.folder, pathOf(key)), { bigint: true }).catch(ignore('ENOENT')); // deleted meanwhile
    return info && { key, size: String(info.size), modified_unix_nano: String(info.mtimeNs) };
  }

  /** delete removes an object; a missing one is success. It is durable after sync. */
  async delete(key) {
    await rm(join(this.folder, pathOf(key))).catch(ignore('ENOENT'));
  }

  /** sync makes the removal of these keys durable. */
  async sync(keys) {
    await this.#mustExist();
    for (const folder of new Set(keys.map((key) => dirname(join(this.folder, pathOf(key)))))) {
      await syncFolder(folder).catch(ignore('ENOENT'));
    }
  }

  /** sweep removes what writers left that were killed long ago. */
  async sweep(now) {
    const folder = join(this.folder, TEMPORARY);
    for (const name of await readdir(folder).catch(() => [])) {
      const info = await stat(join(folder, name)).catch(() => undefined);
      if (info && info.mtimeMs < now - TEMPORARY_MAX_AGE) await rm(join(folder, name)).catch(() => {}); // it is only space
    }
  }

  // Folders are made durably and never removed, so nobody loses one between making it and using it.
  async #makeFolder(folder) {
    if (folder === this.folder) return this.#mustExist();
    if (this.durable.has(folder)) return;
    await this.#makeFolder(dirname(folder));
    await mkdir(folder, 0o700).catch(ignore('EEXIST'));
    await syncFolder(dirname(folder)); // also when it was there: another process may have made it a moment ago
    this.durable.add(folder);
  }

  async #mustExist() {
    await stat(this.folder).catch((err) => {
      if (err.code !== 'ENOENT') throw err;
      throw new TargetError('UNAVAILABLE', `${this.folder} does not exist`, { hint: `is its disk mounted? If the target is new: mkdir -p ${this.folder}` });
    });
  }
}
