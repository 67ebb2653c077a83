package mm2

import (
	"strconv"
	"time"
)

// DefaultRefresh is how often a flow looks at both clusters where a file does not
// say so. MirrorMaker 2 does every 10 minutes.
const DefaultRefresh = 30 * time.Second

// Keys of which apograph has another default than MirrorMaker 2, see [Key.Ours],
// and the one that wins over the first of them.
const (
	refreshKey         = "refresh.topics.interval.seconds"
	settingsRefreshKey = "sync.topic.configs.interval.seconds"
	factorKey          = "replication.factor"
	RefreshKey         = "apograph.refresh.interval"
)

// Effective returns what [FlowConfig.Settings] does, and where the file is silent
// what apograph then does: its origin is [FromOurs], or the setting that it follows.
func (f FlowConfig) Effective() []Setting {
	all := f.Settings()
	for i, s := range all {
		switch s.Key {
		case refreshKey:
			all[i] = f.refresh()
		case settingsRefreshKey:
			if !f.IsSet(s.Key) {
				all[i] = f.looks().as(s.Key)
			}
		case factorKey:
			if !f.IsSet(s.Key) {
				all[i] = Setting{Key: s.Key, Value: "that of the source's topic", Origin: Origin{Kind: FromOurs}}
			}
		}
	}
	return all
}

// refresh returns how often the flow looks for topics, in seconds.
func (f FlowConfig) refresh() Setting {
	if own := f.Get(RefreshKey); f.IsSet(RefreshKey) {
		if every, err := own.Interval(); err == nil {
			own.Value = strconv.FormatFloat(every.Seconds(), 'f', -1, 64)
		}
		return own.as(refreshKey)
	}
	if f.IsSet(refreshKey) {
		return f.Get(refreshKey)
	}
	return ourRefresh
}

var ourRefresh = Setting{Key: refreshKey, Value: strconv.Itoa(int(DefaultRefresh / time.Second)), Origin: Origin{Kind: FromOurs}}

// looks is refresh for what goes on also where no topics are looked for.
func (f FlowConfig) looks() Setting {
	if every, err := f.Every("refresh.topics"); err == nil && every == 0 && !f.IsSet(RefreshKey) {
		return ourRefresh
	}
	return f.refresh()
}

// Silent returns the keys of which apograph has another default than MirrorMaker 2,
// and about which the file says nothing for this flow, in order.
func (f FlowConfig) Silent() []Key {
	var keys []Key
	for _, k := range f.config.keys.list {
		switch {
		case k.Ours == "", f.IsSet(k.Name):
		case k.Name == refreshKey && f.IsSet(RefreshKey), k.Name == settingsRefreshKey && (f.IsSet(refreshKey) || f.IsSet(RefreshKey)):
			// It follows what the file says of the other.
		default:
			keys = append(keys, k)
		}
	}
	return keys
}
