package mm2

// DefaultConfigPropertiesExclude are the settings of a source topic that stay
// behind unless config.properties.exclude says otherwise
// (DefaultConfigPropertyFilter since KAFKA-20163). The dots are not escaped
// there either.
const DefaultConfigPropertiesExclude = "follower.replication.throttled.replicas, leader.replication.throttled.replicas, message.timestamp.difference.max.ms, " +
	"log.message.timestamp.before.max.ms, log.message.timestamp.after.max.ms, message.timestamp.type, unclean.leader.election.enable, min.insync.replicas"

// A SettingOrigin says where a topic's setting comes from.
type SettingOrigin int

const (
	OriginTopic        SettingOrigin = iota // the topic's own
	OriginBroker                            // a dynamic one of brokers
	OriginStaticBroker                      // of a broker's file
	OriginKafkaDefault                      // nobody made it
	OriginOther                             // anything else
)

// A TopicSetting is one setting of a source topic.
type TopicSetting struct {
	Name      string
	Origin    SettingOrigin
	ReadOnly  bool
	Sensitive bool
}

// A SettingAction says what is done with a setting on the target.
type SettingAction int

const (
	LeaveSetting  SettingAction = iota // nothing
	SetSetting                         // set as on the source
	DeleteSetting                      // set back to the target's default
)

// SettingRules say which settings of a topic a copy takes over, as
// MirrorSourceConnector.targetConfig and incrementalAlterConfigs do. The zero
// value excludes nothing.
type SettingRules struct {
	Exclude        Patterns // config.properties.exclude
	SourceDefaults bool     // use.defaults.from=source
}

func (r SettingRules) takes(s TopicSetting) bool {
	return !s.ReadOnly && !s.Sensitive && s.Origin != OriginStaticBroker && !r.Exclude.Matches(s.Name)
}

// AtSync returns what is done with a setting when settings are kept in step.
func (r SettingRules) AtSync(s TopicSetting) SettingAction {
	switch {
	case !r.takes(s):
		return LeaveSetting
	case s.Origin == OriginKafkaDefault && !r.SourceDefaults:
		return DeleteSetting
	}
	return SetSetting
}

// AtCreation reports whether a topic is made with a setting.
func (r SettingRules) AtCreation(s TopicSetting) bool { return r.AtSync(s) == SetSetting }
