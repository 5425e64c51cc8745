# rdskit: "make help" lists the targets.

GO       ?= go
PREFIX   ?= /usr/local
BINDIR   ?= $(PREFIX)/bin
DATADIR  ?= $(PREFIX)/share
MANDIR   ?= $(DATADIR)/man
FUZZTIME ?= 60s
# "make test" leaves the long runs out.
TESTFLAGS = -short
# A second rds-ping or rds-stress that "make bench" runs in turn with ours.
PEER     ?=

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.NOTPARALLEL:

# Version control stamps the version; a checkout that git refuses to read (no
# git, or another owner) must build all the same.
ifeq ($(shell git status --porcelain >/dev/null 2>&1 && echo ok),)
export GOFLAGS := $(GOFLAGS) -buildvcs=false
endif

# Leaves out of urfave/cli what makes documents: a fifth of the time that a command takes to start.
tags     := urfave_cli_no_docs
commands := $(notdir $(wildcard cmd/*))
lab      := $(CURDIR)/bin/rds-lab
# Packages that make no system calls: the other architectures' tests.
pure     := ./cmsg/... ./internal/abi/...
kernels  := 6.1 6.12
cross    := linux/arm64 linux/386 linux/s390x darwin/arm64

.PHONY: help
help: ## list the targets
	@awk -F ': .*## ' '/^[a-z0-9-]+: .*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: toolchain
toolchain:
	@version=$$($(GO) env GOVERSION 2>&1) || version="none ($$version)"; \
	if [[ ! $$version =~ ^(go(1\.(2[6-9]|[3-9][0-9])|[2-9])|devel) ]]; then \
		echo "rdskit needs Go 1.26 or later; '$(GO)' is $$version. See https://go.dev/dl/, or name another with make GO=..." >&2; \
		exit 1; \
	fi

.PHONY: build
build: toolchain ## build the commands into bin/, static
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(tags) -o bin/ ./cmd/...

.PHONY: demo
demo: build lab ## show rds-ping between two hosts, in a small kernel
	@echo; echo "Two hosts, h1 and h2, in a kernel with RDS. h1 pings h2 over RDS/TCP:"
	$(lab) run --hosts 2 -- $(CURDIR)/bin/rds-ping -c 3 -i 0.2 10.9.0.2
	@echo; echo "The same over IPv6:"
	$(lab) run --hosts 2 -- $(CURDIR)/bin/rds-ping -c 3 -i 0.2 fd00::2

.PHONY: lab
lab: build
	$(lab) setup

# The kernels for tests of RDMA, and with the race detector.
.PHONY: lab-qemu
lab-qemu: build
	for kernel in $(kernels); do $(lab) setup --profile qemu --kernel $$kernel; done

.PHONY: test
test: test-host test-cross test-386 test-lab test-lab-rdma test-lab-race ## vet and build for all systems, test on the host and in the lab

.PHONY: test-all
test-all: TESTFLAGS =
test-all: EARLIER += ./rdsinfo/
test-all: LATER = $(call packages,$(call files,\w+))
test-all: machine_kernels = $(kernels)
test-all: RACE += ./internal/sys/ ./rdsinfo/ ./cmd/rds-ping/
test-all: test-host test-race test-cross test-386 test-s390x test-lab test-lab-rdma test-lab-race ## the same, with the long runs, RDMA, the race detector and a big-endian machine

.PHONY: test-host
test-host: toolchain lab
	$(GO) vet ./...
	$(GO) test $(TESTFLAGS) ./...

.PHONY: test-race
test-race: toolchain
	CGO_ENABLED=1 $(GO) test $(TESTFLAGS) -race ./...

.PHONY: test-cross
test-cross: toolchain
	@for target in $(cross); do \
		echo "vet and build for $$target"; \
		export CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/}; \
		$(GO) vet ./...; \
		$(GO) build ./...; \
	done

.PHONY: test-386
test-386: toolchain
	$(call test-pure,386,qemu-i386)

.PHONY: test-s390x
test-s390x: toolchain
	$(call test-pure,s390x,qemu-s390x)

# test-pure(GOARCH, emulator): test the pure packages for another architecture,
# by the emulator if this machine cannot run its programs. qemu-i386 loses the
# thread pointer of a Go program in a signal handler: no preemption by signal.
define test-pure
	@export GOARCH=$(1) CGO_ENABLED=0; \
	probe=$$(mktemp -d); trap 'rm -r $$probe' EXIT; \
	printf 'package main\nfunc main() {}\n' > $$probe/main.go; \
	run=; \
	if ! $(GO) run $$probe/main.go 2>/dev/null; then \
		run=$$(command -v $(2) $(2)-static | head -n 1); \
		[[ $$run ]] || { echo "this machine runs no $(1) programs: install $(2) (qemu-user)" >&2; exit 1; }; \
		export GODEBUG=asyncpreemptoff=1; \
	fi; \
	echo "tests for $(1) $${run:+by $$run}"; \
	$(GO) test $(TESTFLAGS) $${run:+-exec $$run} $(pure)
endef

# Each test binary boots a kernel and appends to the tally how many of its tests
# needed one.
.PHONY: test-lab
test-lab: build lab
	@packages=$$($(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/internal\/labtest/ { print $$1 }'); \
	tally=$$(mktemp -d); trap 'rm -r $$tally' EXIT; \
	echo "tests in the lab"; \
	RDS_LAB_TALLY=$$tally/tally $(GO) test $(TESTFLAGS) -count=1 -p 1 -timeout 30m -exec "$(lab) exec --write $$tally --" $(LABFLAGS) $$packages || status=$$?; \
	awk '$$2 != "-" { ran += $$3; skipped += $$4 } END { printf "%d tests ran inside the lab, %d were skipped there\n", ran, skipped; exit ran == 0 }' $$tally/tally; \
	exit $${status:-0}

# files(names): the test files that use one of labtest's names; packages(files) and
# tests(files): what is in them.
files    = $(shell grep -rlE 'labtest\.($(1))\b' --include='*_test.go' .)
packages = $(sort $(dir $(1)))
tests    = ^($(shell grep -hoE '^func Test\w+' $(1) | sed 's/func //' | paste -sd '|'))$$

# What runs over RDMA on the two kernels, and with the race detector. Of the commands'
# tests those are many that have nothing to do with RDMA.
rdma     = $(call files,RDMA|HCA)
commands_rdma = $(filter ./cmd/%,$(rdma))
EARLIER  = $(filter-out ./cmd/%,$(call packages,$(rdma)))
LATER    = ./rdma/ ./internal/rdmadev/
RACE     = ./rdssock/ ./rdma/ ./internal/stress/...
machines = ./internal/labtest/peer_test.go $(call files,Peer|Own)
machine_kernels = $(word 1,$(kernels))

# test-in(options): test in a QEMU lab with a second processor, which races need to happen.
test-in = $(GO) test $(TESTFLAGS) -count=1 -p 1 -timeout 30m -exec "$(lab) exec --profile qemu --smp 2 $(1) --"

# Two hosts behind the channel adapter of one machine, on both kernels, and two machines.
.PHONY: test-lab-rdma
test-lab-rdma: lab-qemu
	@echo "tests over RDMA, kernel $(word 1,$(kernels))"
	$(call test-in,--kernel $(word 1,$(kernels)) --rdma) $(EARLIER)
	$(call test-in,--kernel $(word 1,$(kernels)) --rdma) -run '$(call tests,$(commands_rdma))' $(call packages,$(commands_rdma))
	@echo "tests over RDMA, kernel $(word 2,$(kernels))"
	$(call test-in,--kernel $(word 2,$(kernels)) --rdma) $(LATER)
	@echo "tests on two machines"
	for kernel in $(machine_kernels); do $(call test-in,--kernel $$kernel --machines 2) -run '$(call tests,$(machines))' $(call packages,$(machines)); done

# User-Mode Linux does not have the address space that the race detector takes.
# With it the compiler checks conversions of pointers, too (-d=checkptr).
.PHONY: test-lab-race
test-lab-race: TESTFLAGS = -short -race
test-lab-race: export CGO_ENABLED = 1
test-lab-race: lab-qemu
	@echo "tests in the lab, with the race detector"
	$(call test-in,--kernel $(word 1,$(kernels)) --rdma) $(RACE)

.PHONY: lint
lint: toolchain bin/tools.stamp ## check format, imports, man pages and what staticcheck finds
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' 2>/dev/null || find . -name '*.go')); \
	if [[ $$unformatted ]]; then echo "gofmt would change:" $$unformatted >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -C tools ./...
	$(GO) test -C tools ./...
	cd tools && ../bin/staticcheck ./...
	@for goos in linux darwin; do \
		echo "staticcheck and import rules for $$goos"; \
		export GOOS=$$goos; \
		bin/staticcheck ./...; \
		bin/depguard ./...; \
	done
	@if command -v mandoc >/dev/null; then mandoc -Tlint -W warning man/*.[1-8]; \
	else echo "mandoc is not installed: man pages are not checked" >&2; fi

bin/tools.stamp: tools/go.mod tools/go.sum | toolchain
	$(GO) build -C tools -o ../bin/ tool
	@touch $@

.PHONY: fuzz
fuzz: toolchain ## run every fuzz target for FUZZTIME (60s) each
	@count=0; \
	for package in $$($(GO) list ./...); do \
		targets=$$($(GO) test -list '^Fuzz' $$package | { grep '^Fuzz' || true; }); \
		for target in $$targets; do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
			count=$$((count + 1)); \
		done; \
	done; \
	echo "$$count fuzz targets, $(FUZZTIME) each, no finding"; \
	(( count > 0 ))

.PHONY: bench
bench: build lab bin/tools.stamp ## run the benchmarks; with PEER=/path/to/rds-ping or rds-stress compare it with ours
	$(GO) test -run '^$$' -bench . -benchmem ./...
ifneq ($(PEER),)
	CGO_ENABLED=0 $(GO) build -C tools -o ../bin/ ./compare
ifeq ($(notdir $(PEER)),rds-stress)
	$(lab) run $(LABFLAGS) -- $(CURDIR)/bin/compare -measure requests -pairs 5 -server 127.0.0.2 \
		$(CURDIR)/bin/rds-stress $(abspath $(PEER)) -- -r 127.0.0.1 -q 64 -a 64 -d 8 -T 2
else
	$(lab) run $(LABFLAGS) -- $(CURDIR)/bin/compare $(CURDIR)/bin/rds-ping $(abspath $(PEER)) -- -c 300 -i 0.001 127.0.0.1
endif
endif

.PHONY: install
install: build ## install commands, man pages and completions below DESTDIR and PREFIX (/usr/local)
	install -d $(DESTDIR)$(BINDIR)
	install -m 755 $(addprefix bin/,$(commands)) $(DESTDIR)$(BINDIR)
	@for page in man/*.[1-8]; do \
		section=$(DESTDIR)$(MANDIR)/man$${page##*.}; \
		echo "install -m 644 $$page $$section"; \
		install -d $$section; \
		install -m 644 $$page $$section; \
	done
	@native=$$(mktemp -d); trap 'rm -rf "$$native"' EXIT; \
	env -u GOOS -u GOARCH CGO_ENABLED=0 $(GO) build -trimpath -tags $(tags) -o $$native/ ./cmd/...; \
	for command in $(commands); do \
		$(call install-completion,bash,bash-completion/completions/$$command); \
		$(call install-completion,zsh,zsh/site-functions/_$$command); \
		$(call install-completion,fish,fish/vendor_completions.d/$$command.fish); \
	done

# install-completion(shell, file): the command prints it, built for this machine.
define install-completion
file=$(DESTDIR)$(DATADIR)/$(2); \
		echo "install -m 644 completion $$file"; \
		install -d $$(dirname $$file); \
		$$native/$$command --completion $(1) > $$file; \
		chmod 644 $$file
endef

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
