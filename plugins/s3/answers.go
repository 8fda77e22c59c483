package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cairnsync/cairn/sdk"
)

// peeked is how much of an answer is looked at for its first element, in bytes; XML declarations and comments before it are short.
const peeked = 4 << 10

// checkAnswer looks into answers of status 200, which the client takes for success whatever they hold: an error document, the page of a
// proxy and nothing at all would each be an empty listing.
func checkAnswer(stack *middleware.Stack) error {
	var root string
	switch stack.ID() {
	case "PutObject": // answers in its header only
	case "ListObjectsV2":
		root = "ListBucketResult"
	case "DeleteObjects":
		root = "DeleteResult"
	default:
		return nil
	}
	// Nearest to the wire: the client has a look of its own, which loses a body without any element.
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("CairnCheckAnswer",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			if res, ok := out.RawResponse.(*smithyhttp.Response); ok && err == nil && res.StatusCode/100 == 2 {
				err = lookInto(res, root)
			}
			return out, metadata, err
		}), middleware.After)
}

// lookInto leaves res as it was, save that an error document gets a status of its kind, so that the client reads it as one.
func lookInto(res *smithyhttp.Response, root string) error {
	head := make([]byte, peeked)
	n, err := io.ReadFull(res.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && (!errors.Is(err, io.ErrUnexpectedEOF) || n == 0) {
		return err
	}
	head = head[:n]
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), res.Body), res.Body}
	switch found := rootElement(head); {
	case found == "Error":
		res.StatusCode = 500
	case root == "" && len(bytes.TrimSpace(head)) > 0:
		return impostor("the answer to a Put holds a page, which begins with %.60q", head)
	case found != root:
		return impostor("the answer of status %d holds no <%s>, but begins with %.60q", res.StatusCode, root, head)
	}
	return nil
}

// impostor is an answer that no S3 store gives.
func impostor(format string, args ...any) error {
	return &sdk.Error{
		Code: sdk.Unavailable, Err: fmt.Errorf(format, args...),
		Hint: "something answers in the store's place; check the endpoint, and proxies before it",
	}
}

// rootElement is the name of the first element, "" when there is none.
func rootElement(head []byte) string {
	decoder := xml.NewDecoder(bytes.NewReader(head))
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local
		}
	}
}

// checkPage refuses pages that would leave a gap in a listing, or that cannot be read as rows.
func checkPage(stack *middleware.Stack) error {
	if stack.ID() != "ListObjectsV2" {
		return nil
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("CairnCheckPage",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleInitialize(ctx, in)
			asked, okIn := in.Parameters.(*s3.ListObjectsV2Input)
			page, okOut := out.Result.(*s3.ListObjectsV2Output)
			if err == nil && okIn && okOut {
				err = pageFault(asked, page)
			}
			return out, metadata, err
		}), middleware.After)
}

func pageFault(asked *s3.ListObjectsV2Input, page *s3.ListObjectsV2Output) error {
	token := aws.ToString(page.NextContinuationToken)
	switch {
	case page.IsTruncated == nil:
		return badPage("the store does not say whether more follows")
	case *page.IsTruncated && token == "":
		return badPage("the store says that more follows, and not where")
	case token != "" && token == aws.ToString(asked.ContinuationToken):
		return badPage("the store answers the same page again")
	}
	for _, row := range page.Contents {
		if row.Key == nil || row.Size == nil || row.LastModified == nil {
			return badPage("the store lists %q without its size or its time", aws.ToString(row.Key))
		}
	}
	return nil
}

func badPage(format string, args ...any) error {
	return &sdk.Error{Code: sdk.Corrupt, Err: fmt.Errorf(format, args...), Hint: "the store, or a proxy before it, lists wrongly; a listing with a gap is never taken for complete"}
}
