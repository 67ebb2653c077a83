package mm2

import (
	"slices"
	"strings"
)

// Settings by the key that who uses them knows.
type settings map[string]Setting

func (s settings) putAll(more settings) {
	for key, setting := range more {
		s[key] = setting
	}
}

func (s settings) putIfAbsent(setting Setting) {
	if _, ok := s[setting.Key]; !ok {
		s[setting.Key] = setting
	}
}

// withPrefix returns the settings of the file whose keys begin with prefix, and
// go on; under the rest of the key (Utils.entriesWithPrefix).
func (c *Config) withPrefix(prefix string, kind OriginKind) settings {
	found := settings{}
	for _, s := range c.entries {
		if rest, ok := strings.CutPrefix(s.Key, prefix); ok && rest != "" {
			s.Origin.Kind = kind
			found[rest] = s.as(rest)
		}
	}
	return found
}

// topWith returns the settings of the top level whose keys begin with prefix, or
// are it.
func (c *Config) topWith(prefix string) settings {
	found := settings{}
	for _, s := range c.entries {
		if strings.HasPrefix(s.Key, prefix) {
			found[s.Key] = s
		}
	}
	return found
}

var roles = []string{"producer.", "consumer.", "admin."}

// cluster returns what the file says of a cluster, with what falls through to it
// from the top level and, of both, to its clients (MirrorMakerConfig.clusterProps).
func (c *Config) cluster(alias string) settings {
	props := c.withPrefix(alias+".", FromCluster)
	names := c.keys.security
	for _, name := range names {
		if s, ok := props[name]; ok {
			for _, role := range roles {
				props.putIfAbsent(s.as(role + name))
			}
		}
	}
	for _, name := range names {
		if s, ok := c.top(name); ok {
			for _, role := range roles {
				props.putIfAbsent(s.as(role + name))
			}
			props.putIfAbsent(s)
		}
	}
	return props
}

// isClientKey tells the settings of a client from those of a cluster as MirrorMaker 2
// does: by how they begin, dot or not.
func isClientKey(key string) bool {
	return strings.HasPrefix(key, "consumer") || strings.HasPrefix(key, "producer") || strings.HasPrefix(key, "admin")
}

// Connector returns the settings that MirrorMaker 2 4.3.1 gives to a connector of
// the flow source->target, named by its class without the package
// (MirrorMakerConfig.connectorBaseConfig). Defaults of the connector's own are not
// in it.
func (c *Config) Connector(source, target, class string) map[string]Setting {
	props := settings{}
	for _, s := range c.entries {
		if k, ok := c.keys.key(s.Key); ok && !k.Removed() && k.On&AllConnectors != 0 || slices.Contains(c.keys.security[1:], s.Key) {
			props[s.Key] = s
		}
	}
	props.putAll(c.topWith("config.providers"))
	props.putAll(c.topWith("replication.policy"))
	for side, alias := range map[string]string{"source": source, "target": target} {
		for key, s := range c.cluster(alias) {
			if isClientKey(key) {
				key = side + "." + key
			} else {
				key = side + ".cluster." + key
			}
			props[key] = s.as(key)
		}
	}
	props.putIfAbsent(driver("name", class))
	props.putIfAbsent(driver("connector.class", policyPackage+class))
	props.putIfAbsent(driver("source.cluster.alias", source))
	props.putIfAbsent(driver("target.cluster.alias", target))
	props.putAll(c.withPrefix(source+"->"+target+".", FromFlow))
	props.putIfAbsent(driver("enabled", "false"))
	return props
}

func driver(key, value string) Setting {
	return Setting{Key: key, Value: value, Origin: Origin{Kind: FromDriver}}
}

// Worker returns the settings that MirrorMaker 2 4.3.1 gives to the Connect worker
// of the flow source->target (MirrorMakerConfig.workerConfig).
func (c *Config) Worker(source, target string) map[string]Setting {
	props := c.cluster(target)
	for _, prefix := range []string{"offset.storage", "config.storage", "status.storage", "key.converter", "value.converter",
		"header.converter", "task", "worker", "replication.policy", "config.providers"} {
		props.putAll(c.topWith(prefix))
	}
	props.putIfAbsent(driver("client.id", source+"->"+target))
	props.putIfAbsent(driver("group.id", source+"-mm2"))
	for _, topic := range []string{"offset", "status", "config"} {
		props.putIfAbsent(driver(topic+".storage.topic", internalTopic(topic)+"."+source+".internal"))
	}
	for _, converter := range []string{"key", "value", "header"} {
		props.putIfAbsent(driver(converter+".converter", byteArrayConverter))
	}
	return props
}

const byteArrayConverter = "org.apache.kafka.connect.converters.ByteArrayConverter"

// internalTopic returns how the name of a topic of Connect's begins: those of
// offsets and configs have a plural, that of status is its own.
func internalTopic(of string) string {
	if of == "status" {
		return "mm2-status"
	}
	return "mm2-" + of + "s"
}
