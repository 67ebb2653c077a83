package mirror

import (
	"context"
	"errors"

	"apograph/internal/connect"
	"apograph/internal/readlog"
)

// readTopic hands over all records of partition 0 of a topic, up to the end that
// it has now; those that cannot be decoded are passed over. A topic that does not
// exist is empty. It makes no topic.
func readTopic(ctx context.Context, cluster connect.Cluster, topic string, each func(readlog.Record)) error {
	_, err := readlog.Read(ctx, cluster, topic, func(r readlog.Record) {
		if r.Err == nil {
			each(r)
		}
	})
	if errors.Is(err, readlog.ErrNoTopic) {
		return nil
	}
	return err
}
