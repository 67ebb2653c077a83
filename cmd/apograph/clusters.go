package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"apograph/internal/connect"
)

// clusterFlags returns the flags that say where the two clusters are, and those
// of a configuration that says it. -X may set known settings beside those of
// clients.
func clusterFlags(known ...setting) []cli.Flag {
	flags := configFlags(settingFlag(known))
	for _, side := range []string{"source", "target"} {
		flags = append(flags,
			stringFlag(side+"-bootstrap-server", "reach the "+side+" cluster at a `LIST` of host:port"),
			stringFlag(side+"-command-config", "log in to the "+side+" cluster, and encrypt, as a `FILE` of client properties says that Kafka's tools take as --command-config"),
			stringFlag(side+"-alias", "the `NAME` of the "+side+" cluster in this flow (default "+side+")"),
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
		err = usagef("--%s-bootstrap-server is needed", side).
			withHint("or --config FILE, an mm2.properties file that names both clusters")
	}
	return c, err
}

// clusterOf returns one cluster as the flags describe it; ok is false if they
// do not.
func clusterOf(inv *invocation, side string) (c connect.Cluster, ok bool, err error) {
	alias := side
	if name := inv.String(side + "-alias"); name != "" {
		alias = name
	}
	settings, err := clientSettings(inv, side)
	if err != nil {
		return c, false, err
	}
	flag := "--" + side + "-bootstrap-server"
	addresses, err := addressList(flag, inv.String(side+"-bootstrap-server"))
	switch {
	case err != nil:
		return c, false, err
	case len(settings) == 0:
		return connect.Cluster{Alias: alias, Bootstrap: addresses}, len(addresses) > 0, nil
	case len(addresses) > 0:
		settings = append(settings, connect.Setting{Key: bootstrapKey, Value: strings.Join(addresses, ","), Where: flag})
	case !hasKey(settings, bootstrapKey):
		return connect.Cluster{Alias: alias}, false, nil
	}
	c, err = inv.cluster(alias, settings)
	return c, err == nil, err
}

const bootstrapKey = "bootstrap.servers"

func hasKey(settings []connect.Setting, key string) bool {
	for _, s := range settings {
		if s.Key == key {
			return true
		}
	}
	return false
}

// addressList reads host:port,host:port.
func addressList(flag, list string) (addresses []string, err error) {
	for address := range strings.SplitSeq(list, ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		if err := connect.CheckAddress(address); err != nil {
			return nil, usagef("%s: %v", flag, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
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
