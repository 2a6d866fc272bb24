# `make` alone shows the help. Targets are one command each: what needs logic
# is a program (dev/cmd/devcluster, hack/ci) or a script (hack/).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

MODULE  := github.com/mcp-operator/mcp-operator
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X $(MODULE)/internal/version.version=$(VERSION)
MODULES := $(sort $(dir $(shell find . -name go.mod -not -path './.git/*' -not -path '*/node_modules/*')))

# The local cluster: state, kubeconfig and the binaries envtest starts.
export DEVCLUSTER_DIR ?= $(HOME)/.cache/mcp-operator-devcluster
export KUBEBUILDER_ASSETS ?= $(DEVCLUSTER_DIR)/assets
DEVCLUSTER := go run -C dev ./cmd/devcluster
IN_CLUSTER := KUBECONFIG=$(DEVCLUSTER_DIR)/kubeconfig
KUBECTL    ?= $(or $(shell command -v kubectl),$(DEVCLUSTER_DIR)/assets/kubectl)

# Tools are pinned in tools/go.mod; tools/ is a module so that they add nothing to ours.
TOOL := go tool -modfile=$(CURDIR)/tools/go.mod
LINT := $(TOOL) golangci-lint-kube-api-linter
# What in dev/ does not import Kubernetes itself: linting those mains would
# type-check all of Kubernetes to look at a few lines.
DEV_PACKAGES := ./cmd/demo/... ./cmd/devcluster/... ./cmd/echo/... ./cmd/pause/... ./cmd/petstore/... ./cmd/postgres/... ./internal/...

# The race detector needs a C compiler. Where everything is demanded its
# absence is an error, elsewhere the tests run without.
RACE := $(if $(CI)$(DEMAND_ALL)$(shell command -v $(CC)),-race)

##@ Start here

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9.-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: cluster-up images ## Local cluster, operator, a real MCP server, tools and an agent in it (root, Linux)
	go run -C dev ./cmd/demo

.PHONY: demo-down
demo-down: ## Stop the local cluster and forget what ran in it
	$(DEVCLUSTER) down --wipe

.PHONY: install
install: ## Apply the CRDs and the RBAC to the cluster of the current kubeconfig
	$(KUBECTL) apply --kustomize=config/crds
	$(KUBECTL) apply --kustomize=config/rbac

.PHONY: run
run: ## Run the operator on this machine against the current kubeconfig (ARGS="--help" for its flags)
	MCP_OPERATOR_GATEWAY_IMAGE="$${MCP_OPERATOR_GATEWAY_IMAGE:-mcp-operator/mcp-gateway:dev}" \
		go run -ldflags="$(LDFLAGS)" ./cmd/mcp-operator --leader-elect=false --log-format=text $(ARGS)

##@ Build

.PHONY: build
build: ## Build the manager into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags="-s -w $(LDFLAGS)" -o bin/ ./cmd/...

.PHONY: images
images: ## Build all image archives; load them if the local cluster is up
	$(DEVCLUSTER) images

.PHONY: install-manifest
install-manifest: ## Write everything into one file to apply, dist/install.yaml, and what is optional beside it
	mkdir -p dist
	$(KUBECTL) kustomize config/default > dist/install.yaml
	$(KUBECTL) kustomize config/default-with-webhook > dist/install-with-webhook.yaml
	$(KUBECTL) kustomize config/crds-sig > dist/install-crds-sig.yaml

.PHONY: generate
generate: ## Regenerate deep copies, CRDs, typed clients and apply configurations
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) controller-gen crd paths=./api/v1alpha1 output:crd:dir=config/crds
	$(TOOL) controller-gen crd paths=./api/sig/v1alpha1 output:crd:dir=config/crds-sig
	rm -rf client/applyconfiguration client/clientset
	$(TOOL) applyconfiguration-gen --output-dir=client/applyconfiguration \
		--output-pkg=$(MODULE)/client/applyconfiguration $(MODULE)/api/v1alpha1
	$(TOOL) client-gen --clientset-name=versioned --input-base= --input=$(MODULE)/api/v1alpha1 \
		--output-dir=client/clientset --output-pkg=$(MODULE)/client/clientset \
		--apply-configuration-package=$(MODULE)/client/applyconfiguration

