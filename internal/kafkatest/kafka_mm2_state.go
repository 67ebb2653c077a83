//go:build kafka

package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A TopicState is what an administrator sees of a topic.
type TopicState struct {
	Partitions int
	Replicas   int               // of partition 0
	Settings   map[string]string // the topic's own, none that a broker or Kafka lends it
	Records    int64             // sum of the end offsets
}

// TopicStates returns the topics that a cluster has, Kafka's own left out.
func (b Bootstrap) TopicStates(ctx context.Context) (map[string]TopicState, error) {
	client, err := b.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("topics of %s: %w", b.Server(), err)
	}
	states := map[string]TopicState{}
	for name, t := range topics {
		states[name] = TopicState{Partitions: len(t.Partitions), Replicas: t.Partitions.NumReplicas(), Settings: map[string]string{}}
	}
	names := topics.Names()
	if len(names) == 0 { // asked about none, brokers answer about all
		return states, nil
	}
	described, err := admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("settings on %s: %w", b.Server(), err)
	}
	for _, d := range described {
		if d.Err != nil {
			return nil, fmt.Errorf("settings of %s on %s: %w", d.Name, b.Server(), d.Err)
		}
		for _, c := range d.Configs {
			if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
				states[d.Name].Settings[c.Key] = c.MaybeValue()
			}
		}
	}
	ends, err := admin.ListEndOffsets(ctx, names...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ends on %s: %w", b.Server(), err)
	}
	ends.Each(func(o kadm.ListedOffset) {
		s := states[o.Topic]
		s.Records += o.Offset
		states[o.Topic] = s
	})
	return states, nil
}

// CreateTopics creates topics, each with the partitions and settings of its
// state, and returns when all have leaders. Many are quicker at once than each by
// [Bootstrap.CreateTopic].
func (b Bootstrap) CreateTopics(ctx context.Context, topics map[string]TopicState) error {
	client, err := b.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = 30_000
	for name, state := range topics {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(state.Partitions), -1
		for key, value := range state.Settings {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = key, &value
			t.Configs = append(t.Configs, c)
		}
		request.Topics = append(request.Topics, t)
	}
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	for _, t := range response.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("create topic %s: %w", t.Topic, err)
		}
		if err := waitLeaders(ctx, client, t.Topic, topics[t.Topic].Partitions); err != nil {
			return err
		}
	}
	return nil
}

// An ACL allows or denies a principal something, in the words of Kafka's
// kafka-acls: the fields are names of the enumerations ResourceType, PatternType,
// AclOperation and AclPermissionType, without underscores.
type ACL struct {
	Resource, Name, Pattern string // such as TOPIC, orders, LITERAL
	Principal, Host         string
	Operation, Permission   string // such as READ, ALLOW
}

func (a ACL) String() string {
	return strings.Join([]string{a.Permission, a.Operation, a.Resource, a.Pattern, a.Name, a.Principal, a.Host}, " ")
}

// CreateACLs creates ACLs, and returns when the authorizer knows them.
func (b Bootstrap) CreateACLs(ctx context.Context, acls ...ACL) error {
	client, err := b.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	request := kmsg.NewPtrCreateACLsRequest()
	for _, a := range acls {
		c := kmsg.NewCreateACLsRequestCreation()
		c.ResourceName, c.Principal, c.Host = a.Name, a.Principal, a.Host
		var wrong [4]error
		c.ResourceType, wrong[0] = kmsg.ParseACLResourceType(a.Resource)
		c.ResourcePatternType, wrong[1] = kmsg.ParseACLResourcePatternType(a.Pattern)
		c.Operation, wrong[2] = kmsg.ParseACLOperation(a.Operation)
		c.PermissionType, wrong[3] = kmsg.ParseACLPermissionType(a.Permission)
		if err := errors.Join(wrong[:]...); err != nil {
			return fmt.Errorf("ACL %v: %w", a, err)
		}
		request.Creations = append(request.Creations, c)
	}
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("create ACLs: %w", err)
	}
	for i, r := range response.Results {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return fmt.Errorf("create ACL %v: %w", acls[i], err)
		}
	}
	return poll(ctx, 20*time.Millisecond, func() error {
		have, err := b.ACLs(ctx)
		if err != nil {
			return err
		}
		for _, a := range acls {
			if !slices.Contains(have, a) {
				return fmt.Errorf("ACL %v is not there", a)
			}
		}
		return nil
	})
}

