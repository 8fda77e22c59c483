// The certificate of one run of the plugin: the host learns it from the handshake line, trusts it alone, and forgets it with the process.
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

const der = (tag, ...parts) => {
  const body = Buffer.concat(parts);
  const size = body.length < 0x80 ? [body.length] : body.length < 0x100 ? [0x81, body.length] : [0x82, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
};
const sequence = (...parts) => der(0x30, ...parts);
const oid = (hex) => der(0x06, Buffer.from(hex, 'hex'));
const text = (tag, value) => der(tag, Buffer.from(value, 'latin1'));

/** newCertificate gives a self-signed X.509 v3 certificate for "localhost" (ECDSA P-256, SHA-256) and its key. */
export function newCertificate() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid('2a8648ce3d040302')); // ecdsa-with-SHA256
  const name = sequence(der(0x31, sequence(oid('550403'), text(0x0c, 'localhost')))); // commonName
  const altName = sequence(oid('551d11'), der(0x04, sequence(text(0x82, 'localhost')))); // the dNSName that the host looks for
  const serial = randomBytes(16);
  serial[0] = (serial[0] & 0x7f) | 0x01; // positive, and not zero
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // v3
    der(0x02, serial),
    algorithm,
    name, // issuer
    sequence(text(0x17, '700101000000Z'), text(0x18, '99991231235959Z')), // it lives as long as the process, whatever the clock says
    name, // subject
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(altName)),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey));
  const certificate = sequence(body, algorithm, signature);
  const lines = certificate.toString('base64').match(/.{1,64}/g).join('\n');
  return {
    der: certificate,
    pem: Buffer.from(`-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`),
    key: Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
}
