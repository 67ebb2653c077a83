# Everything below is plain Go; `make help` lists it.
GO      ?= go
STATICCHECK = $(GO) tool -modfile=tools/go.mod staticcheck
FUZZTIME ?= 1m
SEEDS   ?= 300
FIRST   ?= 1
LDFLAGS = -s -w

export CGO_ENABLED ?= 0

.PHONY: help build demo test test-docs test-kafka soak-kafka test-kafka-librdkafka mirror-tables check fuzz golden golden-java sim campaign mutants bench bench-kafka bench-table
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/apograph, one static binary
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/apograph ./cmd/apograph

demo: build ## the whole story on two clusters inside the process; it breaks a record, and finds it (exit 3)
	@bin/apograph demo; code=$$?; test $$code -eq 3

test: ## all tests that need nothing but Go, and 1,000 runs of each fuzz target
	$(GO) test -count=1 -timeout 20m ./...
	$(MAKE) fuzz FUZZTIME=1000x

test-docs: ## every command of docs/runbooks and of README, on two fake clusters (a part of make test)
	$(GO) test -count=1 -timeout 10m -run 'Docs' ./cmd/apograph ./internal/lint ./internal/mm2

test-kafka: ## the tests on real brokers: fetches Kafka 4.3.1; needs Java 17 and Maven
	$(GO) test -count=1 -timeout 40m -tags kafka -run Kafka -p 1 ./...

soak-kafka: ## 100 kills of copiers and 50 lost leaders of two real clusters
	APOGRAPH_KILLS=100 APOGRAPH_LEADER_LOSSES=50 $(GO) test -count=1 -v -timeout 0 -tags kafka -run TestKafkaCampaign ./cmd/apograph

test-kafka-librdkafka: ## the kills while librdkafka writes as well, and its consumers failing over: needs Python 3, fetches confluent-kafka
	python3 -m venv bin/librdkafka && bin/librdkafka/bin/pip -q install confluent-kafka
	APOGRAPH_LIBRDKAFKA=$(CURDIR)/bin/librdkafka/bin/python $(GO) test -count=1 -timeout 30m -tags kafka -run 'TestKafkaLiveKills|TestKafkaFailover' ./cmd/apograph

mirror-tables: ## what docs/mm2-compatibility.md shows of MirrorMaker 2 beside apograph, measured anew into bin/mirror-tables
	APOGRAPH_TABLES=$(CURDIR)/bin/mirror-tables $(GO) test -count=1 -timeout 30m -tags kafka -run 'TestKafkaFailover|TestKafkaMeasuredRows' ./cmd/apograph

check: ## format, vet, staticcheck, race detector, short fuzz, golden files
	test -z "$$(gofmt -l bench cmd fuzz internal ledger replicate tools translate verify)"
	$(GO) vet ./... && $(GO) vet -tags kafka ./... && $(GO) vet -tags unproven ./replicate && $(GO) vet -tags unproven,decompressed ./replicate
	$(STATICCHECK) ./... && $(STATICCHECK) -tags kafka ./...
	CGO_ENABLED=1 $(GO) test -count=1 -race -timeout 30m ./...
	$(MAKE) fuzz FUZZTIME=3000x
	$(MAKE) golden && git diff --exit-code -- '*/testdata/*' testdata docs

FUZZED = ./cmd/apograph ./fuzz ./internal/javaprops ./internal/mm2 ./internal/readlog ./ledger ./replicate ./verify

# Counted (1000x), not timed, where a failure counts: until Go 1.27 a target whose time
# is up can fail with "context deadline exceeded", golang/go#75804.
fuzz: ## each fuzz target for FUZZTIME: every parser of bytes from a broker, a file, a socket or a person
	@set -e; for p in $(FUZZED); do for f in $$($(GO) test -list '^Fuzz' $$p | grep ^Fuzz); do \
		echo $$p $$f; $(GO) test $$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x; done; done

