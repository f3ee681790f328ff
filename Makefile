# The product needs no C compiler.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X github.com/toryo-dev/toryo/internal/app/site.version=$(VERSION) -X github.com/toryo-dev/toryo/internal/sandbox/guest.version=$(VERSION)
GOLANGCI_LINT = scripts/tool github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# Flags for make dist, such as -image none; go run ./tools/dist -help lists them.
DIST ?=

# What to test and lint: make test PACKAGES=./internal/store/...
PACKAGES ?= ./...

.DEFAULT_GOAL := help
.PHONY: help build needs test test-rest test-all test-dist test-quick fresh first-day drill eval-set lint fmt generate pictures dist dist-check bench bench-long clean

# What make test needs; no server among it is compiled from source.
NEEDS := gcc git python postgresql bubblewrap docker contracts signing aimock chromium axe

help: ## Print this list
	@awk -F ' *## ' '/^[a-z-]+:.* ## / { sub(/:.*/, "", $$1); printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the static programs bin/toryo and bin/toryo-guest
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/toryo ./cmd/toryo
	CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/toryo-guest ./internal/sandbox/guest/program

needs: ## Install what make test needs, where this machine lacks it
	@scripts/install-needs $(NEEDS)

test: needs ## Install and start what the tests need, run them, stop it again
	@scripts/with-services scripts/test $(PACKAGES)

test-rest: needs ## Compile Gitea and Kubernetes if need be, run the tests on them
	@scripts/install-needs gitea kubernetes
	@scripts/with-services scripts/test --compiled $(PACKAGES)

test-dist: needs ## Run the tests of releases: packages, the image, the chart on Kubernetes (root)
	@scripts/install-needs image kubernetes
	@scripts/with-services scripts/test --release

test-all: test test-rest test-dist ## Run every test: those of test, test-rest and test-dist

test-quick: ## Run the tests that need no service
	go test $(PACKAGES)

fresh: ## Run both commands of the README on a bare system made for it (root)
	@scripts/fresh

first-day: ## Install the Debian package on such a system and connect a real Gitea (root)
	@scripts/fresh --go-caches package

drill: ## Break installations for an hour, and on Gitea for a quarter; write drill.html (root)
	@scripts/install-needs postgresql bubblewrap gitea
	@scripts/drill

eval-set: ## Make tasks for evaluations from versions of Go modules, into eval-set
	@scripts/install-needs git bubblewrap
	go run ./tools/evalset --out eval-set

lint: ## Check the Go code and the scripts
	@scripts/lint $(PACKAGES)

fmt: ## Format the Go code
	@$$($(GOLANGCI_LINT)) fmt

dist: ## Build a release from the last commit into dist/VERSION
	@go run -trimpath ./tools/dist $(DIST)

dist-check: ## Build a release into dist/VERSION, once more elsewhere, and compare every byte
	@go run -trimpath ./tools/dist $(DIST) check

generate: ## Write the generated files anew
	go generate ./...

pictures: ## Take the pictures of the documentation anew, into docs/images
	@scripts/install-needs chromium
	@mkdir -p docs/images
	go test -count=1 -run 'TestPictures$$' ./internal/web -pictures ../../docs/images

bench: ## Measure what users feel, and other programs beside it, in less than 15 minutes
	@scripts/install-needs postgresql bubblewrap docker chromium kubernetes
	@POSTGRES_FSYNC=on scripts/with-services go run ./tools/bench

bench-long: ## Measure what takes longer: load, idleness, forges, verdicts, comments, restarts, a large repository, empty caches
	@scripts/install-needs postgresql bubblewrap docker gitea
	@echo "What make test took the last time:"
	@scripts/test --times || true
	@echo "What becomes of 10,000 comments at random moments of runs:"
	@TORYO_TEST_COMMENTS=10000 go test -count=1 -timeout 60m -run 'TestCommentsAtRandomMoments$$' -v ./internal/endtoend
	@echo "How soon a failed check is handed out as a fix-up, with webhooks and without, and what that costs the forge: in memory, and on a real Gitea:"
	@go test -count=1 -run 'TestFromAFailedCheckToTheHandOut$$' -v ./internal/broker | grep -o '|.*|$$'
	@go test -count=1 -run 'TestOnGiteaPullsAreFollowed/.*/a_check_fails$$' -v ./internal/endtoend | grep -o '|.*|$$'
	@POSTGRES_FSYNC=on scripts/with-services go run ./tools/bench long

clean: ## Remove what was built
	rm -rf bin dist
