package main

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/cairnsync/cairn/sdk"
)

const (
	// connections is how many are kept for the next request; the host has at most 64 Puts in flight on a target.
	connections = 64

	// expectFrom is the size from which a Put waits for the store's "100 Continue" before it sends its body, in bytes. A store may refuse a
	// request by its header alone and reset the connection; a client that is still writing then never hears the refusal. Less than this
	// leaves in one segment with the header.
	expectFrom = 2 << 10

	// endpointRegion signs requests to stores of others, which ignore it or have this one as their default.
	endpointRegion = "us-east-1"
)

// newClient makes the client that everything goes through. It does no network I/O. Requests are made once: see refresher for the one
// exception.
func newClient(ctx context.Context, cfg Config, now func() time.Time) (*s3.Client, error) {
	// The SDK's own client type: a plain http.Client could not take AWS_CA_BUNDLE. It honours the proxy variables.
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
	})
	load := func(ctx context.Context) (aws.Config, error) {
		return config.LoadDefaultConfig(ctx, loadOptions(cfg, transport)...)
	}
	vendor, err := load(ctx)
	if err != nil {
		return nil, &sdk.Error{Code: sdk.InvalidConfig, Op: "open", Err: err, Hint: "correct the AWS_… variables of the plugin's env, the files they name, or profile"}
	}
	if vendor.Region == "" && (cfg.Endpoint != "" || vendor.BaseEndpoint != nil) {
		vendor.Region = endpointRegion
	}
	if vendor.Region == "" {
		return nil, &sdk.Error{Code: sdk.InvalidConfig, Op: "open", Attribute: "region", Hint: `say where the bucket is, as in region = "eu-central-1"`}
	}
	vendor.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	if cfg.AccessKey == "" {
		cache := aws.NewCredentialsCache(chain{load: load, now: now})
		vendor.Credentials = cache
		vendor.Retryer = func() aws.Retryer { return refresher{cache: cache} }
	}
	return s3.NewFromConfig(vendor, options(cfg)), nil
}

// loadOptions are the vendor's defaults with the operator's attributes on top.
func loadOptions(cfg Config, transport *awshttp.BuildableClient) []func(*config.LoadOptions) error {
	opts := []func(*config.LoadOptions) error{
		config.WithHTTPClient(transport),
		config.WithLogger(logging.Nop{}), // what matters comes back as an error
		config.WithAppID("cairn"),
	}
	if cfg.Region != "" {
		opts = append(opts, config.WithRegion(cfg.Region))
	}
	if cfg.Profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(cfg.Profile))
	}
	if cfg.AccessKey != "" {
		static := credentials.NewStaticCredentialsProvider(cfg.AccessKey, cfg.SecretKey.Reveal(), cfg.SessionToken.Reveal())
		opts = append(opts, config.WithCredentialsProvider(static))
	}
	return opts
}

func options(cfg Config) func(*s3.Options) {
	return func(o *s3.Options) {
		// What the environment says of retries is not for us.
		o.RetryMaxAttempts = 0
		o.UsePathStyle = cfg.PathStyle
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
		// Otherwise the client adds a CRC in a trailer, in a framing that stores of others refuse or store as content. Put sends a
		// checksum of its own.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		// The host checks every byte it reads; stores answer ranges with the checksum of the whole object.
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		o.ContinueHeaderThresholdBytes = expectFrom
		o.DisableS3ExpressSessionAuth = aws.Bool(true)
		o.APIOptions = append(o.APIOptions, checkAnswer, checkPage, sendMD5, waitForContinue)
	}
}

// waitForContinue makes the wait happen: the vendor's requests do not say which HTTP they are, and net/http waits from 1.1 on only.
func waitForContinue(stack *middleware.Stack) error {
	return stack.Build.Add(middleware.BuildMiddlewareFunc("CairnWaitForContinue",
		func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
			if req, ok := in.Request.(*smithyhttp.Request); ok {
				req.Proto, req.ProtoMajor, req.ProtoMinor = "HTTP/1.1", 1, 1
			}
			return next.HandleBuild(ctx, in)
		}), middleware.After)
}
