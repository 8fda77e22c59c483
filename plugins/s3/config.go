package main

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/cairnsync/cairn/sdk"
)

// Config is the config block of an s3 target.
type Config struct {
	Bucket       string     `cairn:"bucket,required" doc:"the bucket's name; cairn makes no buckets"`
	Region       string     `cairn:"region" doc:"the bucket's region; needed unless AWS_REGION, the profile or an endpoint settles it (us-east-1 with an endpoint)"`
	Endpoint     string     `cairn:"endpoint" doc:"URL of a store that is not Amazon's, such as https://minio.example.org:9000"`
	PathStyle    bool       `cairn:"path_style" default:"false" doc:"ask for endpoint/bucket/key instead of bucket.endpoint/key, as most stores with an endpoint want it"`
	AccessKey    string     `cairn:"access_key" doc:"id of the key; without it the vendor's default chain is used: environment, profile, container, machine"`
	SecretKey    sdk.Secret `cairn:"secret_key" doc:"the key's secret; goes with access_key"`
	SessionToken sdk.Secret `cairn:"session_token" doc:"of temporary credentials; goes with access_key"`
	Profile      string     `cairn:"profile" doc:"of the shared configuration files; instead of access_key"`
	SSE          string     `cairn:"sse" enum:"AES256,aws:kms" doc:"server-side encryption that each object asks for; without it the bucket's own"`
	SSEKMSKeyID  string     `cairn:"sse_kms_key_id" doc:"the KMS key for sse = \"aws:kms\"; without it the account's own"`
	StorageClass string     `cairn:"storage_class" doc:"of packs, one that reads at once; the small objects that every start reads stay in the standard class"`
}

// validate needs no network. Each fault is an *sdk.Error of its own.
func validate(cfg Config) error {
	return errors.Join(
		fault("bucket", bucketFault(cfg)),
		fault("region", regionFault(cfg.Region)),
		fault("endpoint", endpointFault(cfg.Endpoint)),
		keysFault(cfg),
		sseFault(cfg),
		fault("storage_class", classFault(cfg)),
	)
}

// fault is nil for nil, so that errors.Join drops it.
func fault(attribute string, err error) error {
	if err == nil {
		return nil
	}
	return &sdk.Error{Code: sdk.InvalidConfig, Op: "validate", Attribute: attribute, Err: err}
}

// bucketFault knows Amazon's rules for names. Stores of others allow more.
func bucketFault(cfg Config) error {
	name := cfg.Bucket
	if cfg.Endpoint != "" {
		if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`).MatchString(name) {
			return fmt.Errorf("%q is no bucket's name: want letters, digits, dots, hyphens and underscores", name)
		}
		return nil
	}
	_, ipErr := netip.ParseAddr(name)
	switch {
	case !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`).MatchString(name):
		return fmt.Errorf("%q is no bucket's name: want 3 to 63 small letters, digits, dots and hyphens, with a letter or digit at both ends", name)
	case strings.Contains(name, "..") || ipErr == nil:
		return fmt.Errorf("%q is no bucket's name: it may be no IP address and hold no two dots in a row", name)
	case strings.HasSuffix(name, "--x-s3"):
		return fmt.Errorf("%q is a directory bucket: those do not list keys in order, so no repository can live there", name)
	}
	return nil
}

func regionFault(region string) error {
	if region == "" || regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(region) {
		return nil
	}
	return fmt.Errorf("%q is no region's name; one looks like eu-central-1", region)
}

func endpointFault(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("it is no URL; one looks like https://minio.example.org:9000") // the parser's error would repeat a password in it
	case u.User != nil:
		return errors.New("credentials do not belong in the URL: use access_key and secret_key")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("%q has no scheme or no host; one looks like https://minio.example.org:9000", endpoint)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q has something after the host: the bucket goes into bucket, and folders into the prefix of the sync block", endpoint)
	}
	return nil
}

// keysFault demands that what belongs together is there together. Unset secrets cannot be told from empty ones, and need not be.
func keysFault(cfg Config) error {
	var errs []error
	if cfg.AccessKey == "" && cfg.SecretKey != "" || cfg.AccessKey == "" && cfg.SessionToken != "" {
		errs = append(errs, fault("access_key", errors.New("secret_key and session_token need it")))
	}
	if cfg.AccessKey != "" && cfg.SecretKey == "" {
		errs = append(errs, fault("secret_key", errors.New("access_key needs it")))
	}
	if cfg.AccessKey != "" && cfg.Profile != "" {
		errs = append(errs, fault("profile", errors.New("give a profile or an access_key, not both")))
	}
	return errors.Join(errs...)
}

func sseFault(cfg Config) error {
	if cfg.SSEKMSKeyID != "" && cfg.SSE != string(types.ServerSideEncryptionAwsKms) {
		return fault("sse_kms_key_id", fmt.Errorf(`it needs sse = %q`, types.ServerSideEncryptionAwsKms))
	}
	return nil
}

// classFault lets only classes pass whose objects can be read at once: a restore reads packs. Stores of others have names of their own.
func classFault(cfg Config) error {
	class := types.StorageClass(cfg.StorageClass)
	switch {
	case class == "":
		return nil
	case class == types.StorageClassGlacier || class == types.StorageClassDeepArchive:
		return fmt.Errorf("objects in %s cannot be read before they are restored from it, so no checkpoint could be; GLACIER_IR can", class)
	case cfg.Endpoint != "":
		if !regexp.MustCompile(`^[A-Z0-9_-]{1,64}$`).MatchString(cfg.StorageClass) {
			return fmt.Errorf("%q is no storage class: want capital letters, digits, hyphens and underscores", class)
		}
		return nil
	case !slices.Contains(readableClasses(), class):
		return fmt.Errorf("%q is not one of %v", class, readableClasses())
	}
	return nil
}

func readableClasses() []types.StorageClass {
	return []types.StorageClass{
		types.StorageClassStandard, types.StorageClassStandardIa, types.StorageClassOnezoneIa, types.StorageClassIntelligentTiering,
		types.StorageClassGlacierIr, types.StorageClassReducedRedundancy,
	}
}
