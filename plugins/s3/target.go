package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cairnsync/cairn/sdk"
)

// store is what blobtarget's hooks are for S3.
type store struct {
	client *s3.Client
	cfg    Config
	table  errorTable
}

// put is one PutObject whose body is read once. The declared SHA-256 goes out in the signature and as the object's checksum, so
// that the store refuses another content; and as not every store looks, the body's reader does so too, and withholds its end.
func (s *store) put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	if err := checkEmpty(req.Body); err != nil {
		return sdk.PutResult{}, err
	}
	body := &upload{BodyReader: req.Body.Reader()}
	out, err := s.client.PutObject(ctx, s.putInput(req, body), s3.WithAPIOptions(signedAs(req.Body.SHA256())))
	switch {
	case err == nil:
		return putResult(req, out)
	case req.IfAbsent && (undecided(err) || brokenOff(err) && body.sent.Load() < req.Body.Size()):
		return sdk.PutResult{}, s.conflict(ctx, req.Key, err)
	}
	return sdk.PutResult{}, err
}

// upload is a body that counts what has been taken of it.
type upload struct {
	*sdk.BodyReader
	sent atomic.Int64
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.BodyReader.Read(p)
	u.sent.Add(int64(n))
	return n, err
}

func (u *upload) Seek(offset int64, whence int) (int64, error) {
	at, err := u.BodyReader.Seek(offset, whence)
	if err == nil {
		u.sent.Store(at)
	}
	return at, err
}

// undecided is a refusal that does not say whether there is an object: the store's 409, or a 412 without words, of which the client makes
// the store's code. Proxies answer 412 to whom they do not let in.
func undecided(err error) bool {
	var api smithy.APIError
	var res *smithyhttp.ResponseError
	if !errors.As(err, &res) || res.HTTPStatusCode() != http.StatusPreconditionFailed {
		return apiCode(err) == "ConditionalRequestConflict"
	}
	return !errors.As(err, &api) || api.ErrorCode() != "PreconditionFailed" || api.ErrorMessage() == http.StatusText(http.StatusPreconditionFailed)
}

// brokenOff is a request that got no answer, though neither its caller nor its body ended it. Some stores refuse a create while its body is
// still on the way, and close the connection; net/http then tells of the write that failed and not of the answer that lay behind it. As
// long as a part of the body was never sent, an object of that name is somebody else's.
func brokenOff(err error) bool { return apiCode(err) == "" && sdk.CodeOf(err) == sdk.Internal }

func (s *store) putInput(req sdk.PutRequest, body io.Reader) *s3.PutObjectInput {
	sum := req.Body.SHA256()
	in := &s3.PutObjectInput{
		Bucket:               aws.String(s.cfg.Bucket),
		Key:                  aws.String(req.Key),
		Body:                 body,
		ContentLength:        aws.Int64(req.Body.Size()),
		ContentType:          aws.String("application/octet-stream"),
		ChecksumSHA256:       aws.String(base64.StdEncoding.EncodeToString(sum[:])),
		ServerSideEncryption: types.ServerSideEncryption(s.cfg.SSE),
	}
	if req.IfAbsent {
		in.IfNoneMatch = aws.String("*")
	}
	if s.cfg.SSEKMSKeyID != "" {
		in.SSEKMSKeyId = aws.String(s.cfg.SSEKMSKeyID)
	}
	if req.Class == sdk.ClassBulk {
		in.StorageClass = types.StorageClass(s.cfg.StorageClass)
	}
	return in
}

// checkEmpty reads the body of nothing, which the client would not.
func checkEmpty(body sdk.Body) error {
	if body.Size() > 0 {
		return nil
	}
	if _, err := body.Reader().Read(nil); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// signedAs has the request signed with the known digest of its body, on http and on https. On the caller's ctx the value would be dropped
// silently: the client clears such values at the start of its stack.
func signedAs(sum [32]byte) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("CairnPayloadHash",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				return next.HandleInitialize(v4.SetPayloadHash(ctx, hex.EncodeToString(sum[:])), in)
			}), middleware.Before)
	}
}

func putResult(req sdk.PutRequest, out *s3.PutObjectOutput) (sdk.PutResult, error) {
	res := sdk.PutResult{Version: aws.ToString(out.ETag)}
	if res.Version == "" {
		return sdk.PutResult{}, impostor("the answer to a Put names no ETag")
	}
	if aws.ToString(out.ChecksumSHA256) == "" {
		return res, nil
	}
	sum, err := base64.StdEncoding.DecodeString(*out.ChecksumSHA256)
	if err != nil || len(sum) != len(res.SHA256) || [32]byte(sum) != req.Body.SHA256() {
		return sdk.PutResult{}, &sdk.Error{Code: sdk.Corrupt, Err: fmt.Errorf("the store attests the SHA-256 %q to an object of another", *out.ChecksumSHA256)}
	}
	copy(res.SHA256[:], sum)
	return res, nil
}

// conflict looks what came of a create that raced with another request for the key, was broken off, or refused without a word. The store's 409
// alone does not say that there is an object: a delete may have won. A create is told that the key exists only when it does.
func (s *store) conflict(ctx context.Context, key string, raced error) error {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(s.cfg.Bucket), Key: aws.String(key), Range: aws.String("bytes=0-0")})
	switch {
	case err == nil:
		out.Body.Close()
		if aws.ToString(out.ETag) == "" {
			return impostor("the answer to a Get names no ETag")
		}
		return &sdk.Error{Code: sdk.Exists, Err: raced}
	case apiCode(err) == "InvalidRange":
		return &sdk.Error{Code: sdk.Exists, Err: raced} // of no bytes
	case apiCode(err) == "NoSuchKey":
		return s.again(raced)
	}
	return fmt.Errorf("look what came of the race: %w", err)
}

// again is a create that did not come to pass though nothing stood in its way.
func (s *store) again(raced error) error {
	told := s.table.explain(raced)
	if told == nil {
		return raced // of the network
	}
	told.Code = sdk.Unavailable
	return told
}

func apiCode(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

// startAfter begins a listing where the host wants it. It is sent with the first page: the token of each later one knows.
func startAfter(req sdk.ListRequest) func(as func(any) bool) error {
	if req.StartAfter == "" {
		return nil
	}
	return func(as func(any) bool) error {
		var in *s3.ListObjectsV2Input
		if !as(&in) {
			return errors.New("gocloud lists in another way than ListObjectsV2")
		}
		if in.ContinuationToken == nil {
			in.StartAfter = aws.String(req.StartAfter)
		}
		return nil
	}
}
