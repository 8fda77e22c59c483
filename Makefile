# make alone says what there is. What says nothing else needs only Go (see go.mod) and a POSIX shell.

SHELL   := /bin/sh
VERSION ?= 0.1.0-dev
TOOL    := go tool -modfile=.ci/tools.mod
LDFLAGS := -s -w -X main.version=$(VERSION)
PLUGINS := $(notdir $(wildcard plugins/*))
GOFLAGS_TEST ?=

.PHONY: help build run test seeds fuzz by-hand torture test-cloud race bench lint generate check tidy clean

help: ## print this
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

build: ## build cairn and every plugin into bin/ (the vendors' clients take minutes the first time)
	@$(MAKE) --no-print-directory bin/cairn $(PLUGINS:%=bin/cairn-plugin-%)

# Go decides what is up to date, so these are made anew each time. Nobody but the owner may write what a host runs.
.PHONY: bin/cairn $(PLUGINS:%=bin/cairn-plugin-%)
bin/cairn:
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/host
	@chmod go-w bin $@

$(PLUGINS:%=bin/cairn-plugin-%): bin/cairn-plugin-%:
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ ./plugins/$*
	@chmod go-w bin $@

run: bin/cairn bin/cairn-plugin-file ## build the host and the file plugin, then run examples/quickstart.hcl until Ctrl-C
	bin/cairn run --config examples/quickstart.hcl

# -short leaves out the exam's level bulk and nothing else: gigabytes under the race detector take minutes. The second line has them without it.
test: ## every test but the torture and the clouds, with the race detector
	$(TOOL) gotestsum --format pkgname-and-test-fails -- -race -short -timeout 30m $(GOFLAGS_TEST) ./...
	$(TOOL) gotestsum --format pkgname-and-test-fails -- -run PassesTheExam -timeout 30m $(GOFLAGS_TEST) ./sdk/... ./core/pluginhost ./plugins/file
	cd examples/plugin-sqlite && go test $(GOFLAGS_TEST) ./...

seeds: ## properties, model and crash cycles at their full number (10,000; 1,000 crashes), without the race detector
	$(TOOL) gotestsum --format pkgname-and-test-fails -- -count 1 -timeout 20m ./core/trigger ./core/syncer
	$(TOOL) gotestsum --format pkgname-and-test-fails -- -count 1 -timeout 20m -run 'LeavesNothingBehind' ./core/pluginhost

# package and target of each fuzz test that make fuzz runs; make test runs their seeds
FUZZ := core/repository.FuzzDecodeCommit core/repository.FuzzStoredCommit core/repository.FuzzKeys core/repository.FuzzSmallObjects \
	core/repository.FuzzNoPathThatIsAcceptedLeavesItsRoot core/checkpoint.FuzzManifestBody core/checkpoint.FuzzManifestFile \
	core/config.FuzzAConfigurationIsReadOrEachFaultHasItsPlace core/syncer.FuzzSyncState sdk/rpc.FuzzAnswersOfAHostilePlugin sdk/rpc.FuzzRequestsOfAHostileHost \
	core/sqlcircuit.FuzzNDJSON core/sqlcircuit.FuzzCSV core/pluginhost.FuzzNoLineOfAPluginHarmsTheHost sdk.FuzzDecodeNeverPanics \
	sdk.FuzzCheckKeyAgreesWithItsDescription

fuzz: ## each fuzz target for FUZZTIME (10s); what it finds becomes a seed below testdata
	@for t in $(FUZZ); do echo "$$t"; go test ./$${t%.*} -run '^$$' -fuzz "^$${t##*.}\$$" -fuzztime $(or $(FUZZTIME),10s) || exit 1; done

by-hand: ## restore repositories without Cairn, as docs/format.md tells it; needs zstd and jq
	$(TOOL) gotestsum --format standard-verbose -- -tags byhand -count 1 -timeout 10m -run ByHand ./core/host

torture: ## kill -9, stalls, full disks, failing targets and two hosts that fight, against real processes (about fourteen minutes)
	$(TOOL) gotestsum --format standard-verbose -- -tags torture -timeout 60m -count 1 -run Torture ./cmd/host

test-cloud: ## the cloud plugins against real servers, installed on first use; needs Node.js and npm (about fifteen minutes)
	.ci/test-cloud

race: test ## the same as test

bench: ## the benchmarks behind the figures in docs/
	go test -run '^$$' -bench . -benchtime 3x ./core/sqlcircuit ./core/syncer

lint: ## golangci-lint as .golangci.yml says
	$(TOOL) golangci-lint run --build-tags torture,cloud,byhand ./...

generate: ## make the generated code, the OpenAPI document and the reference anew
	go generate ./...
	go test ./core/api ./core/config -update

check: lint ## lint, and that generated files are what would be generated now
	go run -modfile=.ci/tools.mod ./sdk/internal/pb/generate/main.go -check
	go test -count 1 ./core/api ./core/config -run 'OpenAPI|Reference'
	GOOS=darwin go vet ./...

tidy: ## go mod tidy
	go mod tidy

clean: ## remove what build and run made
	rm -rf bin data data-offsite data-elsewhere