// ACLs returns all ACLs of a cluster, in an order of their own; none where there
// is no authorizer.
func (b Bootstrap) ACLs(ctx context.Context) ([]ACL, error) {
	client, err := b.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	request := kmsg.NewPtrDescribeACLsRequest()
	request.ResourceType, request.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	request.Operation, request.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("ACLs of %s: %w", b.Server(), err)
	}
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil && !errors.Is(err, kerr.SecurityDisabled) {
		return nil, fmt.Errorf("ACLs of %s: %w", b.Server(), err)
	}
	var all []ACL
	for _, r := range response.Resources {
		for _, a := range r.ACLs {
			all = append(all, ACL{
				r.ResourceType.String(), r.ResourceName, r.ResourcePatternType.String(),
				a.Principal, a.Host, a.Operation.String(), a.PermissionType.String(),
			})
		}
	}
	slices.SortFunc(all, func(a, b ACL) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

// SetBrokerDefault gives all brokers of a cluster a setting, without a restart.
// An empty value takes it back.
func (b Bootstrap) SetBrokerDefault(ctx context.Context, name, value string) error {
	client, err := b.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value}
	if value == "" {
		change = kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name}
	}
	responses, err := kadm.NewClient(client).AlterBrokerConfigs(ctx, []kadm.AlterConfig{change})
	if err != nil {
		return fmt.Errorf("set %s of all brokers: %w", name, err)
	}
	for _, r := range responses {
		if r.Err != nil {
			return fmt.Errorf("set %s of all brokers: %w: %s", name, r.Err, r.ErrMessage)
		}
	}
	return nil
}

// Wipe takes from a cluster what it has: topics, Kafka's own left out, groups, of
// which members are put out, and ACLs.
func (k *Kafka) Wipe(ctx context.Context) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	return errors.Join(k.wipeTopics(ctx, client), wipeGroups(ctx, client), k.wipeACLs(ctx, client))
}

func (k *Kafka) wipeTopics(ctx context.Context, client *kgo.Client) error {
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(ctx)
	if err != nil || len(topics) == 0 {
		return err
	}
	deleted, err := admin.DeleteTopics(ctx, topics.Names()...)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return fmt.Errorf("delete topics: %w", err)
	}
	for _, name := range topics.Names() {
		for _, address := range k.Addresses {
			if err := k.waitGone(ctx, address, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// wipeGroups has the members of groups leave: those that died without a word
// would hold up the next ones of their name for a session timeout.
func wipeGroups(ctx context.Context, client *kgo.Client) error {
	admin := kadm.NewClient(client)
	groups, err := admin.ListGroups(ctx)
	if err != nil || len(groups) == 0 {
		return err
	}
	described, err := admin.DescribeGroups(ctx, groups.Groups()...)
	if err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	for _, g := range described {
		if len(g.Members) == 0 {
			continue
		}
		request := kmsg.NewPtrLeaveGroupRequest()
		request.Group = g.Group
		for _, m := range g.Members {
			member := kmsg.NewLeaveGroupRequestMember()
			member.MemberID = m.MemberID
			request.Members = append(request.Members, member)
		}
		if _, err := request.RequestWith(ctx, client); err != nil {
			return fmt.Errorf("members leave group %s: %w", g.Group, err)
		}
	}
	deleted, err := admin.DeleteGroups(ctx, groups.Groups()...)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return fmt.Errorf("delete groups: %w", err)
	}
	return nil
}

func (k *Kafka) wipeACLs(ctx context.Context, client *kgo.Client) error {
	acls, err := k.ACLs(ctx)
	if err != nil || len(acls) == 0 {
		return err
	}
	request := kmsg.NewPtrDeleteACLsRequest()
	all := kmsg.NewDeleteACLsRequestFilter()
	all.ResourceType, all.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	all.Operation, all.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	request.Filters = append(request.Filters, all)
	if _, err := request.RequestWith(ctx, client); err != nil {
		return fmt.Errorf("delete ACLs: %w", err)
	}
	return poll(ctx, 20*time.Millisecond, func() error {
		left, err := k.ACLs(ctx)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d ACLs are still there", len(left))
		}
		return err
	})
}
