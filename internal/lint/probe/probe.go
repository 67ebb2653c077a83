// Package probe asks the clusters of a configuration file what lint wants to
// know. It reads, and makes nothing: no topic, no group, no record.
package probe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/connect"
	"apograph/internal/lint"
)

// requestTimeout bounds one question to a cluster that has been reached.
const requestTimeout = 30 * time.Second

// Ask asks all clusters of a report at once. What cannot be asked is a fact, too:
// it ends with an error only when ctx does, which is its cause.
func Ask(ctx context.Context, r *lint.Report) (lint.Facts, error) {
	facts := lint.Facts{Clusters: map[string]*lint.ClusterFacts{}, Schemas: map[string]*lint.SchemaFacts{}}
	var (
		mu   sync.Mutex // guards facts.Clusters
		asks sync.WaitGroup
	)
	for _, connection := range r.Connections() {
		asks.Go(func() {
			about := askCluster(ctx, r, connection)
			mu.Lock()
			defer mu.Unlock()
			facts.Clusters[connection.Alias] = about
		})
	}
	asks.Wait()
	askAbsent(ctx, r, facts)
	for _, flow := range r.Flows {
		if source := facts.Clusters[flow.Source]; source != nil && source.Err == nil {
			facts.Schemas[flow.Source+"->"+flow.Target] = askSchemas(ctx, r, flow, source)
		}
	}
	return facts, context.Cause(ctx)
}

// askCluster returns what a cluster says.
func askCluster(ctx context.Context, r *lint.Report, connection lint.Connection) *lint.ClusterFacts {
	if connection.Unresolved != "" {
		return &lint.ClusterFacts{Err: fmt.Errorf("cluster %s was not asked, and no login was tried: a variable in %s has no value, and its text is no password", connection.Alias, connection.Unresolved)}
	}
	cluster, _, err := connect.FromProperties(connection.Alias, connection.Settings)
	if err != nil {
		return &lint.ClusterFacts{Err: fmt.Errorf("cluster %s was not asked: %w", connection.Alias, err)}
	}
	client, id, err := cluster.Open(ctx)
	if err != nil {
		return &lint.ClusterFacts{Err: err}
	}
	defer client.Close()
	facts := &lint.ClusterFacts{ID: id, Rights: lint.RightsUnknown}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := describe(ctx, client, r, connection.Alias, facts); err != nil {
		return &lint.ClusterFacts{Err: fmt.Errorf("cluster %s: %w", connection.Alias, err)}
	}
	return facts
}

// describe asks for topics, brokers and rights.
func describe(ctx context.Context, client *kgo.Client, r *lint.Report, alias string, facts *lint.ClusterFacts) error {
	all, err := metadata(ctx, client, nil)
	if err != nil {
		return err
	}
	facts.Brokers = len(all.Brokers)
	var seen []string
	for _, t := range all.Topics {
		if t.Topic != nil && t.ErrorCode == 0 {
			seen = append(seen, *t.Topic)
			facts.Topics = append(facts.Topics, lint.TopicFacts{Name: *t.Topic, Rights: lint.Rights(t.AuthorizedOperations)})
		}
	}
	named := slices.DeleteFunc(r.Named(alias), func(name string) bool { return slices.Contains(seen, name) })
	if len(named) > 0 {
		if err := hidden(ctx, client, named, facts); err != nil {
			return err
		}
	}
	request := kmsg.NewPtrDescribeClusterRequest()
	request.IncludeClusterAuthorizedOperations = true
	// Brokers before 2.8 do not know the question (KIP-700).
	if response, err := request.RequestWith(ctx, client); err == nil && response.ErrorCode == 0 {
		facts.Rights = lint.Rights(response.ClusterAuthorizedOperations)
	}
	return nil
}

// hidden asks for topics by name: of one that the user may not see, a listing
// says nothing.
func hidden(ctx context.Context, client *kgo.Client, names []string, facts *lint.ClusterFacts) error {
	response, err := metadata(ctx, client, names)
	if err != nil {
		return err
	}
	for _, t := range response.Topics {
		if t.Topic != nil && t.ErrorCode == kerr.TopicAuthorizationFailed.Code {
			facts.Topics = append(facts.Topics, lint.TopicFacts{Name: *t.Topic, Rights: lint.RightsUnknown, Hidden: true})
		}
	}
	return nil
}

// metadata asks for the topics with these names; nil: all.
func metadata(ctx context.Context, client *kgo.Client, names []string) (*kmsg.MetadataResponse, error) {
	request := kmsg.NewPtrMetadataRequest()
	request.AllowAutoTopicCreation = false
	request.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, topic)
	}
	return request.RequestWith(ctx, client)
}
