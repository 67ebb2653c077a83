package groups

import (
	"context"
	"fmt"
)

// List returns all groups of the cluster, by id, of all kinds. The error says
// which brokers have not answered: what they coordinate is missing then, and a
// coordinator that is just taking over leaves out what it has not loaded, so
// that only what is listed is certain.
//
// Brokers before 3.8 tell no types (KIP-848): groups of the consumer protocol
// look like simple ones there.
func (c *Cluster) List(ctx context.Context) (map[string]Group, error) {
	listed, err := c.admin.ListGroups(ctx)
	found := make(map[string]Group, len(listed))
	for id, g := range listed {
		found[id] = Group{ID: id, Kind: kindOf(g.GroupType, g.ProtocolType), State: g.State}
	}
	if err != nil {
		return found, fmt.Errorf("list groups on %s: %w", c.Alias, err)
	}
	return found, nil
}
