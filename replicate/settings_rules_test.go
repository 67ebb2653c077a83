package replicate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestSettingsByOrigin: what goes over by where the source has it from.
func TestSettingsByOrigin(t *testing.T) {
	source := settings{}
	for key, origin := range map[string]kmsg.ConfigSource{
		"topic": kmsg.ConfigSourceDynamicTopicConfig, "broker": kmsg.ConfigSourceDynamicBrokerConfig, "brokers": kmsg.ConfigSourceDynamicDefaultBrokerConfig,
		"file": kmsg.ConfigSourceStaticBrokerConfig, "default": kmsg.ConfigSourceDefaultConfig, "later": 99, "secret": kmsg.ConfigSourceDynamicTopicConfig,
		"min.insync.replicas": kmsg.ConfigSourceDynamicTopicConfig,
	} {
		source[key] = kadm.Config{Key: key, Value: kadm.StringPtr("1"), Source: origin, Sensitive: key == "secret"}
	}
	source["none"] = kadm.Config{Key: "none", Source: kmsg.ConfigSourceDynamicTopicConfig}
	for _, tt := range []struct {
		config SettingsSync
		want   string
	}{
		{SettingsSync{}, "topic"},
		{SettingsSync{FromSource: true}, "topic"},
		{SettingsSync{Mode: SettingsOff}, "broker,brokers,topic"},
		{SettingsSync{Mode: SettingsOfAll}, "broker,brokers,topic"},
		{SettingsSync{Mode: SettingsOfAll, FromSource: true}, "broker,brokers,default,topic"},
		{SettingsSync{Mode: SettingsOfAll, Exclude: []string{"broker.?", "x"}}, "min.insync.replicas,topic"},
	} {
		config := Config{Settings: tt.config}
		config.setDefaults()
		rules, err := newSettingRules(config.Settings)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(rules.wanted(source))), ","); got != tt.want {
			t.Errorf("%+v takes over %s, want %s", tt.config, got, tt.want)
		}
	}
}
