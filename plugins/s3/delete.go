package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cairnsync/cairn/sdk"
)

// delete is one DeleteObjects. The store answers for each key; one that it says nothing of is not taken for deleted.
func (s *store) delete(ctx context.Context, keys []string) error {
	in := &s3.DeleteObjectsInput{Bucket: aws.String(s.cfg.Bucket), Delete: &types.Delete{}}
	for _, key := range keys {
		in.Delete.Objects = append(in.Delete.Objects, types.ObjectIdentifier{Key: aws.String(key)})
	}
	out, err := s.client.DeleteObjects(ctx, in)
	if err != nil {
		return refusedDelete(s.table.explain(err), err)
	}
	answers := map[string]error{}
	for _, one := range out.Deleted {
		answers[aws.ToString(one.Key)] = nil
	}
	request, _ := awsmiddleware.GetRequestIDMetadata(out.ResultMetadata)
	for _, one := range out.Errors {
		answers[aws.ToString(one.Key)] = s.table.keyError(one, request)
	}
	var errs []error
	for _, key := range keys {
		err, answered := answers[key]
		if !answered {
			err = &sdk.Error{Code: sdk.Unavailable, Key: key, Err: errors.New("the store's answer says nothing of this key")}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// keyError is the failure of one key of a DeleteObjects. That it is not there is none.
func (t errorTable) keyError(one types.Error, request string) error {
	code := aws.ToString(one.Code)
	if code == "NoSuchKey" {
		return nil
	}
	e := t.row(code, 0, aws.ToString(one.Message))
	e.Key, e.Provider = aws.ToString(one.Key), provider(code, request)
	return &e
}

// refusedDelete adds what to do where a store does not know the request at all.
func refusedDelete(e *sdk.Error, err error) error {
	if e == nil || e.Code != sdk.Unsupported {
		return err
	}
	e.Hint = "this store does not take DeleteObjects, which removes many keys in one request: without it nothing can be deleted, so keep everything or use another store"
	return e
}

// sendMD5 adds the Content-MD5 that older stores demand of DeleteObjects; the client sends a CRC32, which they do not know.
func sendMD5(stack *middleware.Stack) error {
	if stack.ID() != "DeleteObjects" {
		return nil
	}
	return smithyhttp.AddContentChecksumMiddleware(stack)
}