.PHONY: format
format: ## Format all Go code and tidy every module
	$(LINT) fmt
	cd dev && $(LINT) fmt --config=../.golangci.yml
	for module in $(MODULES); do go -C $$module mod tidy; done

##@ Test

.PHONY: test
test: ## Run every test: unit, schema, envtest, end-to-end on the local cluster
	@go run ./hack/ci test

.PHONY: test-unit
test-unit: ## Unit tests, with the race detector
	$(if $(RACE),,@echo "no C compiler: WITHOUT the race detector")
	go test $(RACE) $$(go list ./... | grep -v -e $(MODULE)/test/ -e $(MODULE)/hack/)
	cd dev && go test $(DEV_PACKAGES)

.PHONY: test-cel
test-cel: envtest-assets ## Every rule of the CRDs' schemas, against a real API server
	go test -count=1 ./test/cel/...

.PHONY: test-envtest
test-envtest: envtest-assets ## The controllers against a real API server
	go test -count=1 -timeout=10m ./test/envtest/...

.PHONY: test-envtest-oldest
test-envtest-oldest: envtest-assets ## The same, the API server emulating the oldest supported Kubernetes
	ENVTEST_EMULATED_VERSION=1.34 go test -count=1 -timeout=10m ./test/cel/... ./test/envtest/...

.PHONY: test-gateway
test-gateway: ## The gateway's binary between real clients and servers of every protocol version
	go test -count=1 -timeout=10m ./test/gateway/...

.PHONY: conformance
conformance: ## The official MCP conformance suites, through the gateway in every way (Linux, npm)
	go test -count=1 -timeout=10m -v ./test/conformance/...

.PHONY: test-e2e
test-e2e: cluster-up images ## The operator, installed as in production, on the local cluster (root, Linux)
	$(IN_CLUSTER) go test -count=1 -timeout=20m -v ./test/e2e/...

.PHONY: bench
bench: cluster-up images bench-gateway ## Print the latencies, rates and memory of operator and gateway, on the local cluster (root, Linux)
	$(IN_CLUSTER) go test -count=1 -timeout=60m -run='^$$' -bench=. -benchtime=1x ./test/scale/...

.PHONY: bench-gateway
bench-gateway: ## Print the gateway's rates, times and memory beside a plain reverse proxy's (Linux)
	go test -count=1 -timeout=10m -run='^$$' -bench=. -benchtime=1x ./test/gateway/bench/...

##@ Check

.PHONY: verify
verify: ## Regenerate, lint, scan; fail if the work tree differs from what is committed or staged
	@go run ./hack/ci verify

.PHONY: lint
lint: ## Run all linters over every module
	$(LINT) config verify
	status=0; $(LINT) run ./... || status=1; \
	cd dev; $(LINT) run --config=../.golangci.yml $(DEV_PACKAGES) || status=1; exit $$status

.PHONY: vulncheck
vulncheck: ## Search for known vulnerabilities in code that is reached
	$(TOOL) govulncheck ./...

.PHONY: check-tidy
check-tidy: ## Every go.mod and go.sum is tidy
	@status=0; for module in $(MODULES); do \
		go -C $$module mod tidy -diff || { status=1; echo "not tidy: $$module (make format mends it)" >&2; }; \
	done; exit $$status

.PHONY: check-layout
check-layout: ## Paths and commands named in the docs exist; sizes and names of files are as agreed
	go test -count=1 ./hack/...

.PHONY: check-tree
check-tree: ## Nothing in the work tree differs from what is committed or staged
	hack/check-tree.sh

##@ Local cluster

.PHONY: cluster-build
cluster-build: ## Build the local cluster's binaries (some minutes once; root, to install packages)
	$(DEVCLUSTER) build

.PHONY: cluster-up
cluster-up: cluster-build ## Start the local cluster, or heal it
	$(DEVCLUSTER) up

.PHONY: cluster-down
cluster-down: ## Stop the local cluster
	$(DEVCLUSTER) down

.PHONY: envtest-assets
envtest-assets: ## Build etcd and kube-apiserver, unless KUBEBUILDER_ASSETS names others
	$(if $(filter $(DEVCLUSTER_DIR)/assets,$(KUBEBUILDER_ASSETS)),$(DEVCLUSTER) build --only=envtest)

.PHONY: clean
clean: ## Remove what the targets above built in this folder
	rm -rf bin dist
