package mm2

import "strings"

// MM2Refuses returns the keys of a connector's settings that MirrorMaker 2 4.3.1
// reports as wrong when it validates them, which keeps the connector from
// starting; in order of the table, what is required left out. Classes are not
// looked for.
func MM2Refuses(connector Connectors, props map[string]string) []string {
	var wrong []string
	for _, k := range Keys() {
		value, set := props[k.Name]
		s := Setting{Key: k.Name, Value: value}
		if set && !k.Removed() && k.On&connector != 0 && (k.check(s) != nil || !isSet(s, k)) {
			wrong = append(wrong, k.Name)
		}
	}
	is := func(key, value string) bool { return props[key] == value }
	switch connector {
	case SourceConnector:
		if is("exactly.once.support", "required") && !ReadsCommitted(props) {
			wrong = append(wrong, "exactly.once.support")
		}
		for key := range props {
			if is("emit.offset-syncs.enabled", "false") && strings.HasPrefix(key, "offset-syncs") {
				wrong = append(wrong, "emit.offset-syncs.enabled")
				break
			}
		}
	case CheckpointConnector:
		for _, key := range []string{"emit.checkpoints.enabled", "emit.offset-syncs.enabled"} {
			if is(key, "false") && !is("enabled", "false") {
				wrong = append(wrong, key)
			}
		}
	}
	return wrong
}

// isSet reports whether a list has neither empty elements nor duplicates
// (KIP-1161).
func isSet(s Setting, k Key) bool {
	return k.Type != ListKey || len(s.Elements()) == len(s.List())
}

// ReadsCommitted reports whether the source connector of these settings leaves out
// aborted records, and so claims to support exactly-once
// (MirrorSourceConnector.exactlyOnceSupport).
func ReadsCommitted(props map[string]string) bool {
	level, ok := props["source.consumer.isolation.level"]
	if !ok {
		level = props["consumer.isolation.level"]
	}
	return level == "read_committed"
}
