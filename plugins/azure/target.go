package main

import (
	"context"
	"crypto/md5" // the digest that Azure checks on arrival; nobody relies on it against an attacker
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
)

// maxPage is the most blobs that Azure lists in one answer.
const maxPage = 5000

// target is a container.
type target struct {
	sdk.Target // of blobtarget, over the hooks below
	base       *http.Transport
}

var (
	_ sdk.Target = (*target)(nil)
	_ io.Closer  = (*target)(nil)
)

// open makes the clients. It does no network I/O: the first request finds out.
func open(ctx context.Context, cfg Config) (*target, error) {
	loc, err := locate(cfg)
	if err != nil {
		return nil, err
	}
	return assemble(ctx, loc, cfg.AccessTier, newTransport(), defaultChain)
}

func assemble(ctx context.Context, loc location, tier string, base *http.Transport, tokens chain) (*target, error) {
	client, err := newClient(loc, base, tokens)
	if err != nil {
		return nil, err
	}
	bucket, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, err
	}
	answers := table{loc: loc}
	put := putter{container: client, answers: answers, tier: tier}
	return &target{
		base: base,
		Target: blobtarget.New(bucket, blobtarget.Hooks{
			Put:        put.put,
			BeforeList: beforeList,
			Error:      answers.explain,
		}),
	}, nil
}

// Close ends the idle connections. Calls may still be made.
func (t *target) Close() error {
	t.base.CloseIdleConnections()
	return t.Target.(io.Closer).Close() // of blobtarget
}

// putter writes blobs.
type putter struct {
	container *container.Client
	answers   table
	tier      string // "" = what the account says
}

// put is one Put Blob. The body is read twice: for the MD5 that the store checks on arrival, and to be sent; each pass is checked against the
// declared SHA-256, and the end of a body that fails it is withheld, so that the declared length never arrives.
func (p putter) put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	sum := md5.New() // see above
	if _, err := io.Copy(sum, &watched{ctx: ctx, BodyReader: req.Body.Reader()}); err != nil {
		return sdk.PutResult{}, err
	}
	body := &watched{ctx: ctx, BodyReader: req.Body.Reader()}
	res, err := p.container.NewBlockBlobClient(req.Key).Upload(ctx, body, &blockblob.UploadOptions{
		Tier:                    p.tierOf(req.Class),
		TransactionalValidation: blob.TransferValidationTypeMD5(sum.Sum(nil)),
		AccessConditions:        conditions(req.IfAbsent),
	})
	if err == nil {
		return sdk.PutResult{Version: version(res.ETag)}, nil
	}
	if cause := body.fault.Load(); cause != nil {
		return sdk.PutResult{}, *cause
	}
	return sdk.PutResult{}, p.existed(req, err)
}

// tierOf leaves everything to the account when the operator chose no tier; with one, metadata is always hot.
func (p putter) tierOf(class sdk.Class) *blob.AccessTier {
	switch {
	case p.tier == "":
		return nil
	case class == sdk.ClassBulk:
		return to.Ptr(blob.AccessTier(p.tier))
	}
	return to.Ptr(blob.AccessTierHot)
}

func conditions(ifAbsent bool) *blob.AccessConditions {
	if !ifAbsent {
		return nil
	}
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}}
}

// existed reads a condition that did not hold as Exists: Azure says 409 BlobAlreadyExists, which the table knows, others ConditionNotMet. A 412
// without that word, as proxies answer, says nothing of a blob.
func (p putter) existed(req sdk.PutRequest, err error) error {
	var answer *azcore.ResponseError
	if !req.IfAbsent || !errors.As(err, &answer) || answer.ErrorCode != string(bloberror.ConditionNotMet) {
		return err
	}
	told := p.answers.explain(err)
	told.Code, told.Hint = sdk.Exists, ""
	return told
}

func version(tag *azcore.ETag) string {
	if tag == nil {
		return ""
	}
	return string(*tag)
}

// beforeList asks for large pages. Azure has no start-after that its emulator knows; blobtarget leaves out what comes before.
func beforeList(req sdk.ListRequest) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var opts *container.ListBlobsHierarchyOptions
		if as(&opts) && (req.Limit == 0 || req.Limit > maxPage) {
			opts.MaxResults = to.Ptr(int32(maxPage))
		}
		return nil
	}
}

// watched is a body that stops when ctx ends and remembers why it failed: net/http keeps the error of a body to itself on some ways.
type watched struct {
	*sdk.BodyReader
	ctx   context.Context
	fault atomic.Pointer[error]
}

func (w *watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.BodyReader.Read(p)
	if err != nil && err != io.EOF {
		w.fault.CompareAndSwap(nil, &err)
	}
	return n, err
}
