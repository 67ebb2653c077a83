package probe

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
	"apograph/internal/lint"
)

// askAbsent asks about the topics that flows would have to make: whether they may be
// seen, and made.
func askAbsent(ctx context.Context, r *lint.Report, facts lint.Facts) {
	absent := r.Absent(facts)
	for _, connection := range r.Connections() {
		about, names := facts.Clusters[connection.Alias], absent[connection.Alias]
		if len(names) == 0 {
			continue
		}
		if err := askNames(ctx, connection, names, about); err != nil {
			*about = lint.ClusterFacts{Err: fmt.Errorf("cluster %s: %w", connection.Alias, err)}
		}
	}
}

func askNames(ctx context.Context, connection lint.Connection, names []string, about *lint.ClusterFacts) error {
	cluster, _, err := connect.FromProperties(connection.Alias, connection.Settings)
	if err != nil {
		return err
	}
	client, err := cluster.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := hidden(ctx, client, names, about); err != nil {
		return err
	}
	if !about.MayMakeAll() {
		about.Unmakable = unmakable(ctx, client, names)
	}
	return nil
}

// unmakable returns the topics that the user may not make: the brokers are asked to
// make them without doing it. Any other answer is about something else.
func unmakable(ctx context.Context, client *kgo.Client, names []string) []string {
	responses, err := kadm.NewClient(client).ValidateCreateTopics(ctx, 1, 1, nil, names...)
	if err != nil {
		return nil
	}
	var refused []string
	for _, r := range responses.Sorted() {
		if errors.Is(r.Err, kerr.TopicAuthorizationFailed) {
			refused = append(refused, r.Topic)
		}
	}
	return refused
}