golden: ## write the golden files anew, and what is made from tables in docs
	UPDATE_GOLDEN=1 $(GO) test -count=1 ./cmd/apograph -run 'Script|Golden'
	UPDATE_GOLDEN=1 $(GO) test -count=1 ./internal/lint ./internal/mm2 -run 'TestDocs$$'

golden-java: ## ask Java's own classes again for what the tests hold us to; needs a JDK, and Kafka as test-kafka fetches it
	APOGRAPH_GOLDEN_JAVA=1 $(GO) test -count=1 -run TestParseAgainstJava ./internal/javaprops
	APOGRAPH_GOLDEN_JAVA="$$(ls -d $${XDG_CACHE_HOME:-$$HOME/.cache}/apograph/kafka-*/libs | head -n 1)" $(GO) test -count=1 -run AgainstMirrorMaker ./internal/mm2

sim: ## play SEEDS simulated histories, from the one of seed FIRST on, and list those that fail
	@mkdir -p bin; APOGRAPH_SIM_SEEDS=$(SEEDS) APOGRAPH_SIM_FIRST=$(FIRST) $(GO) test -count=1 -timeout 0 -run 'TestSimulation$$' ./fuzz > bin/sim.log 2>&1; code=$$?; \
	if test $(SEEDS) = 1; then cat bin/sim.log; else sed -n 's/.*--- FAIL: TestSimulation\/seed=\([0-9]*\).*/failed: make sim FIRST=\1 SEEDS=1/p' bin/sim.log; tail -n 1 bin/sim.log; fi; exit $$code

KILLS   ?= 500
FAULTS  ?= 5000

campaign: ## KILLS kills of the real binary on fake clusters, among FAULTS faults, and what came of it
	APOGRAPH_CAMPAIGN_KILLS=$(KILLS) APOGRAPH_CAMPAIGN_FAULTS=$(FAULTS) $(GO) test -count=1 -v -timeout 0 -run 'TestCampaign$$' ./cmd/apograph

mutants: ## put one deliberate bug after the other into a copy, and see the tests notice
	cd tools && $(GO) run ./mutants

BENCHSTAT = $(GO) tool -modfile=tools/go.mod benchstat
BENCH    ?= ^Benchmark(Parse|CheckCRC|Patch|Walk|WalkAndHash|Hash|Decode|Build|Renumber|Pass|Join|Append|AppendAndCommit|Find)$$

bench: build ## Go benchmarks of the hot functions (BENCH=. for all), six times, through benchstat; then a copy between fakes, without brokers
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime 300ms -count 6 ./internal/... ./ledger ./replicate ./translate ./verify > bin/bench.txt || { cat bin/bench.txt; exit 1; }
	$(GO) build -o bin/bench ./bench/run
	$(BENCHSTAT) -filter '.unit:(sec/op OR B/s OR allocs/op)' -format csv bin/bench.txt > bin/bench.csv
	bin/bench hot < bin/bench.csv
	bin/bench fakes $(if $(SIZE),-size $(SIZE))

bench-kafka: build ## against MirrorMaker and a kgo copier on real brokers: ROW=1k-lz4,'rtt-*' QUICK=1 REPEATS=5 SIZE=MB
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -tags unproven -o bin/apograph-unproven ./cmd/apograph
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -tags unproven,decompressed -o bin/apograph-decompressed ./cmd/apograph
	$(GO) build -tags kafka -o bin/bench-kafka ./bench/run
	bin/bench-kafka kafka $(if $(ROW),-row '$(ROW)') $(if $(QUICK),-quick) $(if $(REPEATS),-repeats $(REPEATS)) $(if $(SIZE),-size $(SIZE))

bench-table: ## what all runs of bench-kafka say together, each row as its last run has it
	$(GO) build -tags kafka -o bin/bench-kafka ./bench/run
	@bin/bench-kafka table bench/results/*.jsonl
