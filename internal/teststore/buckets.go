package teststore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The credentials of all servers that ask for some. They open nothing but a test's own server.
const (
	region     = "us-east-1"
	accessKey  = "cairn-access"
	secretKey  = "cairn-secret-key" //nolint:gosec // see above
	account    = "cairnaccount"
	accountKey = "Y2Fpcm4tdGVzdC1hY2NvdW50LWtleS0wMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg=="
)

func createS3Bucket(ctx context.Context, s Server) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.Endpoint+"/"+s.Bucket, http.NoBody)
	if err != nil {
		return err
	}
	empty := sha256.Sum256(nil)
	digest := hex.EncodeToString(empty[:])
	req.Header.Set("X-Amz-Content-Sha256", digest)
	keys := aws.Credentials{AccessKeyID: s.AccessKey, SecretAccessKey: s.SecretKey}
	now := time.Now() //nolint:forbidigo // the server compares it with its own clock
	if err := v4.NewSigner().SignHTTP(ctx, keys, req, digest, "s3", s.Region, now); err != nil {
		return err
	}
	return ask(req)
}

func createGCSBucket(ctx context.Context, s Server) error {
	body := strings.NewReader(fmt.Sprintf(`{"name":%q}`, s.Bucket))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint+"/storage/v1/b?project=test", body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return ask(req)
}

func createAzureContainer(ctx context.Context, s Server) error {
	key, err := container.NewSharedKeyCredential(s.Account, s.AccountKey)
	if err != nil {
		return err
	}
	address, err := url.JoinPath(s.Endpoint, s.Account, s.Bucket)
	if err != nil {
		return err
	}
	client, err := container.NewClientWithSharedKeyCredential(address, key, nil)
	if err != nil {
		return err
	}
	_, err = client.Create(ctx, nil)
	return err
}

// ask sends a request that must succeed.
func ask(req *http.Request) error { return answered(req, nil) }

// answered is ask, with the JSON of the answer for whoever wants it.
func answered(req *http.Request, into any) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode/100 != 2:
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // only to be shown
		return fmt.Errorf("%s %s: %s: %s", req.Method, req.URL, res.Status, text)
	case into == nil:
		return nil
	}
	return json.NewDecoder(res.Body).Decode(into)
}
