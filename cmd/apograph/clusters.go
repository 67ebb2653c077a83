package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"apograph/internal/connect"
)

// clusterFlags returns the flags that say where the two clusters are.
func clusterFlags() []cli.Flag {
	var flags []cli.Flag
	for _, side := range []string{"source", "target"} {
		alias := stringFlag(side+"-alias", "the `NAME` of the "+side+" cluster in this flow (default "+side+")")
		flags = append(flags,
			stringFlag(side+"-bootstrap-server", "reach the "+side+" cluster at a `LIST` of host:port"),
			alias,
		)
	}
	return flags
}

// bothClusters returns source and target, which must both be given.
func bothClusters(inv *invocation) (source, target connect.Cluster, err error) {
	if source, err = neededCluster(inv, "source"); err != nil {
		return source, target, err
	}
	target, err = neededCluster(inv, "target")
	if err == nil && source.Alias == target.Alias {
		err = usagef("source and target have the same alias %s", quoteArg(source.Alias))
	}
	return source, target, err
}

func neededCluster(inv *invocation, side string) (connect.Cluster, error) {
	c, ok, err := clusterOf(inv, side)
	if err == nil && !ok {
		err = usagef("--%s-bootstrap-server is needed", side)
	}
	return c, err
}

// clusterOf returns one cluster as the flags describe it; ok is false if they
// do not.
func clusterOf(inv *invocation, side string) (c connect.Cluster, ok bool, err error) {
	c.Alias = side
	if alias := inv.String(side + "-alias"); alias != "" {
		c.Alias = alias
	}
	for address := range strings.SplitSeq(inv.String(side+"-bootstrap-server"), ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		if err := connect.CheckAddress(address); err != nil {
			return c, false, usagef("--%s-bootstrap-server: %v", side, err)
		}
		c.Bootstrap = append(c.Bootstrap, address)
	}
	return c, len(c.Bootstrap) > 0, nil
}

// byteSize returns a number of bytes for a person.
func byteSize(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, prefix := float64(n)/unit, 0
	for ; size >= unit && prefix < 4; prefix++ {
		size /= unit
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTP"[prefix])
}
