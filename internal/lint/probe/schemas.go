package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/connect"
	"apograph/internal/lint"
)

// How much of a source is looked at: the last records of some partitions of some
// topics, for some seconds.
const (
	sampleTopics     = 200
	samplePartitions = 4
	sampleRecords    = 5
	sampleQuiet      = 2 * time.Second
	sampleTime       = 20 * time.Second
	sampleIDs        = 200
)

// askSchemas looks at the last records of a flow's topics for the ids of schemas,
// and asks the registry of the target, if one is named, which it knows.
func askSchemas(ctx context.Context, r *lint.Report, flow lint.Flow, source *lint.ClusterFacts) *lint.SchemaFacts {
	facts := &lint.SchemaFacts{}
	var names []string
	for _, t := range source.Topics {
		if !t.Hidden {
			names = append(names, t.Name)
		}
	}
	scope := slices.DeleteFunc(r.Scope(flow, names), func(topic string) bool { return r.OfHeartbeats(flow, topic) })
	facts.Topics = sample(ctx, r, flow.Source, scope[:min(len(scope), sampleTopics)])
	registry := r.Registry(flow)
	if registry == "" || len(facts.Topics) == 0 {
		return facts
	}
	base, err := url.Parse(registry)
	if err != nil || base.Host == "" {
		facts.Registry, facts.Err = "of the target", errors.New("it is no URL")
		return facts
	}
	facts.Registry = base.Redacted()
	facts.Unknown, facts.Err = unknownIDs(ctx, base, facts.Topics)
	return facts
}

// sample returns the ids that the last records of topics carry. What cannot be
// read has none: this is a look, not a proof.
func sample(ctx context.Context, r *lint.Report, alias string, topics []string) map[string][]int {
	client, err := sampler(ctx, r, alias, topics)
	if err != nil || client == nil {
		return nil
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	seen := map[string]*ids{}
	for {
		poll, stop := context.WithTimeout(ctx, sampleQuiet)
		fetches := client.PollFetches(poll)
		stop()
		fetches.EachRecord(func(record *kgo.Record) {
			if seen[record.Topic] == nil {
				seen[record.Topic] = &ids{}
			}
			seen[record.Topic].add(record)
		})
		if fetches.NumRecords() == 0 || ctx.Err() != nil {
			break
		}
	}
	found := map[string][]int{}
	for topic, ids := range seen {
		if list := ids.list(); list != nil {
			found[topic] = list
		}
	}
	return found
}

// sampler returns a client that reads the ends of topics; nil if there is nothing
// to read.
func sampler(ctx context.Context, r *lint.Report, alias string, topics []string) (*kgo.Client, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	i := slices.IndexFunc(r.Connections(), func(c lint.Connection) bool { return c.Alias == alias })
	cluster, _, err := connect.FromProperties(alias, r.Connections()[i].Settings)
	if err != nil {
		return nil, err
	}
	asker, err := cluster.Client()
	if err != nil {
		return nil, err
	}
	defer asker.Close()
	response, err := metadata(ctx, asker, topics)
	if err != nil {
		return nil, err
	}
	return cluster.Client(kgo.ConsumePartitions(ends(response)), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxBytes(4<<20), kgo.FetchMaxPartitionBytes(64<<10))
}

// ends returns where to begin to read.
func ends(response *kmsg.MetadataResponse) map[string]map[int32]kgo.Offset {
	from := map[string]map[int32]kgo.Offset{}
	for _, t := range response.Topics {
		if t.Topic == nil || t.ErrorCode != 0 {
			continue
		}
		from[*t.Topic] = map[int32]kgo.Offset{}
		for _, p := range t.Partitions[:min(len(t.Partitions), samplePartitions)] {
			from[*t.Topic][p.Partition] = kgo.NewOffset().AtEnd().Relative(-sampleRecords)
		}
	}
	return from
}

// ids are the ids of schemas that records of one topic seem to carry.
type ids struct {
	values, keys, records int
	ofValues, ofKeys      []int
}

func (s *ids) add(record *kgo.Record) {
	s.records++
	if id, ok := schemaID(record.Value); ok {
		s.values++
		s.ofValues = append(s.ofValues, id)
	}
	if id, ok := schemaID(record.Key); ok {
		s.keys++
		s.ofKeys = append(s.ofKeys, id)
	}
}

// list returns the ids, in order, if most records have one: a single 0 in front
// may be anything.
func (s *ids) list() []int {
	var all []int
	if 2*s.values > s.records {
		all = append(all, s.ofValues...)
	}
	if 2*s.keys > s.records {
		all = append(all, s.ofKeys...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// maxSchemaID is above any id that a registry has given: they count from 1. What
// lies beyond is a number of eight bytes, or text.
const maxSchemaID = 10_000_000

// schemaID returns the id of the schema that bytes name in front, after a byte
// of 0 (the wire format of Confluent's serializers).
func schemaID(data []byte) (int, bool) {
	if len(data) < 6 || data[0] != 0 {
		return 0, false
	}
	id := binary.BigEndian.Uint32(data[1:5])
	return int(id), id > 0 && id < maxSchemaID
}

// unknownIDs asks a registry for ids and returns those that it does not know, by
// topic.
func unknownIDs(ctx context.Context, base *url.URL, topics map[string][]int) (map[string][]int, error) {
	unknown := map[string][]int{}
	known := map[int]bool{}
	client := &http.Client{Timeout: requestTimeout}
	for topic, list := range topics {
		for _, id := range list {
			is, asked := known[id]
			if !asked && len(known) < sampleIDs {
				var err error
				if is, err = knows(ctx, client, base, id); err != nil {
					return nil, err
				}
				known[id] = is
			} else if !asked {
				continue
			}
			if !is {
				unknown[topic] = append(unknown[topic], id)
			}
		}
	}
	return unknown, nil
}

// knows asks a registry for one schema. The error does not hold the URL's
// password.
func knows(ctx context.Context, client *http.Client, base *url.URL, id int) (bool, error) {
	at := base.JoinPath("schemas", "ids", strconv.Itoa(id))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return false, fmt.Errorf("ask for schema %d", id)
	}
	request.Header.Set("Accept", "application/vnd.schemaregistry.v1+json, application/json")
	response, err := client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return false, err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	switch response.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusNotFound:
		return false, nil
	}
	return false, fmt.Errorf("it answers %s", strings.TrimSpace(response.Status))
}
