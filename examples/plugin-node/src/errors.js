// Failures as the host wants them: it acts on the code and shows the rest to a person.

/** TargetError has the fields of the message of that name; code is a name of enum ErrorCode. */
export class TargetError extends Error {
  constructor(code, message, more = {}) {
    super(message);
    Object.assign(this, { code, ...more });
  }
}

const byErrno = {
  ENOSPC: 'NO_SPACE', EDQUOT: 'NO_SPACE',
  EACCES: 'PERMISSION_DENIED', EPERM: 'PERMISSION_DENIED', EROFS: 'PERMISSION_DENIED',
  ELOOP: 'UNSUPPORTED', EMLINK: 'UNSUPPORTED', ENOTSUP: 'UNSUPPORTED', ENAMETOOLONG: 'UNSUPPORTED', EXDEV: 'UNSUPPORTED',
  ENOENT: 'UNAVAILABLE', EIO: 'UNAVAILABLE', ESTALE: 'UNAVAILABLE', EMFILE: 'UNAVAILABLE', ENFILE: 'UNAVAILABLE', EBUSY: 'UNAVAILABLE',
};

/** targetError gives any failure its code: its own, or that of its errno. What is left is a defect of this plugin: INTERNAL. */
export function targetError(err) {
  if (err instanceof TargetError) return err;
  return new TargetError(byErrno[err.code] ?? 'INTERNAL', err.message, { provider: err.code });
}
