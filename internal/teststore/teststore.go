// Package teststore starts real object stores for tests: versitygw (S3), fake-gcs-server (Google Cloud Storage), Azurite (Azure Blob
// Storage), and s3rver, which looks like S3 and lies about conditional writes; and toxiproxy, a network to any of them that can fail.
//
// Only tests import it. Each call starts a server process of its own on a free loopback port, with one empty bucket, and ends it by its
// process id when the test ends; a test that fails shows what the server printed. The servers are pinned and installed on first use,
// below os.UserCacheDir()/cairn-test-stores or the folder that CAIRN_TEST_STORES names: minutes for the two that are compiled. Nothing
// of them enters the module's go.mod. A server that cannot be installed or started fails the test, it never skips it.
//
// The goroutine that waits for a server's process has ended when the test's cleanup has run.
package teststore

import (
	"net/url"
	"path/filepath"
	"testing"
)

// Server is a store that runs, with an empty bucket in it. Fields that its kind of store does not know are empty.
type Server struct {
	Endpoint             string // "http://127.0.0.1:PORT", without a path
	Bucket               string // the bucket, or the container of Azure
	Region               string // S3
	AccessKey, SecretKey string // S3
	Account, AccountKey  string // Azure; the key is in base64, as Azure gives it
	Dir                  string // S3: the bucket as a folder, each object a file at its key; for whoever looks behind the back of the protocol
}

const bucket = "cairn-test"

// S3 starts versitygw 1.8.0 over a folder of the test.
func S3(t testing.TB) Server {
	t.Helper()
	dir := install(t, goProgram("versitygw", "v1.8.0", "github.com/versity/versitygw/cmd/versitygw"))
	objects := t.TempDir()
	return start(t, program{
		name: "versitygw",
		command: func(_ testing.TB, address string) (env, args []string) {
			env = []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey}
			return env, []string{filepath.Join(dir, "versitygw"), "--port", address, "--quiet", "posix", objects}
		},
		server: Server{Region: region, AccessKey: accessKey, SecretKey: secretKey, Dir: filepath.Join(objects, bucket)},
		create: createS3Bucket,
	})
}

// GCS starts fake-gcs-server 1.56.1, in memory.
func GCS(t testing.TB) Server {
	t.Helper()
	dir := install(t, goProgram("fake-gcs-server", "v1.56.1", "github.com/fsouza/fake-gcs-server"))
	return start(t, program{
		name: "fake-gcs-server",
		command: func(_ testing.TB, address string) (env, args []string) {
			u := url.URL{Scheme: "http", Host: address}
			return nil, []string{
				filepath.Join(dir, "fake-gcs-server"), "-scheme", "http", "-host", u.Hostname(), "-port", u.Port(), "-backend", "memory",
				"-public-host", address, "-external-url", u.String(), "-log-level", "error",
			}
		},
		create: createGCSBucket,
	})
}

// Azure starts Azurite 3.35.0, in memory.
func Azure(t testing.TB) Server {
	t.Helper()
	dir := install(t, nodeProgram("azurite", "3.35.0"))
	return start(t, program{
		name: "azurite",
		command: func(_ testing.TB, address string) (env, args []string) {
			u := url.URL{Host: address}
			return []string{"AZURITE_ACCOUNTS=" + account + ":" + accountKey}, []string{
				"node", filepath.Join(dir, "node_modules/azurite/dist/src/blob/main.js"), "--blobHost", u.Hostname(), "--blobPort", u.Port(),
				"--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry",
			}
		},
		server: Server{Account: account, AccountKey: accountKey},
		create: createAzureContainer,
	})
}

// Liar starts s3rver 3.7.1. It speaks S3 and does not keep its promises: it ignores If-None-Match, so that all of many writers win,
// takes bodies whose checksum is wrong, and fails to list a thousand keys.
func Liar(t testing.TB) Server {
	t.Helper()
	dir := install(t, nodeProgram("s3rver", "3.7.1"))
	return start(t, program{
		name: "s3rver",
		command: func(t testing.TB, address string) (env, args []string) {
			u := url.URL{Host: address}
			return nil, []string{
				"node", filepath.Join(dir, "node_modules/s3rver/bin/s3rver.js"), "--address", u.Hostname(), "--port", u.Port(), "--silent",
				"--directory", t.TempDir(), "--configure-bucket", bucket,
			}
		},
		server: Server{Region: region, AccessKey: "S3RVER", SecretKey: "S3RVER"}, // it knows no others
		create: nil,                                                              // made by --configure-bucket
	})
}
